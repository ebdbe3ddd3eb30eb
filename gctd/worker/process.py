"""A worker process: announces itself, takes jobs while it is not paused, and drains when it receives a request to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import attrs
import structlog

from eventlog import Commands, Context, EventLog, EventLogError, during, until_tick
from gctd.broker.job import Job
from gctd.broker.presence import Presence
from gctd.broker.queue import WorkQueue
from gctd.control.heartbeat import Heartbeat, WorkerStatus
from gctd.control.lanes.queues import JobQueues
from gctd.domain.worker import WORKER, StartWorker, StopWorker, Worker
from gctd.scan.cache.directory import Cache
from gctd.scan.disk import LEAST_FREE, MIB, free_bytes
from gctd.worker.attempts.attempt import now, report
from gctd.worker.attempts.handlers import Handlers
from gctd.worker.identity import WorkerIdentity
from gctd.worker.usage import UsageMeter
from gctd.worker.work import Equipment

_log = structlog.get_logger(__name__)

BACK_OFF = 1.0
"""Seconds of wait after an error."""
REPORTING = 2.0
"""Seconds that results have to be reported at least, when the worker ends."""


@attrs.frozen
class Room:
    """The room on the disks of the cache and of the folders of jobs."""

    _cache: Cache

    def shortage(self) -> str:
        """Return the reason for which no job may begin: too little is free, or it is not known; empty if there is room."""
        for directory in (self._cache.directory, self._cache.jobs):
            if reason := _shortage(directory):
                return reason
        return ""

    async def made(self) -> str:
        """Remove caches if there is too little room. Return the shortage after that."""
        if not self.shortage():
            return ""
        await self._cache.make_room()
        return self.shortage()


def _shortage(directory: Path) -> str:
    try:
        free = free_bytes(directory)
    except OSError as error:
        return f"the free space of {directory} is not known: {error.strerror}"
    if free < LEAST_FREE:
        return f"disk full: {free // MIB} MiB free in {directory}, and a job needs {LEAST_FREE // MIB} MiB"
    return ""


@attrs.frozen(kw_only=True)
class Pace:
    """The work rate of a worker: simultaneous scans and short jobs (`fast`); seconds between announcements, for fetch and drain.

    `news` is the least time between two announcements if the status changes. `once`: end after a job.
    """

    concurrency: int = 1
    fast: int = 1
    once: bool = False
    announce: float = 5.0
    news: float = 0.5
    fetch: float = 10.0
    drain: float = 30.0


@attrs.define(eq=False, kw_only=True)
class WorkerProcess:
    """One worker, from start to stop."""

    _identity: WorkerIdentity
    _log: EventLog
    _commands: Commands
    _queues: JobQueues
    _presence: Presence
    _handlers: Handlers
    _equipment: Equipment
    _room: Room
    _pace: Pace
    _usage: UsageMeter = attrs.field(factory=UsageMeter, init=False)
    _version: str = attrs.field(factory=lambda: version("gctd"), init=False)
    _news: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _paused: bool = attrs.field(default=False, init=False)
    _shortage: str = attrs.field(default="", init=False)
    """Why no job has room on the disk; empty if one has."""
    _going: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    """Set while jobs may be taken, unless the worker stops."""
    _stopping: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _displaced: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    """Set when another process has taken the id: announcements under the id are of that process."""
    _held: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    """Set while no job may be taken: the worker is paused, its disk is full, or it stops."""
    _running: set[Job] = attrs.field(factory=set, init=False)
    """Jobs at work, and jobs whose result is being reported. A job may be delivered twice, also to two slots at the same time."""

    def stop(self) -> None:
        """Take no more jobs; `run` returns when those under way have ended, or were handed back."""
        self._stopping.set()
        self._held.set()
        self._news.set()

    async def run(self) -> None:
        """Work until a stop is requested. Raises Unavailable if the broker cannot be reached at the start.

        Also raises an unexpected error of the heartbeat: a worker that cannot be heard takes no jobs.
        """
        context = Context(actor=f"worker:{self._identity.id}")
        command = StartWorker(
            id=self._identity.id,
            session=self._identity.session,
            host=self._identity.host,
            pid=self._identity.pid,
            at=now(),
        )
        started = await report(self._commands, WORKER, self._identity.id, lambda: command, context)
        self._note(started.state)
        await self._queues.prepare(self._identity.id)
        self._note_shortage(self._room.shortage())
        await self._announce()
        _log.info("worker started", id=self._identity.id, paused=started.state.paused)
        async with (
            during(self._keep_announcing()) as announcing,
            during(self._watch(started.sequence)) as watching,
            during(self._keep_room()) as keeping,
        ):
            await self._take_until_stopped(announcing, watching, keeping)
        stopped = await report(
            self._commands,
            WORKER,
            self._identity.id,
            lambda: StopWorker(session=self._identity.session, at=now()),
            context,
            patience=5.0,
        )
        if stopped.state.session == self._identity.session:
            await self._presence.leave(self._identity.id)
        _log.info("worker stopped", id=self._identity.id)

    # Announcements to others

    @property
    def _status(self) -> WorkerStatus:
        if self._stopping.is_set():
            return WorkerStatus.DRAINING
        if self._paused:
            return WorkerStatus.PAUSED
        if self._shortage:
            return WorkerStatus.FULL
        return WorkerStatus.BUSY if self._running else WorkerStatus.IDLE

    @property
    def _jobs(self) -> tuple[str, ...]:
        return tuple(sorted({job.id for job in self._running}))

    async def _announce(self) -> None:
        cpu, memory = await asyncio.to_thread(self._usage.look)
        if self._displaced.is_set():
            return
        beat = Heartbeat(
            session=self._identity.session,
            status=self._status,
            tasks=self._jobs,
            cpu=cpu,
            memory=memory,
            concurrency=self._pace.concurrency,
            fast=self._pace.fast,
            fetches_go=self._equipment.fetches_go,
            platform=self._equipment.platform,
            version=self._version,
            engines=dict(self._equipment.engines),
            go_version=self._equipment.go_version,
            sandbox=self._equipment.sandbox,
            reason=self._shortage,
        )
        await self._presence.announce(self._identity.id, beat.encoded())

    async def _keep_announcing(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            announced = loop.time()
            with suppress(TimeoutError):
                async with asyncio.timeout(until_tick(self._pace.announce)):
                    await self._news.wait()
                    await asyncio.sleep(announced + self._pace.news - loop.time())
            self._news.clear()
            try:
                await self._announce()
            except EventLogError as error:
                _log.warning("presence not announced", error=str(error))

    # Requests of others

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
            self._displaced.set()
            self.stop()
        else:
            self._paused = worker.paused
            self._go_or_wait()
        self._news.set()

    def _go_or_wait(self) -> None:
        if self._paused or self._shortage:
            self._going.clear()
            self._held.set()
        else:
            self._going.set()
            if not self._stopping.is_set():
                self._held.clear()

    # Room on the disk

    async def _keep_room(self) -> None:
        """Look whether a job has room on the disk, and remove caches if none has. That may take longer than an announcement."""
        while True:
            await asyncio.sleep(self._pace.announce)
            self._note_shortage(await self._room.made())

    def _note_shortage(self, shortage: str) -> None:
        changed = bool(shortage) != bool(self._shortage)
        self._shortage = shortage
        if changed:
            _log.warning("no jobs are taken", reason=shortage) if shortage else _log.info("jobs are taken again")
            self._go_or_wait()
            self._news.set()

    # Jobs

    async def _take_until_stopped(self, *needed: asyncio.Task[None]) -> None:
        """Take jobs until a stop is requested, or until one of the `needed` tasks has failed."""
        loop = asyncio.get_running_loop()
        end = loop.time()
        takers = [asyncio.create_task(self._take(slot)) for slot in self._slots()]
        try:
            async with during(self._stopping.wait()) as stopping:
                await asyncio.wait({stopping, *takers, *needed}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            end = loop.time() + self._pace.drain
            _, left = await asyncio.wait(takers, timeout=self._pace.drain)
            if left:
                _log.warning("jobs are handed back", jobs=self._jobs)
        finally:
            for taker in takers:
                taker.cancel()
            results = await asyncio.gather(*takers, return_exceptions=True)
            await self._handlers.settled(max(end - loop.time(), REPORTING))
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _slots(self) -> Sequence[Sequence[WorkQueue]]:
        """Return the queues of each slot."""
        scans = (self._queues.of(self._identity.id, fast=False), self._queues.scan)
        short = (self._queues.of(self._identity.id, fast=True), self._queues.fast)
        if self._pace.once:
            return [(*short, *scans)]
        return [scans] * self._pace.concurrency + [short] * self._pace.fast

    async def _take(self, queues: Sequence[WorkQueue]) -> None:
        while not self._stopping.is_set():
            if not self._going.is_set():
                await self._until_going_or_stopping()
                continue
            try:
                job = await next_job(queues, until_tick(self._pace.fetch), self._held)
                if job is not None:  # the disk may have become full while the slot waited
                    self._note_shortage(self._room.shortage())
                if job is not None and self._held.is_set():
                    await job.nak(0)
                    continue
            except EventLogError as error:
                _log.warning("no jobs can be fetched", error=str(error))
                await asyncio.sleep(BACK_OFF)
                continue
            if job is None:
                continue
            await self._see_through(job)
            if self._pace.once:
                self.stop()

    async def _see_through(self, job: Job) -> None:
        self._running.add(job)
        self._news.set()
        reporting: asyncio.Task[None] | None = None
        try:
            reporting = await self._handlers.handle(job)
        except EventLogError as error:
            # The control plane gives up an attempt that is not among the announced jobs.
            _log.error("job abandoned", id=job.id, error=str(error))
        finally:
            if reporting is None:
                self._ended(job)
            else:
                reporting.add_done_callback(lambda _: self._ended(job))

    def _ended(self, job: Job) -> None:
        self._running.remove(job)
        self._news.set()

    async def _until_going_or_stopping(self) -> None:
        async with during(self._going.wait()) as going, during(self._stopping.wait()) as stopping:
            await asyncio.wait({going, stopping}, return_when=asyncio.FIRST_COMPLETED)


async def next_job(queues: Sequence[WorkQueue], seconds: float, held: asyncio.Event) -> Job | None:
    """Return the next job: of the first queue that has one at once, else of whichever gets one first.

    None: none comes within `seconds`, or `held` is set. A second job that comes at the same moment goes back to its queue.
    Raises Unavailable, OutcomeUnknown.
    """
    for queue in queues:
        if (job := await queue.fetch_now()) is not None:
            return job
    fetching = [asyncio.create_task(queue.fetch(seconds)) for queue in queues]
    holding = asyncio.create_task(held.wait())
    taken: Job | None = None
    try:
        await asyncio.wait({*fetching, holding}, return_when=asyncio.FIRST_COMPLETED)
        taken = next((job for task in fetching if task.done() and (job := task.result()) is not None), None)
    finally:
        for task in (*fetching, holding):
            task.cancel()
        for result in await asyncio.gather(*fetching, holding, return_exceptions=True):
            if isinstance(result, Job) and result is not taken:
                await result.nak(0)
    return taken
