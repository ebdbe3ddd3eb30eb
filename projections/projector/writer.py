"""Moving a read model on: commits are applied and stored, rows, checkpoints and what is parked in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import attrs
import structlog

from eventlog import Commit, Unavailable
from projections.errors import CheckpointMoved, RowRefused, StoreUnavailable
from projections.model import ReadModel
from projections.projector.derive import Batch, ChangeSet, apply, batch_of
from projections.projector.parking import Parking, by_place
from projections.projector.status import ProjectorProgress
from projections.store import KEYS, Checkpoint, CheckpointOutcome, Parked, Place, Store

log = structlog.get_logger(__name__)

T = TypeVar("T")

INLINE = 32
"""Up to so many commits are applied in the event loop itself: a thread would take longer to wake."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks at what is away: so much later than it could a system goes on."""


class CheckpointWriter:
    """Where the projections of a read model stand, and what moves them on. One at a time has its `turn`."""

    def __init__(self, store: Store, model: ReadModel, progress: ProjectorProgress, now: Callable[[], datetime]) -> None:
        self.store = store
        self.model = model
        self.turn = asyncio.Lock()
        self.incarnation = ""
        self.checkpoints: dict[str, Checkpoint] = {}
        self.parked: dict[Place, Parked] = {}
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
        """Read checkpoints and what is parked."""
        await self.note(await self.patiently("the database", self.store.checkpoints))

    async def note(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Take it that the projections have come this far, by whomever."""
        self.checkpoints = {p.name: checkpoints[p.name] for p in self.model.projections if p.name in checkpoints}
        self.parked = by_place(await self.patiently("the database", self.store.parked))

    async def advance(
        self, commits: Sequence[Commit], show: Callable[[Sequence[Commit]], None], derived: ChangeSet | None = None
    ) -> None:
        """Apply and store commits, and show what is stored. `derived` is what they lead to, where that is known already.

        Where the database refuses a row of them they go in ever smaller parts, to find whose it is.
        """
        try:
            if derived is None:
                await self.write(await self._apply(commits))
            else:
                end = commits[-1].sequence
                await self.write(batch_of(self.model.projections, self.checkpoints, self.incarnation, end, derived))
        except RowRefused as error:
            if len(commits) > 1:
                half = len(commits) // 2
                await self.advance(commits[:half], show)
                await self.advance(commits[half:], show)
                return
            await self._advance_apart(commits[0], error)
        show(commits)

    async def _advance_apart(self, commit: Commit, refused: RowRefused) -> None:
        """Apply and store one commit of which a row is refused, each projection for itself; who cannot parks the aggregate."""
        log.info("a row is refused", read_model=self.model.name, sequence=commit.sequence, reason=str(refused))
        batch = await self._apply([commit])
        try:
            await self.write(Batch((), batch.keys, _of(KEYS.name, batch.parked)))
        except RowRefused as error:
            await self.write(Batch((), (), self._parked_for(KEYS.name, commit, error)))
        for step in batch.steps:
            name = step.projection.name
            try:
                await self.write(Batch([step], (), _of(name, batch.parked)))
            except RowRefused as error:
                applied = step.before.applied if step.before else 0
                without = attrs.evolve(step, after=attrs.evolve(step.after, applied=applied), changes=())
                await self.write(Batch([without], (), self._parked_for(name, commit, error)))

    def _parked_for(self, projection: str, commit: Commit, error: Exception) -> Mapping[Place, Parked]:
        parking = Parking(self.parked, self.now())
        parking.park(projection, commit, error)
        return parking.changed

    async def _apply(self, commits: Sequence[Commit]) -> Batch:
        parking = Parking(self.parked, self.now())
        arguments = (self.model.projections, self.checkpoints, self.incarnation, commits, parking)
        if len(commits) <= INLINE:
            return apply(*arguments)
        return await asyncio.to_thread(apply, *arguments)

    async def write(self, batch: Batch) -> None:
        """Store a batch. Raises RowRefused, CheckpointMoved."""
        tries = 0

        async def store() -> CheckpointOutcome:
            nonlocal tries
            tries += 1
            return await self.store.advance(batch.steps, batch.keys, batch.parked)

        outcome = await self.patiently("the database", store)
        if outcome is CheckpointOutcome.MISMATCH or (outcome is CheckpointOutcome.ALREADY and tries == 1):
            raise CheckpointMoved(
                f"another projector has moved the checkpoints of read model {self.model.name!r}: only one may work on a database"
            )
        self.checkpoints |= {step.after.projection: step.after for step in batch.steps}
        for place, one in batch.parked.items():
            self._note(place, one)

    def _note(self, place: Place, one: Parked | None) -> None:
        where = {"read_model": self.model.name, "projection": place[0], "aggregate": place[1]}
        if one is None:
            self.parked.pop(place, None)
            log.info("aggregate unparked", **where)
            return
        if place not in self.parked:
            log.error("aggregate parked", **where, sequence=one.sequence, reason=one.error)
        self.parked[place] = one

    async def patiently(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Call until it works: what is away comes back."""
        waits, reason = pauses(), ""
        while True:
            try:
                result = await call()
            except (StoreUnavailable, Unavailable) as error:
                self._progress.trouble(what, error)
                if str(error) != reason:  # what is away for long is one line, not one a second
                    reason = str(error)
                    log.warning("projector waits", read_model=self.model.name, position=self.lowest, reason=reason)
                await asyncio.sleep(next(waits))
            else:
                self._progress.trouble(what, None)
                return result


def pauses() -> Iterator[float]:
    """Seconds to wait before each further try."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _of(projection: str, parked: Mapping[Place, Parked | None]) -> Mapping[Place, Parked | None]:
    return {place: one for place, one in parked.items() if place[0] == projection}
