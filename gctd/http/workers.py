"""Routes of workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gctd.broker.presence import PresenceEntry
from gctd.control.heartbeat import Heartbeat, decoded
from gctd.domain.worker import WORKER, PauseWorker
from gctd.http.bodies import WorkerBody
from gctd.http.services import BROKER_TIME_LIMIT, Services
from httpkit import Answer, Call, Nothing, Route, Scope, message, path
from servicekit import answer


@message
class OneWorker:
    """Names a worker."""

    id: str = path(pattern="^[A-Za-z0-9_-]{1,64}$", form="the name of a worker", max_length=64)


async def list_workers(request: Nothing, call: Call[Services]) -> Answer[Sequence[WorkerBody]]:  # noqa: ARG001
    """List all workers that were ever started. Present workers have their own report."""
    heard = await call.services.presence.heard()
    async with call.services.snapshots.moment() as sequence:
        workers = await call.services.queries.workers()
    return Answer([WorkerBody.of(worker, _beat(heard.get(worker.id))) for worker in workers], sequence=sequence)


def _beat(announced: PresenceEntry | None) -> tuple[Heartbeat, datetime] | None:
    return None if announced is None else (decoded(announced.payload), announced.at)


async def pause_worker(request: OneWorker, call: Call[Services]) -> Answer[None]:
    """Let a worker take no more jobs, until it is resumed. A running job continues."""
    return await _pause(request.id, call, paused=True)


async def unpause_worker(request: OneWorker, call: Call[Services]) -> Answer[None]:
    """Let a worker take jobs again."""
    return await _pause(request.id, call, paused=False)


async def _pause(worker_id: str, call: Call[Services], *, paused: bool) -> Answer[None]:
    command = PauseWorker(paused=paused, at=datetime.now(UTC))
    return answer(await call.services.execute(WORKER, worker_id, command, call), None)


ROUTES = (
    Route("GET", "/api/workers", list_workers, summary="List workers", tags=("workers",), time_limit=BROKER_TIME_LIMIT),
    Route(
        "POST",
        "/api/workers/{id}/pause",
        pause_worker,
        summary="Pause a worker",
        tags=("workers",),
        errors=(404,),
        scope=Scope.ADMIN,
    ),
    Route(
        "POST",
        "/api/workers/{id}/unpause",
        unpause_worker,
        summary="Resume a worker",
        tags=("workers",),
        errors=(404,),
        scope=Scope.ADMIN,
    ),
)
