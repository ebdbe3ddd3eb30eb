"""The projector: follows the log and brings a read model up to date, batch by batch, rows and checkpoints in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

import structlog

from eventlog import Commit, EventLog, Head, IncarnationChanged, LogDamaged, LogTruncated, Unavailable
from projections.applying import Batch, apply, check_contiguous
from projections.backlog import Backlog
from projections.errors import (
    Behind,
    CheckpointMoved,
    PoisonedCommit,
    ProjectionError,
    ProjectorStopped,
    RowRefused,
    StoreUnavailable,
)
from projections.model import Projection, ReadModel
from projections.status import Progress, ProjectorStatus
from projections.store import Checkpoint, KeyRecord, Outcome, Store
from projections.waiting import Waiters

log = structlog.get_logger(__name__)

T = TypeVar("T")
OnApplied = Callable[[Sequence[Commit]], None]

BATCH = 10_000
"""Commits that one transaction takes at most: the more, the more rows of it are written once for several commits."""
_INLINE = 32
"""Up to so many commits are applied in the event loop itself: a thread would take longer to wake."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_HEAD_EVERY = 1.0
_TRIES_AHEAD = 5
"""How often the log is asked again, over some three seconds, before a checkpoint that is ahead of it is believed to be."""


class Projector:
    """Applies one log to one read model.

    `on_applied` is called after each transaction, in the event loop, with the commits that have become visible, in order;
    commits that are applied again by a projection that begins anew are not given again. `now` is the clock, for the lag.
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
        self._on_applied = on_applied
        self._progress = Progress(now)
        self._waiters = Waiters()
        self._incarnation = ""
        self._checkpoints: dict[str, Checkpoint] = {}
        self._shown = 0

    @property
    def position(self) -> int:
        """The sequence up to which every projection is applied: what is read now is true for at least this."""
        return self._waiters.reached

    def status(self) -> ProjectorStatus:
        """State, position, lag, rate, now."""
        return self._progress.status()

    async def wait_for(self, sequence: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the promise: Behind, in that time
        """Return when everything up to `sequence` can be read, woken by the projector.

        Raises Behind after `timeout` seconds, ProjectorStopped.
        """
        await self._waiters.wait(sequence, timeout)

    async def run(self, *, until: int | None = None) -> None:
        """Follow the log for ever, or up to sequence `until`.

        While the log or the database is away it stays on its checkpoint, tries again and goes on by itself. Raises
        ProjectorStopped where going on would skip or repeat something: a hole, a changed, truncated or exchanged stream,
        another projector on the same checkpoints, a commit that cannot be applied, a damaged database.
        """
        reason = ProjectorStopped("the projector has ended")
        failure: ProjectorStopped | None = None
        try:
            await self._follow(until)
        except ProjectorStopped as error:
            reason = failure = error
            raise
        except Exception as error:
            reason = failure = ProjectorStopped(self._reason(error))
            raise failure from error
        finally:
            if failure is not None:
                log.error("projector stopped", read_model=self._model.name, position=self.position, reason=str(failure))
            self._progress.stop(failure)
            self._waiters.fail(reason)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, LogDamaged):
            return (
                f"stream {self._model.stream}: {error}. Restore the stream; or, if it was replaced on purpose, remove the "
                "database: the read model is made again from the log"
            )
        return str(error) if isinstance(error, ProjectionError) else f"{type(error).__name__}: {error}"

    async def _follow(self, until: int | None) -> None:
        head = await self._begin()
        position = self._lowest()
        self._progress.begin(position, head.last)
        self._waiters.advance(position)
        self._shown = max((c.sequence for c in self._checkpoints.values()), default=0)
        log.info("projector begins", read_model=self._model.name, position=position, head=head.last)
        backlog = Backlog(self._batch)
        async with _beside(self._read(backlog, position, until)), _beside(self._watch(backlog)):
            while commits := await backlog.take():
                await self._advance(commits)

    # Beginning

    async def _begin(self) -> Head:
        checkpoints = dict(await self._patiently("the database", self._store.checkpoints))
        changed = [p for p in self._model.projections if p.name in checkpoints and checkpoints[p.name].version != p.version]
        if changed:
            await self._patiently("the database", lambda: self._store.forget(changed))
            log.warning("projections have a new version and begin anew", projections=[p.name for p in changed])
            checkpoints = dict(await self._patiently("the database", self._store.checkpoints))
        self._checkpoints = {p.name: checkpoints[p.name] for p in self._model.projections if p.name in checkpoints}
        head = await self._patiently("the log", self._log.head)
        for pause in islice(_pauses(), _TRIES_AHEAD):  # a leader that was elected just now may not know its own end yet
            if all(checkpoint.sequence <= head.last for checkpoint in self._checkpoints.values()):
                break
            await asyncio.sleep(pause)
            head = await self._patiently("the log", self._log.head)
        self._incarnation = head.incarnation
        for projection in self._model.projections:
            self._check(projection, self._checkpoints.get(projection.name), head)
        return head

    def _check(self, projection: Projection, checkpoint: Checkpoint | None, head: Head) -> None:
        """See that a projection can go on in this log. Raises LogDamaged."""
        name, reached = projection.name, 0
        if checkpoint is not None:
            reached = checkpoint.sequence
            if checkpoint.incarnation != head.incarnation:
                raise IncarnationChanged(checkpoint.incarnation, head.incarnation)
        if reached > head.last:
            raise LogTruncated(f"projection {name!r} is at sequence {reached}, ahead of the log, which ends at {head.last}")
        if reached + 1 < head.first:
            raise LogTruncated(f"projection {name!r} goes on with sequence {reached + 1}, the log begins at {head.first} only")

    def _lowest(self) -> int:
        return min((c.sequence if (c := self._checkpoints.get(p.name)) else 0 for p in self._model.projections), default=0)

    # Reading and measuring, beside the writing

    async def _read(self, backlog: Backlog, after: int, until: int | None) -> None:
        pauses = _pauses()
        while True:
            try:
                async for commits in self._log.follow(after=after, until=until, batch=self._batch, incarnation=self._incarnation):
                    self._progress.trouble("reading the log", None)
                    pauses = _pauses()
                    check_contiguous(commits, after)
                    after = commits[-1].sequence
                    await backlog.put(commits)
                backlog.end()
            except Unavailable as error:
                self._progress.trouble("reading the log", error)
                await asyncio.sleep(next(pauses))
            except Exception as error:  # noqa: BLE001 - who takes from the backlog raises it
                backlog.end(error)
                return
            else:
                return

    async def _watch(self, backlog: Backlog) -> None:
        while True:
            await asyncio.sleep(_HEAD_EVERY)
            try:
                head = await self._log.head()
            except Unavailable as error:
                self._progress.trouble("the log", error)
                self._progress.blind()
            except Exception as error:  # noqa: BLE001 - as in `_read`
                backlog.end(error)
                return
            else:
                self._progress.trouble("the log", None)
                self._progress.seen(head.last)

    # Applying and writing

    async def _advance(self, commits: Sequence[Commit]) -> None:
        """Apply and store commits, all of them or those before the first one that cannot be."""
        try:
            batch = await self._apply(commits)
            self._progress.pending(commits[0].at, commits[-1].sequence)
            await self._store_batch(batch)
        except PoisonedCommit as error:
            before = [commit for commit in commits if commit.sequence < error.sequence]
            if before:
                await self._advance(before)
            raise
        except RowRefused as error:
            if len(commits) == 1:
                raise PoisonedCommit(commits[0].sequence, commits[0].subject, None, str(error)) from error
            for commit in commits:
                await self._advance([commit])
        else:
            self._show(commits)

    async def _apply(self, commits: Sequence[Commit]) -> Batch:
        arguments = (self._model.projections, self._checkpoints, self._incarnation, commits)
        if len(commits) <= _INLINE:
            return apply(*arguments)
        return await asyncio.to_thread(apply, *arguments)

    async def _store_batch(self, batch: Batch) -> None:
        tries = 0

        async def store() -> Outcome:
            nonlocal tries
            tries += 1
            return await self._store.advance(batch.steps, batch.keys)

        outcome = await self._patiently("the database", store)
        if outcome is Outcome.MISMATCH or (outcome is Outcome.ALREADY and tries == 1):
            raise CheckpointMoved(
                f"another projector has moved the checkpoints of read model {self._model.name!r}: only one may work on a database"
            )
        self._checkpoints |= {step.after.projection: step.after for step in batch.steps}

    def _show(self, commits: Sequence[Commit]) -> None:
        position = self._lowest()
        self._progress.advance(position, len(commits))
        if commits[-1].sequence > self._shown:
            new = commits if commits[0].sequence > self._shown else [c for c in commits if c.sequence > self._shown]
            self._shown = commits[-1].sequence
            if self._on_applied is not None:
                self._on_applied(new)
        self._waiters.advance(position)

    async def _patiently(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Call until it works: what is away comes back."""
        pauses = _pauses()
        while True:
            try:
                result = await call()
            except (StoreUnavailable, Unavailable) as error:
                self._progress.trouble(what, error)
                log.warning("projector waits", read_model=self._model.name, position=self.position, reason=str(error))
                await asyncio.sleep(next(pauses))
            else:
                self._progress.trouble(what, None)
                return result


class CommandKeys:
    """Where idempotency keys took effect, for `eventlog.commands`: looked up when the read model has reached far enough."""

    def __init__(self, projector: Projector, store: Store, *, timeout: float = 5.0) -> None:
        """`timeout`: seconds to wait for the read model."""
        self._projector = projector
        self._store = store
        self._timeout = timeout

    async def find(self, key: str, reached: int) -> KeyRecord | None:
        """The key's use, looked up when everything up to sequence `reached` is in the read model. Raises Unavailable."""
        try:
            await self._projector.wait_for(reached, self._timeout)
            return await self._store.find_key(key)
        except (Behind, ProjectorStopped, StoreUnavailable) as error:
            raise Unavailable(f"whether the command has taken effect before cannot be known now: {error}") from error


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something beside the body, ended with it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
