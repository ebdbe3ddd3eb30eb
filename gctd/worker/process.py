"""A worker process: announces itself, takes jobs while it is not paused, and drains when it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import attrs
import msgspec
import psutil
import structlog

from eventlog import EventLog, EventLogError
from eventlog.commands import Commands
from eventlog.presence import Presence
from eventlog.queue import Job, WorkQueue
from gctd.domain.worker import WORKER, StartWorker, StopWorker, Worker
from gctd.worker.handlers import Handlers
from gctd.worker.identity import Identity
from gctd.worker.reports import now, report

_log = structlog.get_logger(__name__)

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Pace:
    """How a worker goes about it: jobs at a time; seconds between announcements, for a fetch, for draining."""

    concurrency: int = 1
    announce: float = 5.0
    fetch: float = 1.0
    drain: float = 30.0


class WorkerProcess:
    """One worker, from start to stop."""

    def __init__(
        self,
        identity: Identity,
        *,
        log: EventLog,
        commands: Commands,
        queue: WorkQueue,
        presence: Presence,
        handlers: Handlers,
        pace: Pace,
    ) -> None:
        self._identity = identity
        self._log = log
        self._commands = commands
        self._queue = queue
        self._presence = presence
        self._handlers = handlers
        self._pace = pace
        self._going = asyncio.Event()
        self._stopping = asyncio.Event()
        self._running: dict[str, Job] = {}

    def stop(self) -> None:
        """Take no more jobs; `run` returns when those under way have ended, or were handed back."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until told to stop. Raises Unavailable where the broker cannot be reached at the start."""
        command = StartWorker(
            id=self._identity.id,
            session=self._identity.session,
            host=self._identity.host,
            pid=self._identity.pid,
            at=now(),
        )
        started = await report(self._commands, WORKER, self._identity.id, lambda: command)
        self._note(started.state)
        await self._announce()
        _log.info("worker started", id=self._identity.id, paused=started.state.paused)
        async with _alongside(self._keep_announcing()), _alongside(self._watch(started.sequence)):
            await self._take_until_stopped()
        await report(
            self._commands,
            WORKER,
            self._identity.id,
            lambda: StopWorker(session=self._identity.session, at=now()),
            patience=5.0,
        )
        await self._presence.leave(self._identity.id)
        _log.info("worker stopped", id=self._identity.id)

    # What others see

    async def _announce(self) -> None:
        usage = psutil.Process()
        with usage.oneshot():
            figures = {"cpu": psutil.cpu_percent(), "memory": usage.memory_info().rss}
        status = "draining" if self._stopping.is_set() else "online" if self._going.is_set() else "paused"
        payload = {"session": self._identity.session, "status": status, "tasks": sorted(self._running), **figures}
        await self._presence.announce(self._identity.id, msgspec.json.encode(payload))

    async def _keep_announcing(self) -> None:
        while True:
            await asyncio.sleep(self._pace.announce)
            try:
                await self._announce()
            except EventLogError as error:
                _log.warning("presence not announced", error=str(error))

    # What others say

    async def _watch(self, after: int) -> None:
        """Follow the worker's own aggregate: pauses, and another process that took the id over."""
        while True:
            try:
                async for commits in self._log.follow(after=after, aggregate=WORKER.aggregate(self._identity.id)):
                    self._note(commits[-1].state)
                    after = commits[-1].sequence
            except EventLogError as error:
                _log.warning("pauses cannot be followed", error=str(error))
                await asyncio.sleep(self._pace.announce)

    def _note(self, worker: Worker) -> None:
        if worker.session != self._identity.session:
            _log.warning("another process took this worker's id; draining", id=self._identity.id)
            self.stop()
        elif worker.paused:
            self._going.clear()
        else:
            self._going.set()

    # Jobs

    async def _take_until_stopped(self) -> None:
        takers = [asyncio.create_task(self._take()) for _ in range(self._pace.concurrency)]
        try:
            async with _alongside(self._stopping.wait()) as stopping:
                await asyncio.wait({stopping, *takers}, return_when=asyncio.FIRST_COMPLETED)
            _, left = await asyncio.wait(takers, timeout=self._pace.drain)
            if left:
                _log.warning("jobs are handed back", jobs=sorted(self._running))
        finally:
            for taker in takers:
                taker.cancel()
            results = await asyncio.gather(*takers, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _take(self) -> None:
        while not self._stopping.is_set():
            if not self._going.is_set():
                await self._until_going_or_stopping()
                continue
            try:
                job = await self._queue.fetch(self._pace.fetch)
            except EventLogError as error:
                _log.warning("no jobs can be fetched", error=str(error))
                await asyncio.sleep(self._pace.fetch)
                continue
            if job is None:
                continue
            if self._stopping.is_set() or not self._going.is_set():
                await job.nak(0)
                continue
            self._running[job.id] = job
            try:
                await self._handlers.handle(job)
            except EventLogError as error:
                # The job comes again when its lease lapses, or the control plane gives the task to another worker.
                _log.error("job abandoned", id=job.id, error=str(error))
            finally:
                del self._running[job.id]

    async def _until_going_or_stopping(self) -> None:
        async with _alongside(self._going.wait()) as going, _alongside(self._stopping.wait()) as stopping:
            await asyncio.wait({going, stopping}, return_when=asyncio.FIRST_COMPLETED)


@asynccontextmanager
async def _alongside(work: Coroutine[None, None, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine for as long as the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
