"""The common part of both databases: names of the tables of a store itself, SQL, and the last change of each row of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import attrs

from projections.errors import RowRefused, StoreForeign
from projections.model import Change, Projection, Put, Table
from projections.store import Checkpoint, CheckpointOutcome, Parked, Step

CHECKPOINTS = "projection_checkpoints"
CHECKPOINT_COLUMNS = tuple(field.name for field in attrs.fields(Checkpoint))
MIGRATIONS = "schema_migrations"
PARKED = "projection_parked"
PARKED_COLUMNS = tuple(field.name for field in attrs.fields(Parked))
LEASE = "projection_lease"
"""The process that writes, and its fencing token."""
MARKS = "log_marks"
SCRUBS = "log_scrubs"
"""The state of the passes over each log, as JSON."""
LEFT_OUT = "projection_indexes"
"""The definitions of the indexes that are left out while tables are filled."""


def check_format(database: object, columns: Sequence[str]) -> None:
    """Check the columns of the table of checkpoints; none: there is no such table. Raises StoreForeign if they are not ours."""
    if columns and tuple(columns) != CHECKPOINT_COLUMNS:
        raise StoreForeign(
            f"{database} has tables of another version of this program, which are not read: remove the database. A new one is "
            "filled from the log"
        )


def quoted(name: str) -> str:
    """A table or column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def on_conflict(table: Table) -> str:
    """The end of an INSERT: a row replaces the one of the same key, except in fixed columns."""
    others = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.changing)
    action = f"UPDATE SET {others}" if others else "NOTHING"
    return f"ON CONFLICT ({', '.join(map(quoted, table.key))}) DO {action}"


def changed_by(
    projections: Sequence[Projection], before: Mapping[str, object], after: Mapping[str, object]
) -> Sequence[Projection]:
    """The projections with a table whose shape a migration has changed. The shapes are by table."""
    return [one for one in projections if any(before.get(table.name) != after.get(table.name) for table in one.tables)]


def any_row(tables: Sequence[str]) -> str:
    """A statement that looks into each of these tables."""
    return "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {quoted(table)}) AS t{place}" for place, table in enumerate(tables))  # noqa: S608 - quoted


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
