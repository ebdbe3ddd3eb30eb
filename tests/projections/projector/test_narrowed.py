"""Rows of which only some columns change: the others, and the indexes on them, are left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from pantry.readmodel.tables import PRODUCTS, STOCKS
from projections.model import Change, Column, Delete, Projection, Put, Table
from projections.store import Checkpoint, Step
from projections.stores.common import last_changes, narrowed
from projections.stores.sqlite.statements import write_rows

WHOLE = Table("things", (Column("id"), Column("name"), Column("amount", "integer")), key=("id",))
AMOUNTS = WHOLE.partial("name")


def step(*changes: Change) -> Step:
    projection = Projection("things", 1, (WHOLE,), {})
    after = Checkpoint(projection="things", version=1, incarnation="i", sequence=1, applied=1)
    return Step(projection=projection, before=None, after=after, changes=changes)


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE things (id TEXT PRIMARY KEY, name TEXT, amount INTEGER)")
    connection.execute("INSERT INTO things VALUES ('a', 'one', 1)")
    return connection


def rows(database: sqlite3.Connection, *changes: Change) -> Sequence[tuple[str, str, int]]:
    """Return the rows of the table after these changes in one batch."""
    write_rows(database, narrowed(step(*changes)))
    return database.execute("SELECT * FROM things ORDER BY id").fetchall()


def test_only_what_may_change_is_changed_of_a_row_that_is_there(database: sqlite3.Connection) -> None:
    assert rows(database, Put(AMOUNTS, ("a", "not looked at", 2))) == [("a", "one", 2)]


def test_a_row_that_is_not_there_is_stored_whole(database: sqlite3.Connection) -> None:
    assert rows(database, Put(AMOUNTS, ("b", "two", 2))) == [("a", "one", 1), ("b", "two", 2)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_is_put_whole_in_the_same_batch_is_written_whole(database: sqlite3.Connection, order: int) -> None:
    changes = [Put(AMOUNTS, ("a", "new", 2)), Put(WHOLE, ("a", "new", 3))][::order]
    assert rows(database, *changes) == [("a", "new", changes[-1].row[2])]


def test_a_row_that_goes_and_comes_again_is_written_whole(database: sqlite3.Connection) -> None:
    assert rows(database, Delete(WHOLE, ("a",)), Put(AMOUNTS, ("a", "new", 2))) == [("a", "new", 2)]
    assert rows(database, Put(AMOUNTS, ("a", "new", 3)), Delete(WHOLE, ("a",))) == []


def test_other_databases_are_given_whole_rows() -> None:
    assert last_changes(step(Put(AMOUNTS, ("a", "new", 2)))) == [(WHOLE, {"a": ("a", "new", 2)})]


def test_a_movement_changes_nothing_that_lists_of_products_are_ordered_or_chosen_by() -> None:
    assert set(STOCKS.changing) == {"current_stock", "updated_at", "counted_at", "version", "undos", "sequence"}
    assert set(PRODUCTS.changing) == set(PRODUCTS.names) - {"ean13"}
