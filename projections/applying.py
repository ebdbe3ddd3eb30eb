"""From commits to what is to be written: pure, so that it runs in any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from eventlog import Commit, EventLogError, SequenceGap
from projections.errors import PoisonedCommit
from projections.model import Change, Projection
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
    chosen = _Chosen([commit.category for commit in commits], {commit.subject: commit for commit in commits})
    steps = (_step(p, checkpoints.get(p.name), incarnation, commits, chosen) for p in projections)
    return Batch([step for step in steps if step is not None], keys)


@attrs.frozen
class _Chosen:
    """What is found out once for all projections: the category of each commit, the last commit of each subject."""

    categories: Sequence[str]
    last: Mapping[str, Commit]


def _keys(commits: Sequence[Commit]) -> Sequence[KeyRecord]:
    records = []
    for commit in commits:
        try:
            events = commit.body.events
        except EventLogError as error:
            raise PoisonedCommit(commit.sequence, commit.subject, None, str(error)) from error
        records += [
            KeyRecord(event.key, event.fingerprint, commit.subject, commit.sequence) for event in events if event.key is not None
        ]
    return records


def _step(
    projection: Projection, before: Checkpoint | None, incarnation: str, commits: Sequence[Commit], chosen: _Chosen
) -> Step | None:
    reached = 0 if before is None else before.sequence
    if commits[-1].sequence <= reached:
        return None
    changes: list[Change] = []
    applied = 0 if before is None else before.applied
    handlers, latest = projection.handlers, projection.latest
    for commit, category in zip(commits, chosen.categories, strict=True):
        handler = handlers.get(category)
        if handler is None or commit.sequence <= reached:
            continue
        applied += 1
        if category in latest and chosen.last[commit.subject] is not commit:
            continue
        try:
            changes.extend(handler(commit))
        except Exception as error:
            reason = str(error) if isinstance(error, EventLogError) else repr(error)
            raise PoisonedCommit(commit.sequence, commit.subject, projection.name, reason) from error
    after = Checkpoint(
        projection=projection.name,
        version=projection.version,
        incarnation=incarnation,
        sequence=commits[-1].sequence,
        applied=applied,
    )
    return Step(projection=projection, before=before, after=after, changes=changes)
