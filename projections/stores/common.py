"""The common part of both databases: names of the tables of a store itself, SQL, and the last change of each row of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import attrs

from projections.errors import RowRefused, StoreForeign
from projections.model import Projection, Put, Table
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
    """The end of an INSERT: a row replaces the one of the same key."""
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

    Raises RowRefused for a change that does not fit the projection's tables.
    """
    tables: dict[str, Rows] = {table.name: {} for table in step.projection.tables}
    with _fitting(step):
        for change in step.changes:
            table = change.table
            rows = tables[table.name]
            if isinstance(change, Put):
                rows[table.key_of(change.row)] = change.row
            else:
                rows[change.key if len(change.key) > 1 else change.key[0]] = None
        for table in step.projection.tables:
            if table.timestamps:
                _check_times(table, tables[table.name])
    return [(table, rows) for table in step.projection.tables if (rows := tables[table.name])]


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
