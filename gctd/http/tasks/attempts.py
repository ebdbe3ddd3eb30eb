"""Routes of the attempts at a task, and of their logs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from aiohttp import web

from gctd.domain.errors import NotFound
from gctd.http.bodies import ProgressBody, body_of
from gctd.http.services import BROKER_TIME_LIMIT, Services
from gctd.http.tasks.attempt_logs import End, Piece
from gctd.http.tasks.routes import TASK_FORM, TASK_ID, OneTask
from gctd.readmodel.attempts import AttemptView
from httpkit import UNSET, Call, Route, Unset, encode, header, member, message, path, query

MOST_BYTES = 10**15


@message
class StageSpan:
    """A stage of an attempt."""

    stage: str = member(description="clone, modules, test, analyse or store")
    started_at: str = member(description="RFC 3339, UTC")
    duration_ms: int | None = member(description="milliseconds; null while it lasts")
    progress: ProgressBody | Unset = member(default=UNSET, description="left out of stages without a count")


@message
class LogBody:
    """The stored log of an attempt."""

    size: int = member(description="bytes")
    cut: int = member(description="bytes that were left out of its middle; 0 if it is complete")


@message
class AttemptBody:
    """An attempt at a task."""

    attempt: int = member(description="1 for the first")
    worker: str = member()
    started_at: str = member(description="RFC 3339, UTC")
    ended_at: str | None = member(description="RFC 3339, UTC; null while it lasts")
    outcome: str | None = member(description="completed, failed, lost, expired or cancelled; null while it lasts")
    reason: str = member(description="why it ended without a result")
    stages: tuple[StageSpan, ...] = member(description="in the order in which they were reached")
    log: LogBody | None = member(description="null where its log is not stored, or not yet")

    @classmethod
    def of(cls, attempt: AttemptView) -> AttemptBody:
        """The attempt of a view."""
        return body_of(
            cls,
            attempt,
            attempt=attempt.number,
            stages=tuple(
                body_of(StageSpan, stage, progress=UNSET if stage.progress is None else body_of(ProgressBody, stage.progress))
                for stage in attempt.stages
            ),
            log=LogBody(size=attempt.log.size, cut=attempt.log.cut) if attempt.log else None,
        )


@message
class OneAttempt:
    """Names an attempt at a task."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")
    attempt: int = path(ge=1, le=1_000_000, description="1 for the first", example=1)


@message
class FollowLog:
    """Names an attempt, and where in its log to begin."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")
    attempt: int = path(ge=1, le=1_000_000, description="1 for the first", example=1)
    last_event_id: int = query(default=0, ge=0, le=MOST_BYTES, description="a place, for clients that cannot send the header")
    resumed: int | None = header(
        "Last-Event-ID", default=None, ge=0, le=MOST_BYTES, description="the `id` of the last event known"
    )


@message
class LogLines:
    """Lines of a log."""

    text: str = member(description="whole lines")


@message
class LogEnd:
    """The attempt is over."""

    outcome: str = member(description="completed, failed, lost, expired or cancelled")
    reason: str = member()


async def list_attempts(request: OneTask, call: Call[Services]) -> Sequence[AttemptBody]:
    """The attempts at a task, in order: by which worker, how long each stage took, how each ended."""
    found = await call.services.queries.attempts(request.id)
    if found is None:
        raise NotFound(f"there is no {request.id}")
    return [AttemptBody.of(attempt) for attempt in found]


async def attempt_log(request: OneAttempt, call: Call[Services]) -> web.Response:
    """Return the log of an attempt as a text. A running attempt has the log so far."""
    text = await call.services.logs.text(request.id, request.attempt)
    return web.Response(text=text, content_type="text/plain", charset="utf-8")


async def follow_log(request: FollowLog, call: Call[Services]) -> web.StreamResponse:
    """Stream the log of an attempt from its beginning, as it grows.

    `end` follows when the attempt is over and all of it was sent. `id` is a place in the log: `Last-Event-ID` resumes behind it.
    """
    services = call.services
    await services.logs.attempt(request.id, request.attempt)
    return await services.streams.answer(call.http, _frames(request, services))


async def _frames(request: FollowLog, services: Services) -> AsyncGenerator[bytes, None]:
    after = request.last_event_id if request.resumed is None else request.resumed
    yield b"retry: 2000\n\n"
    async with aclosing(services.logs.follow(request.id, request.attempt, after)) as parts:
        with suppress(NotFound):  # removed during the stream, which ends
            async for part in parts:
                yield _frame(part)


def _frame(part: Piece | End) -> bytes:
    if isinstance(part, Piece):
        return b"id: %d\nevent: log\ndata: %b\n\n" % (part.end, encode(LogLines(text=part.text)))
    end = LogEnd(outcome=part.attempt.outcome or "", reason=part.attempt.reason)
    return b"event: end\ndata: %b\n\n" % encode(end)


ROUTES = (
    Route("GET", "/api/tasks/{id}/attempts", list_attempts, summary="Attempts at a task", tags=("tasks",), errors=(404,)),
    Route(
        "GET",
        "/api/tasks/{id}/attempts/{attempt}/log",
        attempt_log,
        summary="Log of an attempt",
        tags=("tasks",),
        errors=(404,),
        produces=("text/plain",),
        time_limit=BROKER_TIME_LIMIT,
    ),
    Route(
        "GET",
        "/api/tasks/{id}/attempts/{attempt}/log/sse",
        follow_log,
        summary="Follow the log of an attempt",
        tags=("tasks", "events"),
        errors=(404,),
        events={"log": LogLines, "end": LogEnd},
    ),
)
