"""The route of the check for updates."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.control.updates.update_check import PROBES
from gctd.http import formats
from gctd.http.bodies import body_of
from gctd.http.services import Services
from httpkit import Answer, Call, Route, decode_cursor, encode_cursor, member, message, query

PAGE = 2 * PROBES
"""Limit of the repositories in one request: two rounds of probes, to bound its time."""
_TIME_LIMIT = 150.0


@message
class CheckUpdates:
    """Selection of the repositories to check: one, or a page of all."""

    schedule: bool = member(default=False, description="queue an analysis for each project whose ref has moved")
    repo_url: str | None = member(
        default=None,
        schema=formats.ONE_REPO_URL,
        description="one repository; default: all",
        example="https://github.com/example/module",
    )
    limit: int = query(default=PAGE, ge=1, le=PAGE, description="limit of the repositories")
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="cursor from the `Link` of the previous page")


@message
class UpdateBody:
    """A project and the ref that it tracks; `project` is null for a repository that was skipped."""

    repo_url: str = member()
    project: str | None = member()
    ref: str | None = member(description="tracked ref of the project: its own setting, the root's, or the default branch")
    recorded_sha: str | None = member(description="commit of the latest analysis; null before the first one")
    remote_sha: str | None = member(description="current commit of the ref")
    moved: bool = member(description="the two differ")
    scheduled: bool = member(description="this check has queued a task, for exactly that commit")
    task_id: str | None = member(description="the task that was queued, or that is under way already")
    note: str | None = member(description="reason for no action")
    error: str | None = member(description="why the ref or the repository could not be looked up")


async def check_updates(request: CheckUpdates, call: Call[Services]) -> Answer[Sequence[UpdateBody]]:
    """Look up the current commit of each project's ref, without a clone. A repeated check schedules no task twice."""
    # A key would belong to one repository; the check needs none.
    context = call.context.without_key()
    updates = call.services.updates
    after = decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else ("", "")
    if request.repo_url is not None:
        checked = await updates.check_one(request.repo_url, schedule=request.schedule, context=context)
    else:
        checked = await updates.check_all(schedule=request.schedule, after=after, limit=request.limit, context=context)
    return Answer(
        [body_of(UpdateBody, update) for update in checked.updates],
        sequence=checked.sequence or None,
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
