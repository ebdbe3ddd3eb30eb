"""`gctd worker`: one worker as a process, from settings to the end."""

from __future__ import annotations

from eventlog import Commands
from gctd.broker.broker import Broker, open_broker
from gctd.scan.cache.directory import Cache
from gctd.settings import Settings
from gctd.worker.attempts.attempt_log import LogTargets
from gctd.worker.attempts.handlers import Handlers
from gctd.worker.identity import WorkerIdentity, claim
from gctd.worker.process import Pace, Room, WorkerProcess
from gctd.worker.scans.opening import cache_limits, open_work
from gctd.worker.work import Work
from httpkit import termination


async def work(settings: Settings, *, once: bool = False, instead: Work | None = None) -> None:
    """Run a worker until SIGINT or SIGTERM, then let it drain; `once`: until it has seen a job through.

    `instead` of the real work: another one, for tests.

    Raises BadInput, Refused (the id is taken), Unavailable.
    """
    identity = claim(settings.cache_directory, settings.worker_id)
    try:
        async with open_broker(settings, name=f"gctd-worker {identity.id}") as broker:
            chosen = instead or await open_work(settings, broker.blobs)
            await _run(settings, identity, broker, chosen, once=once)
    finally:
        identity.release()


async def _run(settings: Settings, identity: WorkerIdentity, broker: Broker, chosen: Work, *, once: bool) -> None:
    commands = Commands(broker.log)
    handlers = Handlers(
        worker=identity.id,
        session=identity.session,
        log=broker.log,
        commands=commands,
        work=chosen,
        logs=LogTargets(transcripts=broker.logs, blobs=broker.blobs),
        retry_delay=settings.retry_delay,
    )
    process = WorkerProcess(
        identity=identity,
        log=broker.log,
        commands=commands,
        queues=broker.queues,
        presence=broker.presence,
        handlers=handlers,
        equipment=chosen.equipment,
        room=Room(Cache(settings.cache_directory, cache_limits(settings))),
        pace=Pace(
            concurrency=1 if once else settings.concurrency,
            fast=0 if once else settings.fast_concurrency,
            once=once,
            announce=settings.presence_ttl / 3,
            news=min(0.5, settings.presence_ttl / 6),
            drain=settings.drain_timeout,
        ),
    )
    with termination() as signalled:
        signalled.add_done_callback(lambda _: process.stop())
        await process.run()
