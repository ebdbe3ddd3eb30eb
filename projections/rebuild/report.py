"""The state of a read model: each projection against the log, parked aggregates, and copies. For people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from eventlog import Commit, EventLog, EventLogError, Head
from projections.model import Projection, ReadModel
from projections.rebuild.rebuild import CopyReport, copy_report
from projections.store import Checkpoint, Copies, Parked, Reader, SchemaVersion


@attrs.frozen(kw_only=True)
class ProjectionStatus:
    """A projection against the log.

    `position` is its sequence, `head` the end of the log. The lag is in commits and in seconds. `applied` commits were applied
    since its tables were empty. `parked` aggregates wait, with `waiting` commits. `problem`: why it cannot continue, None if it
    can.
    """

    projection: str
    version: int
    position: int
    head: int
    lag_events: int
    lag_seconds: float
    applied: int
    parked: int
    waiting: int
    problem: str | None


@attrs.frozen(kw_only=True)
class ReadModelReport:
    """The state of a read model at one moment."""

    read_model: str
    stream: str
    incarnation: str
    head: int
    schema: SchemaVersion
    projections: Sequence[ProjectionStatus]
    parked: Sequence[Parked]
    copies: Sequence[CopyReport]


async def standing(reader: Reader, copies: Copies | None, event_log: EventLog, model: ReadModel) -> ReadModelReport:
    """Return the state of a read model. Raises Unavailable, StoreUnavailable, StoreDamaged."""
    checkpoints, parked, schema = await reader.checkpoints(), await reader.parked(), await reader.schema()
    head = await event_log.head()
    return ReadModelReport(
        read_model=model.name,
        stream=model.stream,
        incarnation=head.incarnation,
        head=head.last,
        schema=schema,
        projections=[await _projection(p, checkpoints.get(p.name), parked, event_log, head) for p in model.projections],
        parked=parked,
        copies=[] if copies is None else [await copy_report(copies, part, model) for part in await copies.there()],
    )


async def _projection(
    projection: Projection, checkpoint: Checkpoint | None, parked: Sequence[Parked], event_log: EventLog, head: Head
) -> ProjectionStatus:
    position = 0 if checkpoint is None else checkpoint.sequence
    problem, age = problem_of(projection, checkpoint, head), 0.0
    if problem is None and position < head.last:
        if (commit := await event_log.at(position + 1)) is None:
            problem = f"sequence {position + 1} of the log cannot be read"
        else:
            age = _age(commit)
    ours = [aggregate for aggregate in parked if aggregate.projection == projection.name]
    return ProjectionStatus(
        projection=projection.name,
        version=projection.version if checkpoint is None else checkpoint.version,
        position=position,
        head=head.last,
        lag_events=max(0, head.last - position),
        lag_seconds=age,
        applied=0 if checkpoint is None else checkpoint.applied,
        parked=len(ours),
        waiting=sum(aggregate.waiting for aggregate in ours),
        problem=problem,
    )


def _age(commit: Commit) -> float:
    try:
        return max(0.0, (datetime.now(UTC) - commit.at).total_seconds())
    except EventLogError:  # if it cannot be decoded, the age is unknown
        return 0.0


def problem_of(projection: Projection, checkpoint: Checkpoint | None, head: Head) -> str | None:
    """Return why a projection cannot continue in this log, or None if it can."""
    position = 0 if checkpoint is None else checkpoint.sequence
    if checkpoint is not None and checkpoint.incarnation != head.incarnation:
        return "the stream was recreated"
    if position > head.last:
        return "ahead of the stream: its end was lost"
    if position + 1 < head.first:
        return "behind the stream: its beginning was removed"
    if checkpoint is not None and checkpoint.version > projection.version:
        return f"made by version {checkpoint.version}, this program has {projection.version}"
    return None
