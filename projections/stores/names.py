"""The SQL that both databases have in common: the names of the tables of the store itself, quoting, and replacing rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from projections.errors import StoreForeign
from projections.model import Projection, Table
from projections.store import Checkpoint, Parked

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
