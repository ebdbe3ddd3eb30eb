"""The tables of the suite, their rows, steps and checkpoints, and the base of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from projections.model import Change, Column, Projection, Put, Table
from projections.store import Checkpoint, Parked, Row, SchemaVersion, Step, Store

PEOPLE = Table(
    "people",
    (
        Column("id"),
        Column("age", "integer"),
        Column("height", "real"),
        Column("awake", "boolean"),
        Column("born", "timestamp"),
        Column("extra", "json"),
    ),
    key=("id",),
)
VISITS = Table("visits", (Column("person"), Column("number", "integer"), Column("place")), key=("person", "number"))
PLACES = Table("places", (Column("name"),), key=("name",))
REGIONS = Table("regions", (Column("name"), Column("within")), key=("name",))
DIARY = Table("diary", (Column("person"), Column("at", "timestamp"), Column("entry")), key=("person", "at"))
VISITORS = Projection("visitors", 1, (PEOPLE, VISITS), {})
MAP = Projection("map", 1, (PLACES, REGIONS), {})
BOTH = (VISITORS, MAP)
WRITTEN = Projection("written", 1, (DIARY,), {})
_TYPES = {
    "sqlite": {
        "integer": "INTEGER",
        "real": "REAL",
        "timestamp": "TEXT",
        "json": "TEXT",
        "at_the_end": "",
        "boolean": "INTEGER",
        "strict": "STRICT",
    },
    "postgres": {
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "timestamp": "TIMESTAMPTZ",
        "json": "JSON",
        "boolean": "BOOLEAN",
        "strict": "",
        "at_the_end": "DEFERRABLE INITIALLY DEFERRED",
    },
}
_CREATE = """
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY, age {integer} CHECK (age >= 0), height {real}, awake {boolean}, born {timestamp}, extra {json}
) {strict};
CREATE TABLE visits (
    person TEXT NOT NULL REFERENCES people (id) {at_the_end},
    number {integer} NOT NULL,
    place TEXT,
    PRIMARY KEY (person, number)
) {strict};
CREATE TABLE places (name TEXT NOT NULL PRIMARY KEY) {strict};
CREATE TABLE regions (name TEXT NOT NULL PRIMARY KEY, within TEXT REFERENCES regions (name) {at_the_end}) {strict};
"""
_CREATE_DIARY = (
    "CREATE TABLE diary (person TEXT NOT NULL, at {timestamp} NOT NULL, entry TEXT, PRIMARY KEY (person, at)) {strict};"
)


def person(id_: str, age: int | None = None, **values: Any) -> Put:
    """A row of people."""
    return Put(PEOPLE, (id_, age, values.get("height"), values.get("awake"), values.get("born"), values.get("extra")))


def visit(person_: str, number: int, place: str | None = None) -> Put:
    """A row of visits."""
    return Put(VISITS, (person_, number, place))


def checkpoint(sequence: int, projection: Projection = VISITORS, incarnation: str = "one") -> Checkpoint:
    """A checkpoint."""
    return Checkpoint(
        projection=projection.name, version=projection.version, incarnation=incarnation, sequence=sequence, applied=sequence
    )


def step(before: int, after: int, *changes: Change, projection: Projection = VISITORS) -> Step:
    """A step between two sequences, 0 for none yet."""
    return Step(
        projection=projection,
        before=checkpoint(before, projection) if before else None,
        after=checkpoint(after, projection),
        changes=changes,
    )


def parked(subject: str, sequence: int, projection: Projection = VISITORS, **values: Any) -> Parked:
    """A parked aggregate."""
    given: dict[str, Any] = {
        "projection": projection.name,
        "types": "Born, Moved",
        "error": "it's \U0001f9ea",
        "traceback": "line\n  line\n",
        "at": datetime(2026, 2, 3, 4, 5, 6, 70, tzinfo=UTC),
        "waiting": 1,
        "last": sequence,
    }
    return Parked(subject=subject, sequence=sequence, **given | values)


@contextmanager
def refused(kind: type[Exception]) -> Iterator[None]:
    """The block raises an error of this class."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")


class OnTables:
    """A store with the tables of this suite."""

    async def made(self, store: Store) -> Store:
        """The store, with the tables of this suite."""
        sql = _CREATE.format(**_TYPES[store.dialect])
        forgotten = await store.migrate(sql, before=SchemaVersion(0), after=SchemaVersion(1), projections=BOTH)
        assert forgotten == ["visitors", "map"]
        return store

    async def made_diary(self, store: Store) -> None:
        """Add the table that has a time in its key."""
        sql = _CREATE_DIARY.format(**_TYPES[store.dialect])
        await store.migrate(sql, before=SchemaVersion(1), after=SchemaVersion(2), projections=(WRITTEN,))

    async def rows(self, store: Store, table: Table) -> Sequence[Row]:
        """All rows of a table by key."""
        return await store.fetch(f"SELECT * FROM {table.name} ORDER BY {', '.join(table.key)}")
