"""The content of a batch for any database: whether it may be written, and the last change of each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import attrs

from projections.errors import RowRefused
from projections.model import Change, Put, Table
from projections.store import Checkpoint, CheckpointOutcome, Step

Rows = dict[Any, tuple[Any, ...] | None]
"""By key: the row, or None if it is deleted."""


def judge(steps: Iterable[Step], stored: Mapping[str, Checkpoint]) -> CheckpointOutcome:
    """Whether the steps may be written on the checkpoints there are."""
    found = [(step, stored.get(step.projection.name)) for step in steps]
    if all(checkpoint == step.before for step, checkpoint in found):
        return CheckpointOutcome.STORED
    if all(checkpoint == step.after for step, checkpoint in found):
        return CheckpointOutcome.ALREADY
    return CheckpointOutcome.MISMATCH


def last_changes(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The last change of each row that a step changes, by table in the projection's order.

    A row keeps the first value of a fixed column. Rows that are deleted and put again are apart, after the others, and no column
    of them is fixed. Raises RowRefused for a change that does not fit the projection's tables.
    """
    tables: dict[str, Rows] = {table.name: {} for table in step.projection.tables}
    found: list[tuple[Table, Rows]] = []
    with _fitting(step):
        for change in step.changes:
            table = change.table
            rows = tables[table.name]
            if isinstance(change, Put):
                rows[table.key_of(change.row)] = change.row
            else:
                rows[_key_of(change)] = None
        for table in step.projection.tables:
            rows = tables[table.name]
            if rows and table.timestamps:
                _check_times(table, rows)
            if rows and (fixed := [index for index, column in enumerate(table.columns) if column.fixed]):
                columns = tuple(attrs.evolve(column, fixed=False) for column in table.columns)
                found += zip((table, attrs.evolve(table, columns=columns)), _with_first_values(step, table, fixed), strict=True)
            else:
                found.append((table, rows))
    return [pair for pair in found if pair[1]]


def _with_first_values(step: Step, table: Table, fixed: Sequence[int]) -> tuple[Rows, Rows]:
    """The last changes of a table's rows, with the first values of the fixed columns; new rows after a deletion are apart."""
    rows: Rows = {}
    fresh: Rows = {}
    for change in step.changes:
        if change.table.name != table.name:
            continue
        key = _key_of(change)
        if not isinstance(change, Put):
            rows[key] = None
            fresh.pop(key, None)
            continue
        deleted = rows.get(key, ()) is None
        before, row = fresh.get(key) if deleted else rows.get(key), change.row
        if before is not None:
            row = tuple(before[index] if index in fixed else value for index, value in enumerate(row))
        (fresh if deleted else rows)[key] = row
    return {key: row for key, row in rows.items() if key not in fresh}, fresh


def narrowed(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The same; rows that are put with fewer columns (`Table.partial`) in all of their changes are apart, before the others."""
    with _fitting(step):
        narrow = {change.table.name: change.table for change in step.changes if not change.table.whole}
        wide = {
            (change.table.name, _key_of(change))
            for change in (step.changes if narrow else ())
            if change.table.whole or not isinstance(change, Put)
        }
    if not narrow:
        return last_changes(step)
    found: list[tuple[Table, Rows]] = []
    for table, rows in last_changes(step):
        if table.name not in narrow:
            found.append((table, rows))
            continue
        found.append((narrow[table.name], {key: row for key, row in rows.items() if (table.name, key) not in wide}))
        found.append((table, {key: row for key, row in rows.items() if (table.name, key) in wide}))
    return [pair for pair in found if pair[1]]


def _check_times(table: Table, rows: Rows) -> None:
    """Raise RowRefused for a time without a zone, which databases take for a local one."""
    for key, row in rows.items():
        gone = key if isinstance(key, tuple) else (key,)
        values = gone if row is None else [row[index] for index in table.timestamps]
        if any(isinstance(value, datetime) and value.tzinfo is None for value in values):
            raise RowRefused(f"row {row or key!r} of {table.name} has a time without a zone")


@contextmanager
def _fitting(step: Step) -> Iterator[None]:
    """Raise RowRefused if a change that a handler gave does not fit the projection's tables."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        text = f"projection {step.projection.name!r} gives a change that does not fit its tables: {error!r}"
        raise RowRefused(text) from error


def _key_of(change: Change) -> Any:
    if isinstance(change, Put):
        return change.table.key_of(change.row)
    return change.key if len(change.key) > 1 else change.key[0]
