"""What a batch comes to, whichever database writes it: whether it may be written, and the last change of each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from projections.model import Change, Put, Table
from projections.store import Checkpoint, CheckpointOutcome, Step

Rows = dict[Any, tuple[Any, ...] | None]
"""By key: the row, or None where it goes."""


def judge(steps: Iterable[Step], stored: Mapping[str, Checkpoint]) -> CheckpointOutcome:
    """Whether the steps may be written on the checkpoints there are."""
    found = [(step, stored.get(step.projection.name)) for step in steps]
    if all(checkpoint == step.before for step, checkpoint in found):
        return CheckpointOutcome.STORED
    if all(checkpoint == step.after for step, checkpoint in found):
        return CheckpointOutcome.ALREADY
    return CheckpointOutcome.MISMATCH


def last_changes(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The last change of each row that a step changes, by table in the projection's order."""
    tables: dict[str, Rows] = {table.name: {} for table in step.projection.tables}
    for change in step.changes:
        table = change.table
        rows = tables[table.name]
        if isinstance(change, Put):
            rows[table.key_of(change.row)] = change.row
        else:
            rows[_key_of(change)] = None
    return [(table, tables[table.name]) for table in step.projection.tables if tables[table.name]]


def narrowed(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The same; rows that are put with fewer columns (`Table.but`) in all of their changes are apart, before the others."""
    narrow = {change.table.name: change.table for change in step.changes if not change.table.whole}
    if not narrow:
        return last_changes(step)
    wide = {(change.table.name, _key_of(change)) for change in step.changes if change.table.whole}
    found: list[tuple[Table, Rows]] = []
    for table, rows in last_changes(step):
        if table.name not in narrow:
            found.append((table, rows))
            continue
        found.append((narrow[table.name], {key: row for key, row in rows.items() if (table.name, key) not in wide}))
        found.append((table, {key: row for key, row in rows.items() if (table.name, key) in wide}))
    return [pair for pair in found if pair[1]]


def _key_of(change: Change) -> Any:
    if isinstance(change, Put):
        return change.table.key_of(change.row)
    return change.key if len(change.key) > 1 else change.key[0]
