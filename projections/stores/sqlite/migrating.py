"""A migration of the tables in an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from projections.errors import MigrationError
from projections.model import Projection
from projections.store import SchemaVersion
from projections.stores.names import changed_by
from projections.stores.sqlite import schema, writing


def migrate(
    writer: sqlite3.Connection, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
) -> Sequence[str] | None:
    """Run the statements of one migration in a transaction that has begun, and empty the projections whose tables change.

    Return the names of these projections; None if the tables do not have the version `before`. Raises MigrationError.
    """
    if schema.read_version(writer) != before:
        return None
    schema.make_within(writer)
    old = schema.shapes(writer, projections)
    _execute(writer, sql)
    new = schema.shapes(writer, projections)
    changed = changed_by(projections, old, new)
    for projection in reversed(changed):
        left = [table.name for table in reversed(projection.tables) if table.name in new]
        writing.forget(writer, projection.name, left)
    schema.write_version(writer, after)
    return [projection.name for projection in changed]


def _execute(writer: sqlite3.Connection, script: str) -> None:
    for statement in schema.statements(script):
        try:
            writer.execute(statement)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
                raise
            raise MigrationError(
                f"a statement of the migration failed, it had no effect: {error}: {statement.strip()}"
            ) from error
