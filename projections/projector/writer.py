"""Advancing a read model: commits are applied and stored, with rows, checkpoints and parked aggregates in one transaction.

Unparking applies the waiting commits of an aggregate in order, and then the aggregate continues with the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import ParamSpec, TypeVar

import attrs
import structlog

from eventlog import AggregateDamaged, AggregateId, Commit, EventLog, SequenceGap, Unavailable
from eventlog.support.chain import Break, LinkCheck, LinkChecker, fingerprints, link_faults
from eventlog.support.timers import Backoff
from projections.errors import ChainBroken, CheckpointMoved, NotParked, RowRefused, StoreUnavailable, Stray
from projections.model import Change, Projection, ReadModel
from projections.projector.continuity import Tip, check_known
from projections.projector.derive import Batch, Broken, Parking, apply, by_place, changes_of, parked
from projections.projector.status import DATABASE, ProjectorProgress
from projections.store import Checkpoint, CheckpointOutcome, Mark, Parked, Place, Step, Store

log = structlog.get_logger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

INLINE = 100
"""Up to this number, commits are applied in the event loop itself, in about 2 ms. A thread would keep the interpreter's lock all
that time, and takes time to wake."""


def backoff() -> Backoff:
    """The pauses between two looks at a missing log or database: the system continues with at most one second of delay."""
    return Backoff(0.1, 1.0)


class CheckpointWriter:
    """The checkpoints of the projections of a read model, and their changes. One task at a time has the `turn`."""

    def __init__(
        self, event_log: EventLog, store: Store, model: ReadModel, progress: ProjectorProgress, now: Callable[[], datetime]
    ) -> None:
        self._log = event_log
        self._links = LinkChecker()
        self.store = store
        self.model = model
        self.turn = asyncio.Lock()
        self.incarnation = ""
        self.checkpoints: dict[str, Checkpoint] = {}
        self.parked: dict[Place, Parked] = {}
        self._tip = Tip.at(model.stream, 0, ())
        self._marks: dict[int, Mark] = {}
        self._progress = progress
        self.now = now

    @property
    def lowest(self) -> int:
        """The sequence up to which every projection is applied."""
        return min((self.sequence_of(projection.name) for projection in self.model.projections), default=0)

    @property
    def highest(self) -> int:
        """The highest sequence that any projection has applied."""
        return max((self.sequence_of(projection.name) for projection in self.model.projections), default=0)

    def sequence_of(self, projection: str) -> int:
        """The sequence up to which a projection is applied."""
        found = self.checkpoints.get(projection)
        return 0 if found is None else found.sequence

    async def load(self) -> None:
        """Read the checkpoints and the parked aggregates."""
        await self.note(await self.patiently(DATABASE, self.store.checkpoints))

    async def note(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Adopt the checkpoints that any process has stored."""
        self.checkpoints = {p.name: checkpoints[p.name] for p in self.model.projections if p.name in checkpoints}
        self.parked = by_place(await self.patiently(DATABASE, self.store.parked))

    async def begin(self, sequence: int) -> None:
        """Commits are given from now on that follow this sequence."""
        self._tip = Tip.at(self.model.stream, sequence, self.checkpoints.values())
        self._links.begin()
        marks = await self.patiently(DATABASE, lambda: self.store.marks(self.model.stream, above=sequence))
        self._marks = {mark.sequence: mark for mark in marks}

    def record_at(self, sequence: int) -> str | None:
        """The digest of the commit at a sequence, if a checkpoint is there that has it."""
        return next((checkpoint.record for checkpoint in self.checkpoints.values() if checkpoint.sequence == sequence), None)

    async def advance(self, commits: Sequence[Commit], show: Callable[[Sequence[Commit]], None]) -> None:
        """Apply and store commits, and show the stored ones.

        If the database refuses a row, the commits are halved until the faulty one is found. Raises LogDiverged if commits differ
        from the ones that some projection has applied before.
        """
        made, looked = await _aside(commits, _looked_at, self._links, commits)
        broken = await self._broken(looked)
        await self._advance(commits, made, show, broken)

    async def _advance(
        self,
        commits: Sequence[Commit],
        hashes: Sequence[bytes],
        show: Callable[[Sequence[Commit]], None],
        broken: Broken,
    ) -> None:
        """Apply and store commits; if the database refuses a row, in smaller and smaller parts."""
        tip, batch = await _aside(commits, self._batch_after, commits, hashes, broken)
        check_known(commits, tip, self.checkpoints.values(), self._marks)
        try:
            await self.write(batch)
        except RowRefused as error:
            if len(commits) > 1:
                half = len(commits) // 2
                await self._advance(commits[:half], hashes[:half], show, broken)
                await self._advance(commits[half:], hashes[half:], show, broken)
                return
            await self._advance_apart(commits[0], tip, error, broken)
        self._tip = attrs.evolve(tip, marks=())
        show(commits)

    async def broken_of(self, commits: Sequence[Commit]) -> Broken:
        """The commits of one aggregate that do not follow the commit before."""
        return await self._broken(_looked_at(LinkChecker(), commits)[1])

    async def _broken(self, check: LinkCheck) -> Broken:
        faults = await link_faults(check, self._at)
        return {
            sequence: Stray(sequence) if fault.kind is Break.STRAY else ChainBroken(sequence, fault.problem)
            for sequence, fault in faults.items()
        }

    async def _at(self, sequence: int) -> Commit | None:
        """The commit at a sequence; None if it cannot be read."""
        return await self.patiently("the log", lambda: self._log.at(sequence))

    async def _advance_apart(self, commit: Commit, tip: Tip, refused: RowRefused, broken: Broken) -> None:
        """Apply one commit, one projection at a time. A projection whose row is refused parks the aggregate."""
        log.info("a row is refused", read_model=self.model.name, sequence=commit.sequence, reason=str(refused))
        batch = self._apply([commit], tip, broken)
        for step in batch.steps:
            name = step.projection.name
            try:
                await self.write(Batch([step], _of(name, batch.parked), batch.marks))
            except RowRefused as error:
                applied = step.before.applied if step.before else 0
                without = attrs.evolve(step, after=attrs.evolve(step.after, applied=applied), changes=())
                await self.write(Batch([without], self._parked_for(name, commit, error), batch.marks))

    def _parked_for(self, projection: str, commit: Commit, error: Exception) -> Mapping[Place, Parked]:
        parking = Parking(self.parked, self.now())
        parking.park(projection, commit, error)
        return parking.changed

    def _batch_after(self, commits: Sequence[Commit], hashes: Sequence[bytes], broken: Broken) -> tuple[Tip, Batch]:
        """The end of the log after some more commits, and the batch of them. Runs in any thread."""
        tip = self._tip.after(commits, hashes)
        return tip, self._apply(commits, tip, broken)

    def _apply(self, commits: Sequence[Commit], tip: Tip, broken: Broken) -> Batch:
        parking = Parking(self.parked, self.now())
        return apply(self.model.projections, self.checkpoints, self.incarnation, commits, parking, tip, broken)

    async def write(self, batch: Batch) -> None:
        """Store a batch. Raises RowRefused, CheckpointMoved."""
        tries = 0

        async def store() -> CheckpointOutcome:
            nonlocal tries
            tries += 1
            return await self.store.advance(batch.steps, batch.parked, batch.marks)

        outcome = await self.patiently(DATABASE, store)
        if outcome is CheckpointOutcome.MISMATCH or (outcome is CheckpointOutcome.ALREADY and tries == 1):
            raise CheckpointMoved(
                f"another projector has moved the checkpoints of read model {self.model.name!r}: only one may work on a database"
            )
        self.checkpoints |= {step.after.projection: step.after for step in batch.steps}
        for place, one in batch.parked.items():
            self._note(place, one)

    def _note(self, place: Place, entry: Parked | None) -> None:
        where = {"read_model": self.model.name, "projection": place[0], "aggregate": place[1]}
        if entry is None:
            self.parked.pop(place, None)
            log.info("aggregate unparked", **where)
            return
        if place not in self.parked:
            log.error("aggregate parked", **where, sequence=entry.sequence, reason=entry.error)
        self.parked[place] = entry

    async def patiently(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Call until it works, because the log or the database comes back."""
        waits, reason = backoff(), ""
        while True:
            try:
                result = await call()
            except (StoreUnavailable, Unavailable) as error:
                self._progress.trouble(what, error)
                if str(error) != reason:  # a long absence is one line, not one a second
                    reason = str(error)
                    log.warning(
                        "projector waits", read_model=self.model.name, position=self.lowest, reason=reason, cause=error.__cause__
                    )
                await waits.pause()
            else:
                self._progress.trouble(what, None)
                return result


def _looked_at(links: LinkChecker, commits: Sequence[Commit]) -> tuple[Sequence[bytes], LinkCheck]:
    """The fingerprints of commits, and whether the commits follow the ones before. Runs in any thread."""
    hashes = fingerprints(commits)
    return hashes, links.look(commits, hashes)


async def _aside(commits: Sequence[Commit], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of commits: in a thread if they are many."""
    if len(commits) <= INLINE:
        return function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


def _of(projection: str, parked: Mapping[Place, Parked | None]) -> Mapping[Place, Parked | None]:
    return {place: one for place, one in parked.items() if place[0] == projection}


_AT_ONCE = 500
"""Commits of an aggregate that one transaction takes up: the others wait for it."""


@attrs.frozen(kw_only=True)
class Unparked:
    """Result of an unpark: the aggregates that are completely applied, and the aggregates that stay parked, as they are now."""

    freed: Sequence[Parked]
    parked: Sequence[Parked]


async def unpark(event_log: EventLog, writer: CheckpointWriter, projection: str | None, subject: str | None) -> Unparked:
    """Unpark aggregates, of one projection or all, of one aggregate or all, in the order of the log.

    An aggregate whose commits cannot be applied yet stays parked, at the first such commit. Raises NotParked if there is no such
    aggregate, Unavailable, StoreUnavailable.
    """
    chosen = [
        entry for entry in writer.parked.values() if projection in {None, entry.projection} and subject in {None, entry.subject}
    ]
    if not chosen and (projection is not None or subject is not None):
        where = " ".join(part for part in (projection, subject) if part is not None)
        raise NotParked(f"no aggregate is parked under {where}")
    freed: list[Parked] = []
    remaining = sorted(chosen, key=lambda entry: entry.sequence)
    before = -1
    # Rows of one may refer to rows of another: while any is freed, the others may be next.
    while remaining and len(remaining) != before:
        before = len(remaining)
        for entry in tuple(remaining):
            if await _take_up(event_log, writer, entry):
                remaining.remove(entry)
                freed.append(entry)
    return Unparked(freed=freed, parked=[writer.parked[entry.place] for entry in remaining])


async def _take_up(event_log: EventLog, writer: CheckpointWriter, entry: Parked) -> bool:
    """Apply what waits of one aggregate; whether all of it is applied."""
    while True:
        async with writer.turn:
            current = writer.parked.get(entry.place)
            if current is None:
                return True
            try:
                commits = await _waiting(event_log, current)
            except (SequenceGap, AggregateDamaged) as error:
                await writer.write(Batch((), {current.place: attrs.evolve(current, error=str(error), traceback="")}))
                return False
            if not commits or not await _take_up_rows(writer, current, commits):
                return False


async def _waiting(event_log: EventLog, entry: Parked) -> Sequence[Commit]:
    """The first waiting commits, up to one that cannot be read. Raises SequenceGap if that is the first, AggregateDamaged."""
    commits: list[Commit] = []
    reached = entry.sequence - 1
    async for commit in event_log.history(AggregateId.parse(entry.subject), after=reached):
        if (guard := commit.guard or 0) > reached:
            if not commits:
                raise SequenceGap(guard, None)
            break
        if commit.sequence > entry.last or len(commits) == _AT_ONCE:
            break
        commits.append(commit)
        reached = commit.sequence
    return commits


async def _take_up_rows(writer: CheckpointWriter, entry: Parked, commits: Sequence[Commit]) -> bool:
    """Apply the first waiting commits, and return whether to continue."""
    projection = next((p for p in writer.model.projections if p.name == entry.projection), None)
    if projection is None:  # the model of an older program has it
        return False
    broken = await writer.broken_of(commits)
    while True:
        changes, applied, error = changes_of(projection, commits, broken)
        try:
            await _write(writer, projection, changes, _still_parked(entry, commits, applied, error), applied)
        except RowRefused as refused:
            if len(commits) > 1:
                commits = commits[: len(commits) // 2]
                continue
            await _write(writer, projection, (), _still_parked(entry, commits, 0, refused), 0)
            return False
        return error is None


async def _write(
    writer: CheckpointWriter,
    projection: Projection,
    changes: Sequence[Change],
    entries: Mapping[Place, Parked | None],
    applied: int,
) -> None:
    before = writer.checkpoints[projection.name]
    after = attrs.evolve(before, applied=before.applied + applied)
    await writer.write(Batch([Step(projection=projection, before=before, after=after, changes=changes)], entries))


def _still_parked(entry: Parked, commits: Sequence[Commit], done: int, error: Exception | None) -> Mapping[Place, Parked | None]:
    """Return the rest that stays parked after `done` of the commits have been applied, and the next one fails with an error."""
    if done and commits[done - 1].sequence >= entry.last:
        return {entry.place: None}
    waiting = max(1, entry.waiting - done)
    if error is not None:
        again = parked(entry.projection, commits[done], error, entry.at)
        return {entry.place: attrs.evolve(again, waiting=waiting, last=entry.last)}
    return {entry.place: attrs.evolve(entry, sequence=commits[done - 1].sequence + 1, waiting=waiting)}
