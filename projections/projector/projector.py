"""The projector: follows the log and brings a read model up to date, batch by batch, rows and checkpoints in one transaction.

Of several processes on one shared database one leads. The others stand by and show its changes as their own: the leader notifies
them when it has moved the checkpoints (`projections.store.LeaderElection`), and they read the commits from the log. So readers
are woken and event streams continue without polling.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import structlog

from eventlog import Commit, EventLog, EventLogError, Head
from eventlog.support import tracing
from eventlog.support.timers import until_one_ends
from eventlog.support.tracing import Trace
from projections.errors import Behind, CheckpointMoved, NotLeading, ProjectorStopped, StoreUnavailable
from projections.migrations import Migrations
from projections.model import ReadModel
from projections.projector.continuity import check_against, reason_of_stop
from projections.projector.reading import MOST_BYTES, REPLAY_BYTES, Backlog, ProjectorReader
from projections.projector.status import DATABASE, PositionWaiters, ProjectorProgress, ProjectorStatus
from projections.projector.writer import INLINE, CheckpointWriter, Unparked, backoff, unpark
from projections.store import LeaderElection, Parked, Place, Store


class Leadership:
    """The state of leadership, for work that only the leader does."""

    def __init__(self) -> None:
        self._gained = asyncio.Event()
        self._lost = asyncio.Event()
        self._lost.set()

    @property
    def held(self) -> bool:
        """Whether it leads now."""
        return self._gained.is_set()

    def set(self, *, held: bool) -> None:
        """It leads now, or does not."""
        now, before = (self._gained, self._lost) if held else (self._lost, self._gained)
        now.set()
        before.clear()

    async def gained(self) -> None:
        """Return when it leads."""
        await self._gained.wait()

    async def lost(self) -> None:
        """Return when it does not."""
        await self._lost.wait()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do work while it leads, from the beginning each time it leads, until the work returns. Raises the error of the work."""
        while True:
            await self.gained()
            working, _ = await until_one_ends(work(), self.lost())
            if not working.cancelled():
                working.result()
                return


async def stand_by(
    election: LeaderElection,
    writer: CheckpointWriter,
    backlog: Backlog,
    reached: Callable[[], None],
    show: Callable[[Sequence[Commit]], None],
) -> None:
    """Return when this process leads. Raises StoreUnavailable, and the errors of reading the log.

    `reached` is called when the tables can be read up to `writer.lowest`; `show` is given the commits from `backlog` up to
    there, in order, as soon as they are known here too.
    """
    moved = asyncio.Event()

    async def show_along() -> None:
        while commits := await backlog.take():
            while commits:
                ready = [commit for commit in commits if commit.sequence <= writer.lowest]
                if ready:
                    show(ready)
                    commits = commits[len(ready) :]
                else:
                    moved.clear()
                    await moved.wait()

    showing = asyncio.create_task(show_along())
    try:
        async with election.news() as news:
            async for checkpoints in news:
                if checkpoints is not None:
                    await writer.note(checkpoints)
                    reached()
                    moved.set()
                elif await election.take():
                    return
                if showing.done():
                    showing.result()
    finally:
        showing.cancel()
        await asyncio.wait({showing})


log = structlog.get_logger(__name__)

BATCH = 10_000
"""Commits that one transaction takes at most: the more, the more rows of it are written once for several commits."""
_TRIES_AHEAD = 6
"""How often a log that does not move is asked again, over some three seconds, before a checkpoint is taken to be ahead of it."""


OnApplied = Callable[[Sequence[Commit]], None]
"""Called in the event loop with commits that have become visible."""


class AppliedReports:
    """Calls `on_applied` after each transaction. Commits that a restarted projection applies a second time are left out."""

    def __init__(self, on_applied: OnApplied | None) -> None:
        self._on_applied = on_applied
        self._reported: int | None = None
        self._history: int | None = None

    def begin_after(self, sequence: int) -> None:
        """All commits after this sequence are reported. By default, all that the tables have at the beginning is history."""
        self._history = sequence

    def reached(self, highest: int) -> int:
        """Return the sequence up to which all is reported. At the beginning it is the end of the history.

        `highest` is the highest sequence that a projection has applied.
        """
        if self._reported is None:
            self._reported = highest if self._history is None else min(highest, self._history)
        return self._reported

    def skip_to(self, sequence: int) -> None:
        """All commits up to this sequence count as reported."""
        self._reported = sequence

    def report(self, commits: Sequence[Commit]) -> None:
        """Report the commits of a transaction."""
        if len(commits) <= INLINE and log.is_enabled_for(logging.DEBUG):
            for commit in commits:
                trace = commit.trace
                log.debug("commit applied", sequence=commit.sequence, subject=commit.subject, trace_id=trace and trace.trace_id)
        reported = self._reported or 0
        if commits[-1].sequence > reported:
            new = commits if commits[0].sequence > reported else [c for c in commits if c.sequence > reported]
            self._reported = commits[-1].sequence
            if self._on_applied is not None:
                self._on_applied(new)


class Projector:
    """Applies one log to one read model.

    `on_applied` is called after each transaction, in the event loop, with the commits that have become visible, in order;
    commits that a restarted projection applies a second time are left out. `now` is the clock, for the lag.
    """

    def __init__(
        self,
        event_log: EventLog,
        store: Store,
        model: ReadModel,
        *,
        batch: int = BATCH,
        on_applied: OnApplied | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = event_log
        self._store = store
        self._model = model
        self._batch = batch
        self._progress = ProjectorProgress(now)
        self._writer = CheckpointWriter(event_log, store, model, self._progress, now)
        self._reader = ProjectorReader(event_log, self._writer, self._progress, batch)
        self._reports = AppliedReports(on_applied)
        self._waiters = PositionWaiters()
        self._stopped: ProjectorStopped | None = None
        self.lead = Leadership()
        """Whether this process writes. If another one does, its changes are shown here."""

    @property
    def position(self) -> int:
        """The sequence up to which every projection is applied: a read now includes at least this sequence."""
        return self._waiters.reached

    def check_running(self) -> None:
        """Raise the ProjectorStopped that this projector has stopped for; nothing while it runs, waits, or has not begun."""
        if self._stopped is not None:
            raise self._stopped

    @property
    def parked(self) -> Mapping[Place, Parked]:
        """The aggregates that are set aside, since a commit of theirs cannot be applied."""
        return self._writer.parked

    async def end_seen(self) -> int:
        """Return the last sequence of the log, as it was asked for a few seconds ago at most if the log answers.

        Raises Unavailable if it was never known.
        """
        if self._reader.end_seen is None:
            self._reader.end_seen = (await self._log.head()).last
        return self._reader.end_seen

    @property
    def farthest(self) -> int:
        """The highest sequence that any projection has applied."""
        return self._writer.highest

    def show_after(self, sequence: int) -> None:
        """Before `run`: all that follows this sequence is shown, also what another process applies before this one begins.

        Without it what is applied when this one begins counts as history.
        """
        self._reports.begin_after(sequence)

    async def load(self) -> None:
        """Load the positions of the projections, before the first query and before `run`."""
        await self._writer.load()

    async def load_shown(self) -> None:
        """Load, for tables that are shown already: `position` is theirs from then on."""
        await self._writer.load()
        self._waiters.advance(self._writer.lowest)

    def show_nothing(self) -> None:
        """Report position 0, because empty tables replace the others, until this projector runs or loads."""
        self._waiters.advance(0)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[int]:
        """Apply no commit during the block, which is given `farthest`. Then continue with the checkpoints of the database."""
        async with self._writer.turn:
            yield self._writer.highest
            await self._writer.load()
            self._waiters.advance(max(self.position, self._writer.lowest))

    async def unpark(self, projection: str | None = None, subject: str | None = None) -> Unparked:
        """Take up what is parked: see `projections.projector.writer`. Also while this projector runs; else after `load`."""
        return await unpark(self._log, self._writer, projection, subject)

    def status(self) -> ProjectorStatus:
        """State, position, lag, rate, now."""
        return self._progress.status()

    async def wait_for(self, sequence: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the promise: Behind, in that time
        """Return when everything up to `sequence` can be read, woken by the projector.

        Raises Behind after `timeout` seconds, with the cause if the database takes no change, and ProjectorStopped.
        """
        try:
            await self._waiters.wait(sequence, timeout)
        except Behind as error:
            if (refused := self._progress.status().refused) is None:
                raise
            raise Behind(f"{error}: {refused}") from error

    async def run(self, *, until: int | None = None) -> None:
        """Follow the log for ever, or up to sequence `until`.

        While the log or the database is away it stays on its checkpoint, retries, and continues by itself. A commit that cannot
        be applied is retried. Then its aggregate is parked, and the others continue. Of several processes on one shared database
        one applies, the others show the applied commits, and one of them takes over when it ends. Raises ProjectorStopped if it
        would otherwise skip or repeat a commit: a hole, a changed, truncated or exchanged stream, another projector on the same
        checkpoints, a damaged database.
        """
        reason = ProjectorStopped("the projector has ended")
        failure: ProjectorStopped | None = None
        self._stopped = None
        self._progress.start()
        self._waiters.begin()
        try:
            await self._lead_or_stand_by(until)
        except ProjectorStopped as error:
            reason = failure = error
            raise
        except Exception as error:
            reason = failure = ProjectorStopped(await reason_of_stop(error, self._log, self._store, self._model.stream))
            raise failure from error
        finally:
            self._stopped = failure
            if failure is not None:
                log.error("projector stopped", read_model=self._model.name, position=self.position, reason=str(failure))
            self._progress.stop(failure)
            self._waiters.fail(reason)
            if failure is not None and self._store.election is not None:
                await self._store.election.release()

    # Leading, or standing by

    async def _lead_or_stand_by(self, until: int | None) -> None:
        election = self._store.election
        if election is None:
            self.lead.set(held=True)
            await self._follow(until)
            return
        while True:
            if await self._writer.patiently(DATABASE, election.take):
                try:
                    if await self._lead(election, until):
                        return
                except (NotLeading, CheckpointMoved) as error:
                    log.warning("projector begins anew", read_model=self._model.name, position=self.position, reason=str(error))
                    await election.release()
                finally:
                    self.lead.set(held=False)
            await self._stand_by(election)

    async def _lead(self, election: LeaderElection, until: int | None) -> bool:
        """Follow the log while it is this one's turn; whether it has come to its end."""
        await self._writer.patiently(DATABASE, Migrations(self._store, self._model).pending)  # not of a newer program
        self.lead.set(held=True)
        following, _ = await until_one_ends(self._follow(until), election.lost())
        if following.cancelled():
            return False
        following.result()
        return True

    async def _stand_by(self, election: LeaderElection) -> None:
        """Show what another process applies, until this one leads or looks again since the database was away."""
        head = await self._writer.patiently("the log", self._log.head)
        self._writer.incarnation = head.incarnation
        await self._writer.load()
        self._progress.begin(self._writer.lowest, head.last)
        shown = self._reports.reached(self._writer.highest)
        log.info("projector stands by", read_model=self._model.name, position=self._writer.lowest, head=head.last)
        backlog = Backlog(self._batch)
        async with self._reader.following(backlog, shown, None):
            try:
                await stand_by(election, self._writer, backlog, self._reached, self._show)
            except StoreUnavailable as error:
                self._progress.trouble(DATABASE, error)
                await backoff().pause()

    def _reached(self) -> None:
        self._progress.trouble(DATABASE, None)
        self._progress.advance(self._writer.lowest, 0)
        self._waiters.advance(self._writer.lowest)

    async def _follow(self, until: int | None) -> None:
        head = await self._begin()
        position = self._writer.lowest
        await self._writer.begin(position)
        self._progress.begin(position, head.last)
        self._waiters.advance(position)
        await self._show_missed()
        log.info("projector begins", read_model=self._model.name, position=position, head=head.last)
        backlog = Backlog(self._batch, waiters=self._waiters.waiting)
        if head.last - position > self._batch:
            backlog.most_bytes = REPLAY_BYTES
        async with self._reader.following(backlog, position, until):
            while commits := await backlog.take():
                self._progress.pending(_time_of(commits), commits[-1].sequence)
                began = time.time_ns()
                async with self._writer.turn:
                    await self._writer.advance(commits, self._show)
                if tracing.recording_spans():
                    _export_span(self._model, commits, began)
                if commits[-1].sequence >= head.last:
                    backlog.most_bytes = MOST_BYTES

    # Beginning

    async def _begin(self) -> Head:
        checkpoints = dict(await self._writer.patiently(DATABASE, self._store.checkpoints))
        changed = [p for p in self._model.projections if p.name in checkpoints and checkpoints[p.name].version != p.version]
        if changed:
            await self._writer.patiently(DATABASE, lambda: self._store.forget(changed))
            log.warning("projections have a new version and start at the beginning", projections=[p.name for p in changed])
        await self._writer.load()
        head = await self._writer.patiently("the log", self._log.head)
        ahead = max((checkpoint.sequence for checkpoint in self._writer.checkpoints.values()), default=0)
        waits, still = backoff(), 0
        while ahead > head.last and still < _TRIES_AHEAD:  # a leader that was elected just now may not know its own end yet
            await waits.pause()
            before, head = head, await self._writer.patiently("the log", self._log.head)
            still = still + 1 if head == before else 0
        self._writer.incarnation = head.incarnation
        for projection in self._model.projections:
            check_against(head, projection.name, self._writer.checkpoints.get(projection.name))
        return head

    # Showing

    async def _show_missed(self) -> None:
        """Show what another process has applied and this one has not shown yet; at the beginning that is history."""
        highest = self._writer.highest
        shown = self._reports.reached(highest)
        if shown < highest:
            backlog = Backlog(self._batch)
            async with self._reader.reading(backlog, shown, highest):
                while commits := await backlog.take():
                    self._show(commits)
        self._reports.skip_to(highest)

    def _show(self, commits: Sequence[Commit]) -> None:
        position = self._writer.lowest
        self._progress.advance(position, len(commits))
        self._reports.report(commits)
        self._waiters.advance(position)


def _time_of(commits: Sequence[Commit]) -> datetime | None:
    """Return the time of decision of the first readable commit."""
    for commit in commits:
        with suppress(EventLogError):
            return commit.at
    return None


def _export_span(model: ReadModel, commits: Sequence[Commit], began: int) -> None:
    """Export the span of a batch, linked to the commands of its new commits. A batch of one belongs to their trace."""
    new = [commit.trace for commit in commits if not tracing.began_before(commit.at.timestamp())]
    links = list(dict.fromkeys(trace for trace in new if trace is not None and trace.sampled))[: tracing.MOST_LINKS]
    if links:
        parent = links[0] if len(commits) == 1 else None
        span = Trace.begin() if parent is None else parent.child()
        name = f"{tracing.PROCESS} {model.stream}"
        about = tracing.message_attributes(tracing.PROCESS, model.stream, count=len(commits), group=model.name)
        tracing.record_span(name, span, tracing.SpanKind.CONSUMER, began, parent=parent, links=links, attributes=about)
