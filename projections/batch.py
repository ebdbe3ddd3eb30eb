"""What a batch comes to, whichever database writes it: whether it may be written, and the last change of each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from projections.model import Put, Table
from projections.store import Checkpoint, Outcome, Step

Rows = dict[Any, tuple[Any, ...] | None]
"""By key: the row, or None where it goes."""


def judge(steps: Iterable[Step], stored: Mapping[str, Checkpoint]) -> Outcome:
    """Whether the steps may be written on the checkpoints there are."""
    found = [(step, stored.get(step.projection.name)) for step in steps]
    if all(checkpoint == step.before for step, checkpoint in found):
        return Outcome.STORED
    if all(checkpoint == step.after for step, checkpoint in found):
        return Outcome.ALREADY
    return Outcome.MISMATCH


def last_changes(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The last change of each row that a step changes, by table in the projection's order."""
    tables: dict[str, Rows] = {table.name: {} for table in step.projection.tables}
    for change in step.changes:
        table = change.table
        rows = tables[table.name]
        if isinstance(change, Put):
            rows[table.key_of(change.row)] = change.row
        else:
            rows[change.key if len(change.key) > 1 else change.key[0]] = None
    return [(table, tables[table.name]) for table in step.projection.tables if tables[table.name]]
