"""Unparking: the waiting commits are applied in order, and then the aggregate continues with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from eventlog import AggregateDamaged, AggregateId, Commit, EventLog, SequenceGap
from projections.errors import NotParked, RowRefused
from projections.model import Change, Projection
from projections.projector.derive import Batch, changes_of
from projections.projector.parking import parked
from projections.projector.writer import CheckpointWriter
from projections.store import Parked, Place, Step

_AT_ONCE = 500
"""Commits of an aggregate that one transaction takes up: the others wait for it."""


@attrs.frozen(kw_only=True)
class Unparked:
    """Result of an unpark: the aggregates that are completely applied, and the aggregates that stay parked, as they are now."""

    freed: Sequence[Parked]
    parked: Sequence[Parked]


async def unpark(event_log: EventLog, advancing: CheckpointWriter, projection: str | None, subject: str | None) -> Unparked:
    """Unpark aggregates, of one projection or all, of one aggregate or all, in the order of the log.

    An aggregate whose commits cannot be applied yet stays parked, at the first such commit. Raises NotParked if there is no such
    aggregate, Unavailable, StoreUnavailable.
    """
    wanted = [one for one in advancing.parked.values() if projection in {None, one.projection} and subject in {None, one.subject}]
    if not wanted and (projection is not None or subject is not None):
        where = " ".join(part for part in (projection, subject) if part is not None)
        raise NotParked(f"no aggregate is parked under {where}")
    freed: list[Parked] = []
    left = sorted(wanted, key=lambda one: one.sequence)
    before = -1
    while left and len(left) != before:  # rows of one may refer to rows of another: while any is freed, the others may be next
        before = len(left)
        for one in tuple(left):
            if await _take_up(event_log, advancing, one):
                left.remove(one)
                freed.append(one)
    return Unparked(freed=freed, parked=[advancing.parked[one.place] for one in left])


async def _take_up(event_log: EventLog, advancing: CheckpointWriter, one: Parked) -> bool:
    """Apply what waits of one aggregate; whether all of it is applied."""
    while True:
        async with advancing.turn:
            found = advancing.parked.get(one.place)
            if found is None:
                return True
            try:
                commits = await _waiting(event_log, found)
            except (SequenceGap, AggregateDamaged) as error:
                await advancing.write(Batch((), {found.place: attrs.evolve(found, error=str(error), traceback="")}))
                return False
            if not commits or not await _take_up_rows(advancing, found, commits):
                return False


async def _waiting(event_log: EventLog, one: Parked) -> Sequence[Commit]:
    """The first waiting commits, up to one that cannot be read. Raises SequenceGap if that is the first, AggregateDamaged."""
    commits: list[Commit] = []
    reached = one.sequence - 1
    async for commit in event_log.history(AggregateId.parse(one.subject), after=reached):
        if (guard := commit.guard or 0) > reached:
            if not commits:
                raise SequenceGap(guard, None)
            break
        if commit.sequence > one.last or len(commits) == _AT_ONCE:
            break
        commits.append(commit)
        reached = commit.sequence
    return commits


async def _take_up_rows(advancing: CheckpointWriter, one: Parked, commits: Sequence[Commit]) -> bool:
    """Apply the first waiting commits, and return whether to continue."""
    projection = next((p for p in advancing.model.projections if p.name == one.projection), None)
    if projection is None:  # the model of an older program has it
        return False
    broken = await advancing.broken_of(commits)
    while True:
        changes, applied, error = changes_of(projection, commits, broken)
        try:
            await _write(advancing, projection, changes, _left(one, commits, applied, error), applied)
        except RowRefused as refused:
            if len(commits) > 1:
                commits = commits[: len(commits) // 2]
                continue
            await _write(advancing, projection, (), _left(one, commits, 0, refused), 0)
            return False
        return error is None


async def _write(
    advancing: CheckpointWriter,
    projection: Projection,
    changes: Sequence[Change],
    left: Mapping[Place, Parked | None],
    applied: int,
) -> None:
    before = advancing.checkpoints[projection.name]
    after = attrs.evolve(before, applied=before.applied + applied)
    await advancing.write(Batch([Step(projection=projection, before=before, after=after, changes=changes)], left))


def _left(one: Parked, commits: Sequence[Commit], done: int, error: Exception | None) -> Mapping[Place, Parked | None]:
    """Return the rest that stays parked after `done` of the commits have been applied, and the next one fails with an error."""
    if done and commits[done - 1].sequence >= one.last:
        return {one.place: None}
    waiting = max(1, one.waiting - done)
    if error is not None:
        again = parked(one.projection, commits[done], error, one.at)
        return {one.place: attrs.evolve(again, waiting=waiting, last=one.last)}
    return {one.place: attrs.evolve(one, sequence=commits[done - 1].sequence + 1, waiting=waiting)}
