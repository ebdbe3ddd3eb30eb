"""From commits to rows: pure, so that it runs in any thread. The aggregates of commits that cannot be applied are parked.

If the rows of each key come from one aggregate, unparking all of it in order gives the same rows as without the error. For any
other projection a rebuild does.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from itertools import chain, repeat
from types import MappingProxyType

import attrs

from eventlog import Commit, EventLogError
from eventlog.support.chain import TOMBSTONE, text_of
from projections.errors import ProjectionError
from projections.model import EVERY, Change, Handler, Projection
from projections.projector.continuity import Tip
from projections.store import NOTHING_PARKED, Checkpoint, Mark, Parked, Place, Step

_MOST_TEXT = 8_000
"""Characters of a traceback that are kept: its end, which says most."""


class Parking:
    """The parked aggregates as they are stored, and the changes of the batch that is being made.

    `now` is the time of newly parked aggregates.
    """

    def __init__(self, stored: Mapping[Place, Parked], now: datetime) -> None:
        self._stored = stored
        self._now = now
        self._projections = {projection for projection, _ in stored}
        self.changed: dict[Place, Parked] = {}
        """Aggregates that are newly parked, or have more waiting commits."""

    def holds(self, projection: str) -> bool:
        """Whether a projection has anything parked."""
        return projection in self._projections

    def take(self, projection: str, commit: Commit) -> bool:
        """Whether the commit's aggregate is parked: then it waits with it."""
        place = (projection, commit.subject)
        found = self.changed.get(place) or self._stored.get(place)
        if found is None:
            return False
        if commit.sequence > found.last:
            self.changed[place] = attrs.evolve(found, waiting=found.waiting + 1, last=commit.sequence)
        return True

    def park(self, projection: str, commit: Commit, error: Exception) -> None:
        """Park the aggregate of a commit that cannot be applied. If it is parked already, the commit waits with the others."""
        if not self.take(projection, commit):
            self._projections.add(projection)
            self.changed[projection, commit.subject] = parked(projection, commit, error, self._now)


def parked(projection: str, commit: Commit, error: Exception, at: datetime) -> Parked:
    """The aggregate of a commit, parked for an error at that commit."""
    return Parked(
        projection=projection,
        subject=commit.subject,
        sequence=commit.sequence,
        types=_types(commit),
        error=reason_of(error),
        traceback="".join(traceback.format_exception(error))[-_MOST_TEXT:],
        at=at,
        waiting=1,
        last=commit.sequence,
    )


def reason_of(error: Exception) -> str:
    """Return an error in one line, for users."""
    return str(error) if isinstance(getattr(error, "status", None), HTTPStatus) else repr(error)


def by_place(all_parked: Iterable[Parked]) -> dict[Place, Parked]:
    """Return the parked aggregates by projection and subject."""
    return {one.place: one for one in all_parked}


def _types(commit: Commit) -> str:
    try:
        return ", ".join(event.type for event in commit.body.events)
    except EventLogError:
        return ""


Broken = Mapping[int, ProjectionError]
"""By sequence: why a commit must not be applied although it can be read."""

NONE_BROKEN: Broken = MappingProxyType({})

TRIES = 2
"""How often a commit is tried once more, right away, before its aggregate is parked."""


@attrs.frozen
class Batch:
    """The result of commits: a step for each projection that has not applied them yet, and parked aggregates."""

    steps: Sequence[Step]
    parked: Mapping[Place, Parked | None] = NOTHING_PARKED
    marks: Sequence[Mark] = ()


def apply(
    projections: Sequence[Projection],
    checkpoints: Mapping[str, Checkpoint],
    incarnation: str,
    commits: Sequence[Commit],
    parking: Parking,
    tip: Tip,
    broken: Broken = NONE_BROKEN,
) -> Batch:
    """Apply commits, each projection the ones above its checkpoint. The aggregates of commits that cannot be applied are parked.

    So are the aggregates of `broken` commits. `tip` is the end of the log after the commits.
    """
    lost = {commit.sequence for commit in commits if commit.data.startswith(TOMBSTONE)}
    grouped: defaultdict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        grouped[commit.category].append(commit)
    by_category: Mapping[str, Sequence[Commit]] = {**grouped, EVERY: commits}
    begin, end = commits[0].sequence, commits[-1].sequence
    steps = []
    for projection in projections:
        before = checkpoints.get(projection.name)
        reached = 0 if before is None else before.sequence
        if end > reached:
            changes, applied = _changes(projection, reached if begin <= reached else 0, by_category, broken, lost, parking)
            after = Checkpoint(
                projection=projection.name,
                version=projection.version,
                incarnation=incarnation,
                sequence=tip.sequence,
                applied=applied + (0 if before is None else before.applied),
                record=tip.record,
                digest=text_of(tip.digest),
            )
            steps.append(Step(projection=projection, before=before, after=after, changes=changes))
    return Batch(steps, parking.changed, tip.marks)


def changes_of(
    projection: Projection, commits: Sequence[Commit], broken: Broken
) -> tuple[Sequence[Change], int, Exception | None]:
    """The changes of one aggregate's commits in order, how many of them can be applied, and why the next one cannot."""
    changes: list[Change] = []
    handler = projection.handler_of(commits[0].category)
    assert handler is not None, "a commit is parked by a projection that handles it"
    for applied, commit in enumerate(commits):
        if commit.sequence in broken:
            return changes, applied, broken[commit.sequence]
        if commit.lost is None and (error := _handle(handler, commit, changes)):
            return changes, applied, error
    return changes, len(commits), None


def _changes(
    projection: Projection,
    reached: int,
    by_category: Mapping[str, Sequence[Commit]],
    refused: Broken,
    lost: Collection[int],
    parking: Parking,
) -> tuple[Sequence[Change], int]:
    """The changes of the commits above sequence `reached`, and how many commits are applied by them.

    Tombstones, `lost`, make no changes.

    Where the last commit of an aggregate would say all (`latest`) and cannot be applied, those before it count: then all of that
    aggregate are handled one by one.
    """
    if by_category.keys().isdisjoint(projection.handlers):
        return [], 0
    name, one_by_one = projection.name, set[str]()
    to_apply = {
        category: _wanted(name, by_category.get(category, ()), reached, refused, parking) for category in projection.handlers
    }
    while True:
        applied, work = 0, []
        for category, handler in projection.handlers.items():
            commits = to_apply[category]
            applied += len(commits)
            if lost:
                commits = [commit for commit in commits if commit.sequence not in lost]
            if category in projection.latest:
                commits = _last(commits, one_by_one)
            work.append(zip(commits, repeat(handler)))
        handled: Iterable[tuple[Commit, Handler]] = chain.from_iterable(work)
        if len(work) > 1 or projection.latest:
            handled = sorted(handled, key=lambda one: one[0].sequence)
        changes, poisoned = _handle_all(handled)
        again = {commit.subject for commit, _ in poisoned if commit.category in projection.latest} - one_by_one
        if not again:
            return changes, applied - _park_all(name, poisoned, parking)
        one_by_one |= again


def _wanted(name: str, commits: Collection[Commit], reached: int, refused: Broken, parking: Parking) -> Collection[Commit]:
    """Return the commits above a sequence whose aggregate is not parked, in order. A refused commit parks it."""
    if reached:
        commits = [commit for commit in commits if commit.sequence > reached]
    if refused:
        return [commit for commit in commits if not _set_aside(name, commit, refused, parking)]
    if parking.holds(name):
        return [commit for commit in commits if not parking.take(name, commit)]
    return commits


def _set_aside(name: str, commit: Commit, refused: Broken, parking: Parking) -> bool:
    if parking.take(name, commit):
        return True
    if commit.sequence in refused:
        parking.park(name, commit, refused[commit.sequence])
        return True
    return False


def _last(commits: Collection[Commit], one_by_one: Collection[str]) -> Collection[Commit]:
    last: dict[object, Commit] = {}
    for commit in commits:
        last[commit.sequence if commit.subject in one_by_one else commit.subject] = commit
    return last.values()


Poisoned = Sequence[tuple[Commit, Exception | None]]
"""Commits that cannot be applied, each with the reason; None: it comes after one of its aggregate that cannot be."""


def _handle_all(handled: Iterable[tuple[Commit, Handler]]) -> tuple[list[Change], Poisoned]:
    changes: list[Change] = []
    poisoned: list[tuple[Commit, Exception | None]] = []
    subjects: set[str] = set()
    for commit, handler in handled:
        if subjects and commit.subject in subjects:
            poisoned.append((commit, None))
            continue
        before = len(changes)
        try:
            changes += handler(commit)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, it is tried again, then noted
            del changes[before:]
            if error := _handle(handler, commit, changes):
                subjects.add(commit.subject)
                poisoned.append((commit, error))
    return changes, poisoned


def _handle(handler: Handler, commit: Commit, changes: list[Change]) -> Exception | None:
    """Add the changes of a commit. If all tries fail, add none and return the error."""
    failure: Exception | None = None
    for _ in range(TRIES):
        before = len(changes)
        try:
            changes += handler(commit)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is noted
            del changes[before:]
            failure = error
        else:
            return None
    return failure


def _park_all(name: str, poisoned: Poisoned, parking: Parking) -> int:
    for commit, error in poisoned:
        if error is None:
            parking.take(name, commit)
        else:
            parking.park(name, commit, error)
    return len(poisoned)
