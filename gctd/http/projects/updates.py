"""The route of the check for updates (specification, section 1)."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog import Context
from gctd.control.updates import PROBES, RefUpdate
from gctd.http import formats
from gctd.http.services import Services
from httpkit.messages.fields import member, message, query
from httpkit.messages.paging import decode_cursor, encode_cursor
from httpkit.routes import Answer, Call, Route

PAGE = 2 * PROBES
"""The most repositories that one request checks: two rounds of probes, so that it has a bound in time."""
_TIME_LIMIT = 150.0


@message
class CheckUpdates:
    """What to check: one repository, or a page of all."""

    schedule: bool = member(default=False, description="queue an analysis for each project whose ref has moved")
    repo_url: str | None = member(
        default=None,
        schema=formats.ONE_REPO_URL,
        description="one repository; all where it is left out",
        example="https://github.com/example/module",
    )
    limit: int = query(default=PAGE, ge=1, le=PAGE, description="at most so many repositories")
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="goes on after the page before")


@message
class UpdateBody:
    """A project and the ref that it tracks; `project` is null for a repository that was skipped."""

    repo_url: str = member()
    project: str | None = member()
    ref: str | None = member(description="what the project tracks: its own setting, the root's, or the default branch")
    recorded_sha: str | None = member(description="commit of the latest analysis; null where there is none yet")
    remote_sha: str | None = member(description="commit that the ref leads to now")
    moved: bool = member(description="the two differ")
    scheduled: bool = member(description="this check has queued a task, for exactly that commit")
    task_id: str | None = member(description="the task that was queued, or that is under way already")
    note: str | None = member(description="why nothing was scheduled")
    error: str | None = member(description="why the ref could not be looked up")

    @classmethod
    def of(cls, update: RefUpdate) -> UpdateBody:
        """What was found about a project."""
        return cls(
            repo_url=update.repo_url,
            project=update.project,
            ref=update.ref,
            recorded_sha=update.recorded_sha,
            remote_sha=update.remote_sha,
            moved=update.moved,
            scheduled=update.scheduled,
            task_id=update.task_id,
            note=update.note,
            error=update.error,
        )


async def check_updates(request: CheckUpdates, call: Call[Services]) -> Answer[Sequence[UpdateBody]]:
    """Look up what each project's ref leads to now, without a clone. Repeating it schedules nothing twice."""
    # A key would belong to one repository; the check needs none.
    context = Context(correlation=call.request_id, traceparent=call.traceparent)
    updates = call.services.updates
    if request.repo_url is not None:
        checked = await updates.check_one(request.repo_url, schedule=request.schedule, context=context)
    else:
        after = decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else ("", "")
        checked = await updates.check_all(schedule=request.schedule, after=after, limit=request.limit, context=context)
    return Answer(
        [UpdateBody.of(update) for update in checked.updates],
        sequence=await call.services.side.wait_visible(checked.sequence) if checked.sequence else None,
        cursor=encode_cursor(checked.after) if checked.after is not None else None,
    )


ROUTES = (
    Route(
        "POST",
        "/api/repos/check-updates",
        check_updates,
        summary="Check for updates",
        tags=("repos",),
        errors=(404, 409),
        time_limit=_TIME_LIMIT,
    ),
)
