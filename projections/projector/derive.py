"""From commits to what is to be written: pure, so that it runs in any thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat

import attrs

from eventlog import Commit, EventLogError
from projections.model import Change, Handler, Projection
from projections.projector.parking import Parking
from projections.store import KEYS, NOTHING_PARKED, Checkpoint, KeyRecord, Parked, Place, Step

TRIES = 2
"""How often a commit is tried once more, right away, before its aggregate is parked."""


@attrs.frozen
class Batch:
    """What commits lead to: a step for each projection that has not applied them yet, their idempotency keys, what is parked."""

    steps: Sequence[Step]
    keys: Sequence[KeyRecord]
    parked: Mapping[Place, Parked | None] = NOTHING_PARKED


@attrs.frozen
class Changes:
    """The changes of commits in one projection, in order, and how many commits are applied by them.

    `runs`: sequence of each commit that was handled, and how many changes there are up to the end of its own.
    """

    changes: Sequence[Change]
    runs: Sequence[tuple[int, int]]
    applied: int


@attrs.frozen
class ChangeSet:
    """What commits lead to by themselves: the changes by projection, without one that has applied them all, keys, what is parked.

    Only the rows are looked at, never the aggregates of others: what is derived of some aggregates is the same without the rest.
    """

    changes: Mapping[str, Changes]
    keys: Sequence[KeyRecord]
    parked: Mapping[Place, Parked | None] = NOTHING_PARKED


def apply(
    projections: Sequence[Projection],
    checkpoints: Mapping[str, Checkpoint],
    incarnation: str,
    commits: Sequence[Commit],
    parking: Parking,
) -> Batch:
    """Apply commits, each projection those above its checkpoint; what cannot be applied is parked."""
    derived = derive(projections, reached_of(checkpoints), commits, parking)
    return batch_of(projections, checkpoints, incarnation, commits[-1].sequence, derived)


def reached_of(checkpoints: Mapping[str, Checkpoint]) -> Mapping[str, int]:
    """The sequence up to which each projection has applied the log."""
    return {name: checkpoint.sequence for name, checkpoint in checkpoints.items()}


def derive(
    projections: Sequence[Projection], reached: Mapping[str, int], commits: Sequence[Commit], parking: Parking
) -> ChangeSet:
    """What commits lead to, in each projection those above the sequence that it has reached; what cannot be applied is parked."""
    keys = _keys([commit for commit in commits if commit.may_have_keys], parking)
    by_category: defaultdict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        by_category[commit.category].append(commit)
    begin, end = commits[0].sequence, commits[-1].sequence
    changes = {}
    for projection in projections:
        applied = reached.get(projection.name, 0)
        if end > applied:
            changes[projection.name] = _changes(projection, applied if begin <= applied else 0, by_category, parking)
    return ChangeSet(changes, keys, parking.changed)


def batch_of(
    projections: Sequence[Projection], checkpoints: Mapping[str, Checkpoint], incarnation: str, end: int, derived: ChangeSet
) -> Batch:
    """What is derived of commits up to sequence `end`, as steps from the checkpoints there are."""
    steps = []
    for projection in projections:
        before, found = checkpoints.get(projection.name), derived.changes.get(projection.name)
        if found is not None:
            after = Checkpoint(
                projection=projection.name,
                version=projection.version,
                incarnation=incarnation,
                sequence=end,
                applied=found.applied + (0 if before is None else before.applied),
            )
            steps.append(Step(projection=projection, before=before, after=after, changes=found.changes))
    return Batch(steps, derived.keys, derived.parked)


def changes_of(projection: Projection, commits: Sequence[Commit]) -> tuple[Sequence[Change], int, Exception | None]:
    """The changes of one aggregate's commits in order, how many of them can be applied, and why the next one cannot."""
    changes: list[Change] = []
    handler = projection.handlers[commits[0].category]
    for applied, commit in enumerate(commits):
        if error := _handle(handler, commit, changes):
            return changes, applied, error
    return changes, len(commits), None


def keys_of(commit: Commit) -> Sequence[KeyRecord]:
    """The idempotency keys that a commit bears. Raises UndecodableCommit."""
    return [
        KeyRecord(event.key, event.fingerprint, commit.subject, commit.sequence)
        for event in commit.body.events
        if event.key is not None
    ]


def _keys(commits: Sequence[Commit], parking: Parking) -> Sequence[KeyRecord]:
    try:
        return [
            KeyRecord(event.key, event.fingerprint, commit.subject, commit.sequence)
            for commit in commits
            for event in commit.body.events
            if event.key is not None
        ]
    except EventLogError:
        return [record for commit in commits for record in _keys_or_parked(commit, parking)]


def _keys_or_parked(commit: Commit, parking: Parking) -> Sequence[KeyRecord]:
    try:
        return keys_of(commit)
    except EventLogError as error:
        parking.park(KEYS.name, commit, error)
        return ()


def _changes(projection: Projection, reached: int, by_category: Mapping[str, Sequence[Commit]], parking: Parking) -> Changes:
    """The changes of the commits above sequence `reached`.

    Where the last commit of an aggregate would say all (`latest`) and cannot be applied, those before it count: then all of that
    aggregate are handled one by one.
    """
    name, one_by_one = projection.name, set[str]()
    while True:
        applied, work = 0, []
        for category, handler in projection.handlers.items():
            commits: Collection[Commit] = by_category.get(category, ())
            if reached:
                commits = [commit for commit in commits if commit.sequence > reached]
            if parking.holds(name):
                commits = [commit for commit in commits if not parking.take(name, commit)]
            applied += len(commits)
            if category in projection.latest:
                commits = _last(commits, one_by_one)
            work.append(zip(commits, repeat(handler)))
        handled: Iterable[tuple[Commit, Handler]] = chain.from_iterable(work)
        if len(work) > 1 or projection.latest:
            handled = sorted(handled, key=_by_sequence)
        changes, runs, poisoned = _handle_all(handled)
        again = {commit.subject for commit, _ in poisoned if commit.category in projection.latest} - one_by_one
        if not again:
            return Changes(changes, runs, applied - _park_all(name, poisoned, parking))
        one_by_one |= again


def _last(commits: Collection[Commit], one_by_one: Collection[str]) -> Collection[Commit]:
    last: dict[object, Commit] = {}
    for commit in commits:
        last[commit.sequence if commit.subject in one_by_one else commit.subject] = commit
    return last.values()


Poisoned = Sequence[tuple[Commit, Exception | None]]
"""Commits that cannot be applied, each with the reason; None: it comes after one of its aggregate that cannot be."""


def _handle_all(handled: Iterable[tuple[Commit, Handler]]) -> tuple[list[Change], list[tuple[int, int]], Poisoned]:
    changes: list[Change] = []
    runs: list[tuple[int, int]] = []
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
                continue
        runs.append((commit.sequence, len(changes)))
    return changes, runs, poisoned


def _handle(handler: Handler, commit: Commit, changes: list[Change]) -> Exception | None:
    """Add the changes of a commit, in the end those of none: then why not."""
    found: Exception | None = None
    for _ in range(TRIES):
        before = len(changes)
        try:
            changes += handler(commit)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is noted
            del changes[before:]
            found = error
        else:
            return None
    return found


def _park_all(name: str, poisoned: Poisoned, parking: Parking) -> int:
    for commit, error in poisoned:
        if error is None:
            parking.take(name, commit)
        else:
            parking.park(name, commit, error)
    return len(poisoned)


def _by_sequence(handled: tuple[Commit, Handler]) -> int:
    return handled[0].sequence
