"""Routes of tasks: schedule, list, look at, remove."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from aiohttp import web

from eventlog import AggregateId, Outcome
from gctd.domain.errors import BadInput, NotFound, Refused
from gctd.domain.task import TASK
from gctd.domain.task.commands import CancelTask, DeleteTask, MarkTask, RetryTask, TaskCommand
from gctd.domain.task.events import TaskEvent
from gctd.domain.task.state import CATEGORY, Task, TaskStatus
from gctd.http import formats
from gctd.http.bodies import AnalysisBody, TaskBody
from gctd.http.services import BROKER_TIME_LIMIT, Services
from gctd.http.tasks.log_reader import reading
from gctd.http.tasks.results import full_analysis
from gctd.readmodel.views import TaskView
from httpkit import Answer, Call, Route, Scope, decode_cursor, member, message, page_of, path, query
from servicekit import answer

TASK_ID = r"^task-[0-9]{1,30}$"
TASK_FORM = "the id of a task, like task-1763635200000000001"
PAGE = 1000
"""The longest page of a list, and the default length."""


@message
class ListTasks:
    """Filter of a list of tasks."""

    status: TaskStatus | None = query(default=None, description="only tasks in this state")
    show_seen: bool = query(default=False, description="also tasks that are marked as seen")
    under_way: bool = query(default=False, description="all tasks that wait or run, also seen ones, and no others")
    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="cursor from the `Link` of the previous page")


@message
class OneTask:
    """Names a task."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")


@message
class TaskAt:
    """Names a task, and a moment."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")
    at: int | None = query(default=None, ge=1, le=10**18 - 1, description="a sequence of the log: the task as it was then")


@message
class ResultOfTask:
    """Names a task, and limits the content of its result."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")
    entries: int | None = query(default=None, ge=0, le=1_000_000, description="limit of the functions: measured, worst first")


@message
class HideAll:
    """Selection of the tasks to hide."""

    ids: Sequence[str] | None = member(
        default=None, example=["task-1763635200000000001"], description="only these tasks (default: all)"
    )


@message
class Schedule:
    """Selection of the projects to analyse."""

    repo_url: str = member(schema=formats.REPO_URL, example="https://github.com/example/module")
    project: str | None = member(default=None, schema=formats.PROJECT, description="one project; default: all", example=".")
    ref: str | None = member(
        default=None,
        schema=formats.REF,
        description="branch, tag or commit; default: the projects' settings",
        example="main",
    )
    once: bool | None = member(
        default=None,
        description="`ref` is for these tasks only, of all projects (default: true); false: it becomes the setting of the root"
        " (default of `POST /api/tasks`)",
    )
    again: bool = member(
        default=False, description="run the tests also if the commit was analysed before with the same settings and engine"
    )
    engine: str | None = member(default=None, schema=formats.ENGINE, description="default: the server's engine", example="native")


async def list_tasks(request: ListTasks, call: Call[Services]) -> Answer[Sequence[TaskBody]]:
    """Tasks, newest first; hidden ones are left out unless `under_way` is set."""
    found = await call.services.queries.tasks(
        status=request.status.value if request.status else None,
        show_seen=request.show_seen,
        under_way=request.under_way,
        before=decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else None,
        limit=request.limit + 1,
    )
    page, more = page_of(found, request.limit, lambda task: (task.created_at, task.id))
    return Answer([TaskBody.of(task) for task in page], cursor=more)


async def get_task(request: TaskAt, call: Call[Services]) -> Answer[TaskBody]:
    """Return the current state of a task, or its state at a sequence of the log."""
    if request.at is None:
        async with call.services.snapshots.moment() as sequence:
            return Answer(TaskBody.of(await _task(request.id, call)), sequence=sequence)
    reader = call.services.reader
    await reader.require(request.at)
    commit = await reader.log.last(AggregateId(CATEGORY, request.id), up_to=request.at)
    missing = NotFound(f"there is no {request.id} at sequence {request.at}")
    if commit is None:
        raise missing
    with reading(commit):
        state: Task = commit.state
    if state.deleted:
        raise missing
    return Answer(TaskBody.of(TaskView.of_state(state, commit.sequence)), sequence=commit.sequence)


async def task_result(request: ResultOfTask, call: Call[Services]) -> Answer[AnalysisBody]:
    """Return the analysis of a completed task."""
    async with call.services.snapshots.moment() as sequence:
        task = await _task(request.id, call)
        analysis = await call.services.queries.analysis_of_task(task.id)
    if task.status != TaskStatus.COMPLETED:
        raise Refused(f"{task.id} has not completed: it is {task.status}{task.reason and f' ({task.reason})'}")
    if analysis is None:
        raise NotFound(f"{task.id} has no analysis")
    return Answer(await full_analysis(analysis, call, entries=request.entries), sequence=sequence)


async def task_profile(request: OneTask, call: Call[Services]) -> web.Response:
    """The coverage profile that a task's analysis was made from, as `go test` wrote it."""
    analysis = await call.services.queries.analysis_of_task(request.id)
    if analysis is None or analysis.profile_digest is None:
        raise NotFound(f"{request.id} has no coverage profile")
    body = await call.services.blobs.get(analysis.profile_digest)
    return web.Response(body=body, content_type="text/plain", charset="utf-8")


async def schedule(request: Schedule, call: Call[Services]) -> Answer[Sequence[TaskBody]]:
    """Queue a task for one project of a registered repository, or for each."""
    return await _scheduled(request, call, once=True)


async def schedule_first(request: Schedule, call: Call[Services]) -> Answer[TaskBody]:
    """Queue the same tasks as `POST /api/repos/analyze`, and answer with the first."""
    tasks = await _scheduled(request, call, once=False)
    return Answer(
        tasks.value[0], sequence=tasks.sequence, headers={**tasks.headers, "Location": f"/api/tasks/{tasks.value[0].id}"}
    )


async def cancel_task(request: OneTask, call: Call[Services]) -> Answer[None]:
    """End a task that waits or runs: it has failed then, with the reason `cancelled`, and stays in the list."""
    return answer(await _execute(CancelTask(at=datetime.now(UTC)), request, call), None)


async def retry_task(request: OneTask, call: Call[Services]) -> Answer[TaskBody]:
    """Queue a failed or expired task again, with the settings that it was scheduled with.

    The numbers of its attempts continue. It gets the number of attempts of a new task. It is in the list again.
    """
    outcome = await _execute(RetryTask(attempts=call.services.max_attempts, at=datetime.now(UTC)), request, call)
    return answer(outcome, TaskBody.of(TaskView.of_state(outcome.state, outcome.sequence)))


async def delete_task(request: OneTask, call: Call[Services]) -> Answer[None]:
    """Remove a task; one that is under way is cancelled first."""
    return answer(await _execute(DeleteTask(at=datetime.now(UTC)), request, call), None)


async def mark_seen(request: OneTask, call: Call[Services]) -> Answer[None]:
    """Mark a task as seen: it leaves the list."""
    return answer(await _execute(MarkTask(hide=False, at=datetime.now(UTC)), request, call), None)


async def hide_all(request: HideAll, call: Call[Services]) -> Answer[None]:
    """Hide all ended tasks, or the ended tasks of a list. A task that waits or runs stays in the list."""
    services = call.services
    # Each task is hidden on its own, so a key for the whole request has nothing to hold on to; repeating it is harmless.
    ended = await services.queries.tasks_ended()
    if request.ids is not None:
        ended = sorted(set(ended).intersection(request.ids))
    last = await services.tracker.hide_tasks(ended, call.context.without_key())
    return Answer(None, sequence=last or None)


async def _task(task_id: str, call: Call[Services]) -> TaskView:
    task = await call.services.queries.task(task_id)
    if task is None:
        raise NotFound(f"there is no {task_id}")
    return task


async def _scheduled(request: Schedule, call: Call[Services], *, once: bool) -> Answer[Sequence[TaskBody]]:
    if request.once and request.ref is None:
        raise BadInput("once", "needs a ref")
    outcomes = await call.services.tracker.analyze(
        request.repo_url,
        project=request.project,
        ref=request.ref,
        once=once if request.once is None else request.once,
        engine=request.engine,
        again=request.again,
        context=call.context,
    )
    return scheduled_tasks(outcomes)


def scheduled_tasks(outcomes: Sequence[Outcome[Task, TaskEvent]]) -> Answer[Sequence[TaskBody]]:
    """The answer to a command that has queued tasks."""
    return answer(outcomes[-1], [TaskBody.of(TaskView.of_state(outcome.state, outcome.sequence)) for outcome in outcomes])


async def _execute(command: TaskCommand, request: OneTask, call: Call[Services]) -> Outcome[Task, TaskEvent]:
    return await call.services.execute(TASK, request.id, command, call)


ROUTES = (
    Route("GET", "/api/tasks", list_tasks, summary="List tasks", tags=("tasks",)),
    Route(
        "POST",
        "/api/tasks",
        schedule_first,
        summary="Schedule an analysis, and answer with its first task",
        tags=("tasks",),
        status=201,
        errors=(404, 409),
        idempotent=True,
    ),
    Route("POST", "/api/tasks/hide-all", hide_all, summary="Hide ended tasks", tags=("tasks",)),
    Route(
        "GET",
        "/api/tasks/{id}",
        get_task,
        summary="Look at a task",
        tags=("tasks",),
        errors=(404, 409),
        time_limit=BROKER_TIME_LIMIT,
    ),
    Route(
        "DELETE",
        "/api/tasks/{id}",
        delete_task,
        summary="Remove a task",
        tags=("tasks",),
        errors=(404,),
        scope=Scope.ADMIN,
    ),
    Route(
        "POST",
        "/api/tasks/{id}/cancel",
        cancel_task,
        summary="Cancel a task",
        tags=("tasks",),
        errors=(404, 409),
        idempotent=True,
    ),
    Route(
        "POST",
        "/api/tasks/{id}/retry",
        retry_task,
        summary="Retry a task",
        tags=("tasks",),
        status=202,
        errors=(404, 409),
        idempotent=True,
    ),
    Route("POST", "/api/tasks/{id}/seen", mark_seen, summary="Mark a task as seen", tags=("tasks",), errors=(404,)),
    Route(
        "GET",
        "/api/tasks/{id}/result",
        task_result,
        summary="Result of a task",
        tags=("tasks",),
        errors=(404, 409),
        time_limit=BROKER_TIME_LIMIT,
    ),
    Route(
        "GET",
        "/api/tasks/{id}/profile",
        task_profile,
        summary="Coverage profile of a task",
        tags=("tasks",),
        errors=(404,),
        produces=("text/plain",),
        time_limit=BROKER_TIME_LIMIT,
    ),
    Route(
        "POST",
        "/api/repos/analyze",
        schedule,
        summary="Schedule an analysis",
        tags=("repos",),
        status=202,
        errors=(404, 409),
        idempotent=True,
    ),
)
