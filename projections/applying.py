"""From commits to what is to be written: pure, so that it runs in any thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat

import attrs

from eventlog import Commit, EventLogError, SequenceGap
from projections.errors import PoisonedCommit
from projections.model import Change, Handler, Projection
from projections.store import Checkpoint, KeyRecord, Step


@attrs.frozen
class Batch:
    """What commits lead to: a step for each projection that has not applied them yet, and their idempotency keys."""

    steps: Sequence[Step]
    keys: Sequence[KeyRecord]


def check_contiguous(commits: Sequence[Commit], after: int) -> None:
    """See that no sequence is missing or comes twice. Raises SequenceGap."""
    for expected, commit in enumerate(commits, start=after + 1):
        if commit.sequence != expected:
            raise SequenceGap(expected, commit.sequence)


def apply(
    projections: Sequence[Projection],
    checkpoints: Mapping[str, Checkpoint],
    incarnation: str,
    commits: Sequence[Commit],
) -> Batch:
    """Apply commits, each projection those above its checkpoint. Raises PoisonedCommit."""
    keys = _keys(commits)
    by_category: defaultdict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        by_category[commit.category].append(commit)
    begin, end = commits[0].sequence, commits[-1].sequence
    steps = (_step(p, checkpoints.get(p.name), incarnation, begin, end, by_category) for p in projections)
    return Batch([step for step in steps if step is not None], keys)


def _keys(commits: Sequence[Commit]) -> Sequence[KeyRecord]:
    try:
        return [
            KeyRecord(event.key, event.fingerprint, commit.subject, commit.sequence)
            for commit in commits
            for event in commit.body.events
            if event.key is not None
        ]
    except EventLogError:
        for commit in commits:
            _check_readable(commit)
        raise


def _check_readable(commit: Commit) -> None:
    try:
        commit.body  # noqa: B018 - decoded at the first look
    except EventLogError as error:
        raise PoisonedCommit(commit.sequence, commit.subject, None, str(error)) from error


def _step(
    projection: Projection,
    before: Checkpoint | None,
    incarnation: str,
    begin: int,
    end: int,
    by_category: Mapping[str, Sequence[Commit]],
) -> Step | None:
    reached, applied = (0, 0) if before is None else (before.sequence, before.applied)
    if end <= reached:
        return None
    work = []
    for category, handler in projection.handlers.items():
        commits: Collection[Commit] = by_category.get(category, ())
        if begin <= reached:
            commits = [commit for commit in commits if commit.sequence > reached]
        applied += len(commits)
        if category in projection.latest:
            commits = {commit.subject: commit for commit in commits}.values()
        work.append(zip(commits, repeat(handler)))
    handled: Iterable[tuple[Commit, Handler]] = chain.from_iterable(work)
    if len(work) > 1 or projection.latest:
        handled = sorted(handled, key=_by_sequence)
    changes: list[Change] = []
    for commit, handler in handled:
        try:
            changes += handler(commit)
        except Exception as error:
            reason = str(error) if isinstance(error, EventLogError) else repr(error)
            raise PoisonedCommit(commit.sequence, commit.subject, projection.name, reason) from error
    after = Checkpoint(
        projection=projection.name, version=projection.version, incarnation=incarnation, sequence=end, applied=applied
    )
    return Step(projection=projection, before=before, after=after, changes=changes)


def _by_sequence(handled: tuple[Commit, Handler]) -> int:
    return handled[0].sequence
