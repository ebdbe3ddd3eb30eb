"""What a read model is: tables, projections that turn commits into rows, and the migrations that make the tables.

A projection is pure: it says which rows a commit puts or deletes, and a store applies that in bulk, in the same transaction as
the checkpoint. Rows are whole, so a later one of the same key replaces an earlier one: within a batch only the last is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from operator import itemgetter
from typing import Any, Literal

import attrs
import msgspec

from eventlog import Commit, Registry

ColumnType = Literal["text", "integer", "real", "boolean", "timestamp", "json"]

_encode = msgspec.json.Encoder().encode
_WITH_DECIMALS = len("2026-01-01T00:00:00.000001Z")


def timestamp_text(value: datetime) -> str:
    """An aware datetime as read models give it: RFC 3339, UTC, always six decimals, so that the texts sort as the times do."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    text = _encode(value)[1:-1].decode()  # six times as fast as isoformat, and replay does little else so often
    return text if len(text) == _WITH_DECIMALS else f"{text[:-1]}.000000Z"


@attrs.frozen
class Column:
    """A column. Values: str, int, float, bool, aware datetime, JSON text; None where it is empty.

    In the place of the character NUL, which Postgres cannot hold, a text may have U+FFFD.

    Read back, a timestamp is the text that `timestamp_text` gives and JSON is text, whichever store holds it; a boolean
    is what has its truth (SQLite gives 0 or 1).
    """

    name: str
    type: ColumnType = "text"
    fixed: bool = False
    """What a row has here at first it keeps: it is not written again, and neither are the indexes that only have such columns."""


@attrs.define(frozen=True, slots=False, cache_hash=True)
class Table:
    """A table of a read model: its columns in order and the names of those that make the key; not `whole`: see `but`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    whole: bool = True

    def partial(self, *steady: str) -> Table:
        """The same table, to put rows into it that differ in none of these columns from those that they replace.

        They are whole rows all the same: where there is none of the key yet, all of it is stored.
        """
        columns = tuple(attrs.evolve(column, fixed=column.fixed or column.name in steady) for column in self.columns)
        return attrs.evolve(self, columns=columns, whole=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The columns that another row under the same key is written to."""
        return tuple(column.name for column in self.columns if column.name not in self.key and not column.fixed)

    @cached_property
    def key_of(self) -> Callable[[tuple[Any, ...]], Any]:
        """Gives a row's key: a value where the key is one column, else a tuple in the order of `key`."""
        return itemgetter(*(self.names.index(name) for name in self.key))

    @cached_property
    def timestamps(self) -> tuple[int, ...]:
        """Where the columns of type `timestamp` stand in a row."""
        return tuple(index for index, column in enumerate(self.columns) if column.type == "timestamp")


class Put(msgspec.Struct, frozen=True, gc=False):  # a Struct: a replay makes more of them than of anything else
    """Insert this row, or replace the one of the same key: values in the order of the table's columns."""

    table: Table
    row: tuple[Any, ...]


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove the row of this key, if it is there: values in the order of the table's key."""

    table: Table
    key: tuple[Any, ...]


Change = Put | Delete
Handler = Callable[[Commit], Iterable[Change]]


@attrs.frozen
class Projection:
    """A named, versioned function from commits to rows.

    `tables` are written by this projection alone, in an order in which rows may be put (referenced tables first); `handlers`
    maps the category of a commit to the function that gives its changes. A change of what rows come out of the same
    commits, or of the tables, is a new `version`.

    `latest` are the categories whose handler looks at nothing but the state of the aggregate (and the sequence) and gives
    rows of that aggregate alone: of its commits in one batch only the last is handled, since it says all. Replay is the
    faster for it.
    """

    name: str
    version: int
    tables: tuple[Table, ...]
    handlers: Mapping[str, Handler]
    latest: frozenset[str] = frozenset()

    def apply(self, commit: Commit) -> Iterable[Change]:
        """The changes that a commit makes: none where it is of a category that this projection does not handle."""
        handler = self.handlers.get(commit.category)
        return () if handler is None else handler(commit)


@attrs.frozen
class ReadModel:
    """The projections over one stream that live in one database and are read together.

    `migrations` is a package with files `<number>_<name>.<up|down>.<sqlite|postgres>.sql`, numbered from 000001.
    """

    name: str
    stream: str
    registry: Registry
    projections: tuple[Projection, ...]
    migrations: str

    def migration_files(self) -> Iterable[tuple[str, str]]:
        """File name and text of every migration file."""
        return sorted(
            (entry.name, entry.read_text(encoding="utf-8"))
            for entry in files(self.migrations).iterdir()
            if entry.name.endswith(".sql")
        )
