"""The function `tracker`: repositories, projects, tasks, analyses and their history, functions by risk; tasks as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeAlias

import attrs
import msgspec
import structlog
from graphql import GraphQLResolveInfo

from gctd.domain.analysis import analysis_id
from gctd.domain.repo.project import Project
from gctd.domain.task import Task, TaskLogStored
from gctd.readmodel import MODEL
from gctd.readmodel.attempts import AttemptView, attempts_of
from gctd.readmodel.changes import DECIDERS
from gctd.readmodel.graph import TrackerGraph, history_key, latest_key, repo_key, task_key
from gctd.readmodel.reports import Reports
from gctd.readmodel.views import AnalysisView, RepoView, TaskView
from graphql_fn.core.errors import PublicError
from graphql_fn.core.function import Function
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.asking import Asking, sizes_of
from graphql_fn.readmodels.binding import Resolver, attribute, bound
from graphql_fn.readmodels.connections import Connection, connection, of_list, part_of
from graphql_fn.readmodels.following import followed
from httpkit.sse.frames import Frame
from projections.errors import ProjectionError
from projections.sql import ListPart
from servicekit.feed import CommitFrames, EventChange
from servicekit.replica import Broker, ReadReplica

_log = structlog.get_logger(__name__)

TASK = "task"
BLOBS = "gctd-blobs"
"""The bucket of the reports (`streams.yaml`)."""
_TEXTS = tuple[str, str]
_NUMBERS = tuple[int, int]
_LATEST = ListPart(limit=1)


class _Asking(Asking[TrackerGraph]):
    """The context of a request, with the reports of analyses (None: there is no broker to get them from)."""

    def __init__(self, onlooker: ReadReplica, reports: Reports | None, request: GraphQLRequest) -> None:
        super().__init__(onlooker, TrackerGraph, request)
        self.reports = reports


Info: TypeAlias = "GraphQLResolveInfo[_Asking]"


@attrs.frozen
class ProjectOf:
    """A project, and the repository that it is in."""

    repo: RepoView
    project: Project

    @property
    def analysis_id(self) -> str:
        """The id of its analyses."""
        return analysis_id(self.repo.id, self.project.name)


@attrs.frozen
class TaskChange:
    """The payload of `taskChanged`."""

    task: TaskView
    event: str
    deleted: bool


async def _repo(_: Any, info: Info, id: str | None = None, url: str | None = None) -> RepoView | None:  # noqa: A002 - the schema's
    if (id is None) == (url is None):
        raise PublicError("give either id or url")
    if url is not None:
        return await (await info.context.queries()).repo_by_url(url)
    found: RepoView | None = await info.context.load(TrackerGraph.repos_by_id, id)
    return found


async def _repos(_: Any, info: Info, status: str | None = None, **page: Any) -> Connection[RepoView]:
    part = part_of(_TEXTS, **page)
    return connection(await (await info.context.queries()).repos(part, status=status), part, repo_key)


async def _task(_: Any, info: Info, id: str) -> TaskView | None:  # noqa: A002 - the argument's name in the schema
    found: TaskView | None = await info.context.load(TrackerGraph.tasks_by_id, id)
    return found


async def _tasks(
    _: Any,
    info: Info,
    *,
    all: bool,  # noqa: A002 - the argument's name in the schema
    status: str | None = None,
    repo: str | None = None,
    project: str | None = None,
    **page: Any,
) -> Connection[TaskView]:
    part = part_of(_TEXTS, **page)
    queries = await info.context.queries()
    found = await queries.tasks(part, status=status, repo=repo, project=project, all_=bool(all))
    return connection(found, part, task_key)


async def _analysis(_: Any, info: Info, task: str) -> AnalysisView | None:
    found: AnalysisView | None = await info.context.load(TrackerGraph.analyses_of_tasks, task)
    return found


async def _analyses(_: Any, info: Info, repo: str | None = None, **page: Any) -> Connection[AnalysisView]:
    part = part_of(_TEXTS, **page)
    return connection(await (await info.context.queries()).latest_analyses(part, repo=repo), part, latest_key)


async def _history(_: Any, info: Info, id: str, **page: Any) -> Connection[AnalysisView]:  # noqa: A002 - the schema's
    part = part_of(_NUMBERS, **page)
    return connection(await info.context.load(TrackerGraph.history_of, id, part), part, history_key)


def _projects_of(repo: RepoView, _info: Info, **page: Any) -> Any:
    return of_list([ProjectOf(repo, project) for project in repo.projects], **page)


async def _tasks_of(repo: RepoView, info: Info, **page: Any) -> Connection[TaskView]:
    part = part_of(_TEXTS, **page)
    return connection(await info.context.load(TrackerGraph.tasks_of, repo.id, part), part, task_key)


async def _latest_of(project: ProjectOf, info: Info) -> AnalysisView | None:
    found = await info.context.load(TrackerGraph.history_of, project.analysis_id, _LATEST)
    return found.items[0] if found else None


async def _history_of(project: ProjectOf, info: Info, **page: Any) -> Connection[AnalysisView]:
    part = part_of(_NUMBERS, **page)
    return connection(await info.context.load(TrackerGraph.history_of, project.analysis_id, part), part, history_key)


def _attempts_of(task: TaskView, _info: Info) -> list[AttemptView]:
    return list(attempts_of(task.attempts))


def _repo_of(source: TaskView | AnalysisView, info: Info) -> Any:
    return info.context.load(TrackerGraph.repos_by_id, source.repo_id)


def _task_of(analysis: AnalysisView, info: Info) -> Any:
    return info.context.load(TrackerGraph.tasks_by_id, analysis.task_id)


def _rescored(task: TaskView, info: Info) -> Any:
    return None if task.rescored_from is None else info.context.load(TrackerGraph.tasks_by_id, task.rescored_from)


def _analysis_of(task: TaskView, info: Info) -> Any:
    return None if task.analysis_id is None else info.context.load(TrackerGraph.analyses_of_tasks, task.id)


async def _functions_of(
    analysis: AnalysisView,
    info: Info,
    package: str | None = None,
    min_crap: float | None = None,
    **page: Any,
) -> Any:
    reports = info.context.reports
    if reports is None:
        raise PublicError("the functions of an analysis are with the broker: nats_url is not set")
    try:
        found = await reports.functions(analysis.report_digest)
    except ProjectionError as error:
        raise PublicError(str(error)) from error
    if package is not None or min_crap is not None:
        found = [
            one for one in found if (package is None or one.package == package) and (min_crap is None or one.crap >= min_crap)
        ]
    return of_list(found, **page)


_RESOLVERS: dict[str, Resolver] = {
    "Query.repo": _repo,
    "Query.repos": _repos,
    "Query.task": _task,
    "Query.tasks": _tasks,
    "Query.analysis": _analysis,
    "Query.analyses": _analyses,
    "Query.history": _history,
    "Repo.projects": _projects_of,
    "Repo.tasks": _tasks_of,
    **{
        f"Project.{field}": attribute(f"project.{name}")
        for field, name in {
            "name": "name",
            "modulePath": "module_path",
            "goVersion": "go_version",
            "packages": "packages",
            "hasTests": "has_tests",
            "inWorkspace": "in_workspace",
            "problem": "problem",
        }.items()
    },
    "Project.latestAnalysis": _latest_of,
    "Project.history": _history_of,
    "Task.repo": _repo_of,
    "Task.attempts": _attempts_of,
    "Task.rescoredFrom": _rescored,
    "Task.analysis": _analysis_of,
    "Analysis.id": attribute("analysis_id"),
    "Analysis.task": _task_of,
    "Analysis.repo": _repo_of,
    **{f"Analysis.{name}": attribute(f"summary.{name}") for name in ("average", "combined", "exceeded")},
    "Analysis.totalFunctions": attribute("summary.total_funcs"),
    **{f"Analysis.{name}": attribute(f"metadata.{name}") for name in ("stars", "forks", "language", "license")},
    "Analysis.functions": _functions_of,
    "Function.complexity": attribute("cyclomatic"),
    "Function.statementCoverage": attribute("stmt_coverage"),
}


_SCANS = {
    "Query.tasks": ("tasks",),
    "Query.analyses": ("analyses",),
    "Repo.tasks": ("tasks",),
}
"""The tables of which a field may read all rows for a page of them."""


# Events


def frames(log: Any) -> CommitFrames:
    """The frames of the tracker's commits: one for each event of a task, but for the end of its log."""
    return CommitFrames(log, DECIDERS, _frames)


def _frames(happened: EventChange) -> Iterable[Frame]:
    task, event = happened.after, happened.event
    if isinstance(task, Task) and not isinstance(event.data, TaskLogStored):
        change = TaskChange(TaskView.of_state(task, happened.sequence), event.type, deleted=task.deleted)
        yield Frame(event.position, TASK, msgspec.json.encode(change))


def _changes(_: Any, info: Info, id: str | None = None, repo: str | None = None) -> AsyncIterator[SubscriptionEvent]:  # noqa: A002 - the schema's
    def wanted(change: TaskChange) -> bool:
        return id in {None, change.task.id} and repo in {None, change.task.repo_id}

    return followed(info.context, TASK, TaskChange, wanted)


SCHEMA = bound("tracker.graphql", _RESOLVERS, {"taskChanged": _changes})


def onlooker(url: str, broker: Broker | None, *, max_lag: float) -> ReadReplica:
    """The read model in a database, and its events if there is a broker."""
    return ReadReplica(url, MODEL, connection=broker, frames=frames, max_lag=max_lag)


def function(onlooker: ReadReplica) -> Function:
    """The function over a read model."""
    blobs = onlooker.blobs(BLOBS)
    reports = None if blobs is None else Reports(blobs)
    return Function(
        name=MODEL.name,
        schema=SCHEMA,
        context=lambda request: _Asking(onlooker, reports, request),
        scans=_SCANS,
        rows=lambda: sizes_of(onlooker),
    )
