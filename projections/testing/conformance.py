"""The promises of every store, as tests: a class to inherit in a test module, with a fixture `store` (open, empty).

class TestSQLiteStore(StoreConformance):
    @pytest_asyncio.fixture
    async def store(self, tmp_path): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs

from projections.errors import ArgumentRefused, MigrationError, RowRefused, StoreDamaged
from projections.model import Change, Column, Delete, Projection, Put, Table
from projections.store import Checkpoint, CheckpointOutcome, KeyRecord, Mark, Parked, Row, SchemaVersion, Step, Store

PEOPLE = Table(
    "people",
    (
        Column("id"),
        Column("age", "integer"),
        Column("height", "real"),
        Column("awake", "boolean"),
        Column("born", "timestamp", fixed=True),
        Column("extra", "json"),
    ),
    key=("id",),
)
VISITS = Table("visits", (Column("person"), Column("number", "integer"), Column("place")), key=("person", "number"))
PLACES = Table("places", (Column("name"),), key=("name",))
REGIONS = Table("regions", (Column("name"), Column("within")), key=("name",))

VISITORS = Projection("visitors", 1, (PEOPLE, VISITS), {})
MAP = Projection("map", 1, (PLACES, REGIONS), {})
BOTH = (VISITORS, MAP)

_TYPES = {
    "sqlite": {"integer": "INTEGER", "real": "REAL", "timestamp": "TEXT", "json": "TEXT", "at_the_end": ""},
    "postgres": {
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "timestamp": "TIMESTAMPTZ",
        "json": "JSON",
        "at_the_end": "DEFERRABLE INITIALLY DEFERRED",
    },
}
_INDEXES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY name",
    "postgres": "SELECT indexname AS name FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname",
}
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) AS c FROM n"
"""A statement that takes minutes."""
_CREATE_INDEXES = """
CREATE INDEX people_by_age ON people (age DESC, id) WHERE age > 1;
CREATE UNIQUE INDEX people_by_birth ON people (born);
CREATE INDEX visits_by_person ON visits (person, place);
CREATE INDEX "visits by ""place" ON visits (place);
CREATE INDEX places_by_name ON places (name DESC);
"""
_CREATE = """
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY, age {integer} CHECK (age >= 0), height {real}, awake BOOLEAN, born {timestamp}, extra {json}
);
CREATE TABLE visits (
    person TEXT NOT NULL REFERENCES people (id) {at_the_end},
    number {integer} NOT NULL,
    place TEXT,
    PRIMARY KEY (person, number)
);
CREATE TABLE places (name TEXT NOT NULL PRIMARY KEY);
CREATE TABLE regions (name TEXT NOT NULL PRIMARY KEY, within TEXT REFERENCES regions (name) {at_the_end});
"""


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
def _refused(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")


class StoreConformance:
    """The promises of `projections.store.Store`."""

    async def made(self, store: Store) -> Store:
        """The store, with the tables of this suite."""
        sql = _CREATE.format(**_TYPES[store.dialect])
        forgotten = await store.migrate(sql, before=SchemaVersion(0), after=SchemaVersion(1), projections=BOTH)
        assert forgotten == ["visitors", "map"]
        return store

    async def rows(self, store: Store, table: Table) -> Sequence[Row]:
        """All rows of a table by key."""
        return await store.fetch(f"SELECT * FROM {table.name} ORDER BY {', '.join(table.key)}")  # noqa: S608 - a constant

    async def test_a_new_store_has_nothing(self, store: Store) -> None:
        """No checkpoint, no migration, no key, no table."""
        assert await store.checkpoints() == {}
        assert await store.schema() == SchemaVersion(0)
        assert await store.find_key("k") is None
        assert await store.columns("people") == []
        assert await store.parked() == []

    async def test_digests_and_marks_are_written_with_the_checkpoint(self, store: Store) -> None:
        """They are read back. An existing mark stays. A checkpoint without digests has none, also if it had some before."""
        await self.made(store)
        first = attrs.evolve(checkpoint(5), record="r5", digest="d5")
        marks = [Mark("S", 2, "a", "b"), Mark("S", 4, "c", "d"), Mark("T", 4, "e", "f")]
        plain = Step(projection=VISITORS, before=None, after=first, changes=())
        assert await store.advance([plain], (), {}, marks) is CheckpointOutcome.STORED
        assert await store.checkpoints() == {VISITORS.name: first}
        assert await store.marks("S") == marks[:2]
        assert await store.marks("S", above=2) == marks[1:2]
        again = Step(projection=VISITORS, before=attrs.evolve(first, record="other"), after=checkpoint(6), changes=())
        assert await store.advance([again], (), {}, [Mark("S", 6, "g", "h")]) is CheckpointOutcome.MISMATCH
        second = Step(projection=VISITORS, before=first, after=checkpoint(6), changes=())
        assert await store.advance([second], (), {}, [Mark("S", 4, "x", "x"), Mark("S", 6, "g", "h")]) is CheckpointOutcome.STORED
        assert await store.checkpoints() == {VISITORS.name: checkpoint(6)}
        assert await store.marks("S") == [*marks[:2], Mark("S", 6, "g", "h")]

    async def test_digests_that_are_lost_are_damage_and_those_of_an_older_program_are_not(self, store: Store) -> None:
        """An emptied table of digests is not one of a program that kept none. Projections that are forgotten have none."""
        await self.made(store)
        first = attrs.evolve(checkpoint(5), record="r5", digest="d5")
        await store.advance([Step(projection=VISITORS, before=None, after=first, changes=())])
        assert await store.checkpoints() == {VISITORS.name: first}
        empty = "DELETE FROM projection_proofs"
        await store.migrate(empty, before=SchemaVersion(1), after=SchemaVersion(2), projections=())
        with _refused(StoreDamaged):
            await store.checkpoints()
        with _refused(StoreDamaged):
            await store.advance([Step(projection=VISITORS, before=checkpoint(5), after=checkpoint(6), changes=())])
        await store.forget([VISITORS])
        plain = Step(projection=VISITORS, before=None, after=checkpoint(3), changes=())
        assert await store.advance([plain]) is CheckpointOutcome.STORED
        await store.migrate(empty, before=SchemaVersion(2), after=SchemaVersion(3), projections=())
        assert await store.checkpoints() == {VISITORS.name: checkpoint(3)}

    async def test_the_state_of_the_passes_over_a_log_is_kept(self, store: Store) -> None:
        """The newest one of each stream; emptying a projection leaves it."""
        await self.made(store)
        assert await store.scrubs("S") is None
        for state in ("first", "second"):
            await store.keep_scrubs("S", state)
        await store.keep_scrubs("T", "other")
        await store.forget([VISITORS])
        assert (await store.scrubs("S"), await store.scrubs("T")) == ("second", "other")

    async def test_the_state_of_the_tables_is_another_one_after_each_change(self, store: Store) -> None:
        """Two equal states have the same rows, if the store knows its state at all."""
        await self.made(store)
        states = [store.state()]
        await store.advance([step(0, 5, person("ann", 3))])
        states.append(store.state())
        await store.forget([VISITORS])
        states.append(store.state())
        assert await store.fetch("SELECT id FROM people") == []
        assert store.state() == states[-1]
        known = [state for state in states if state is not None]
        assert len(set(known)) == len(known)

    async def test_rows_and_checkpoint_are_written_together(self, store: Store) -> None:
        """The rows of a step can be read, and its checkpoint is the new one."""
        await self.made(store)
        assert await store.advance([step(0, 5, person("ann", 3), visit("ann", 1, "lake"))]) is CheckpointOutcome.STORED
        assert await store.checkpoints() == {"visitors": checkpoint(5)}
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await self.rows(store, VISITS) == [{"person": "ann", "number": 1, "place": "lake"}]

    async def test_values_come_back_as_documented(self, store: Store) -> None:
        """Text, integers, floats, booleans, times in any zone, JSON text, and nothing."""
        await self.made(store)
        born = datetime(2026, 2, 3, 4, 5, 6, 70, tzinfo=timezone(timedelta(hours=2)))
        text = "Zoë \U0001f9ea 'quoted\" \\ \n"
        await store.advance(
            [step(0, 1, person(text, 2**31 - 1, height=1.1, awake=True, born=born, extra='{"a":[1]}'), person("nil"))]
        )
        row = await store.fetch_one("SELECT * FROM people WHERE id = $1", text)
        assert row is not None
        assert bool(row["awake"]) is True
        assert {**row, "awake": True} == {
            "id": text,
            "age": 2**31 - 1,
            "height": 1.1,
            "awake": True,
            "born": "2026-02-03T02:05:06.000070Z",
            "extra": '{"a":[1]}',
        }
        empty = await store.fetch_one("SELECT * FROM people WHERE id = 'nil'")
        assert empty == {"id": "nil", "age": None, "height": None, "awake": None, "born": None, "extra": None}

    async def test_parameters_are_numbered(self, store: Store) -> None:
        """In any order, more than once; a time finds what was stored at that time."""
        await self.made(store)
        born = datetime(2026, 1, 1, tzinfo=UTC)
        await store.advance([step(0, 1, person("a", 1, born=born), person("b", 2, born=born + timedelta(microseconds=1)))])
        found = await store.fetch("SELECT id FROM people WHERE age = $2 AND id <> $1 AND $2 > 1", "a", 2)
        assert found == [{"id": "b"}]
        assert await store.fetch("SELECT id FROM people WHERE born <= $1", born) == [{"id": "a"}]
        assert await store.fetch_one("SELECT id FROM people WHERE id = $1", "c") is None
        assert await store.fetch_in_thread("SELECT id FROM people WHERE id <> $1 ORDER BY id", "nil") == await store.fetch(
            "SELECT id FROM people WHERE id <> $1 ORDER BY id", "nil"
        )

    async def test_a_query_for_a_value_that_cannot_be_held_is_refused(self, store: Store) -> None:
        """The caller made a mistake: the store is well, and answers the next query."""
        await self.made(store)
        sql = "SELECT id FROM people WHERE age = $1"
        async with store.transaction() as reading:
            for fetch in (store.fetch, store.fetch_one, store.fetch_in_thread, reading.fetch):
                with _refused(ArgumentRefused):
                    await fetch(sql, 2**70)
        assert await store.fetch("SELECT id FROM people") == []

    async def test_the_last_change_of_a_row_counts(self, store: Store) -> None:
        """Put over put, delete over put, put over delete; over rows that are there, and that are not."""
        await self.made(store)
        await store.advance([step(0, 1, person("old", 1), person("gone", 1), person("back", 1))])
        await store.advance(
            [
                step(
                    1,
                    2,
                    *(person("new", age) for age in range(5)),
                    person("old", 7),
                    Delete(PEOPLE, ("gone",)),
                    Delete(PEOPLE, ("back",)),
                    person("back", 9),
                    person("brief", 1),
                    Delete(PEOPLE, ("brief",)),
                    Delete(PEOPLE, ("never",)),
                )
            ]
        )
        assert {row["id"]: row["age"] for row in await self.rows(store, PEOPLE)} == {"new": 4, "old": 7, "back": 9}

    async def test_a_fixed_column_is_written_once(self, store: Store) -> None:
        """Another row under the same key leaves it as it was."""
        await self.made(store)
        born = datetime(2026, 1, 1, tzinfo=UTC)
        await store.advance([step(0, 1, person("a", 1, born=born))])
        await store.advance([step(1, 2, person("a", 2, born=born + timedelta(days=1)))])
        assert await store.fetch("SELECT age, born FROM people") == [{"age": 2, "born": "2026-01-01T00:00:00.000000Z"}]

    async def test_many_rows_are_as_few(self, store: Store) -> None:
        """Put, put again and deleted by the hundred, with their references and keys, in one transaction each."""
        await self.made(store)
        several = range(700)
        people = [person(f"p{n}", n, born=datetime(2026, 1, 1, tzinfo=UTC), extra="[1]") for n in several]
        keys = [KeyRecord(f"k{n % 600}", None, "s", n) for n in several]
        visits = [visit(f"p{n}", 1, None if n % 2 else "lake") for n in several]
        assert await store.advance([step(0, 1, *visits, *people)], keys) is CheckpointOutcome.STORED
        assert await store.find_key("k5") == KeyRecord("k5", None, "s", 5)
        later = [person(f"p{n}", 2 * n) for n in several[:400]]
        gone = [Delete(VISITS, (f"p{n}", 1)) for n in several[400:]] + [Delete(PEOPLE, (f"p{n}",)) for n in several[400:]]
        assert (
            await store.advance([step(1, 2, *gone, *later)], [KeyRecord(f"k{n}", "x", "t", n) for n in several])
            is CheckpointOutcome.STORED
        )
        assert {row["id"]: row["age"] for row in await self.rows(store, PEOPLE)} == {f"p{n}": 2 * n for n in several[:400]}
        assert len(await self.rows(store, VISITS)) == 400
        assert [await store.find_key(key) for key in ("k5", "k650")] == [
            KeyRecord("k5", None, "s", 5),
            KeyRecord("k650", "x", "t", 650),
        ]

    async def test_the_character_nul_stops_nothing(self, store: Store) -> None:
        """It is held, or U+FFFD in its place; a row is found by it, and replaced, and removed."""
        await self.made(store)
        await store.advance([step(0, 1, person("a\0b", 1), visit("a\0b", 1, "\0"))], [KeyRecord("k\0", "\0", "s", 1)])
        row = await store.fetch_one("SELECT id, age FROM people WHERE id = $1", "a\0b")
        assert row is not None
        assert (row["id"].replace("\ufffd", "\0"), row["age"]) == ("a\0b", 1)
        found = await store.find_key("k\0")
        assert found is not None
        assert found.sequence == 1
        await store.advance([step(1, 2, person("a\0b", 2), Delete(VISITS, ("a\0b", 1)))])
        assert [row["age"] for row in await self.rows(store, PEOPLE)] == [2]
        await store.advance([step(2, 3, Delete(PEOPLE, ("a\0b",)))])
        assert await self.rows(store, PEOPLE) == []

    async def test_a_table_of_keys_alone(self, store: Store) -> None:
        """Putting what is there changes nothing."""
        await self.made(store)
        await store.advance([step(0, 1, Put(PLACES, ("lake",)), projection=MAP)])
        await store.advance([step(1, 2, Put(PLACES, ("lake",)), Put(PLACES, ("hill",)), projection=MAP)])
        assert await self.rows(store, PLACES) == [{"name": "hill"}, {"name": "lake"}]

    async def test_rows_may_refer_to_each_other(self, store: Store) -> None:
        """In any order of the changes; a dangling reference is refused."""
        await self.made(store)
        await store.advance([step(0, 1, visit("ann", 1), person("ann"))])
        await store.advance([step(1, 2, Delete(PEOPLE, ("ann",)), Delete(VISITS, ("ann", 1)))])
        assert await self.rows(store, PEOPLE) == []
        with _refused(RowRefused):
            await store.advance([step(2, 3, visit("nobody", 1))])
        assert (await store.checkpoints())["visitors"].sequence == 2
        regions = (Put(REGIONS, ("valley", "country")), Put(REGIONS, ("country", "world")), Put(REGIONS, ("world", None)))
        await store.advance([step(0, 1, *regions, projection=MAP)])
        await store.advance([step(1, 2, *(Delete(REGIONS, (name,)) for name in ("world", "country", "valley")), projection=MAP)])
        assert await self.rows(store, REGIONS) == []

    async def test_a_checkpoint_that_moved_lets_nothing_through(self, store: Store) -> None:
        """Neither rows nor keys, and of several steps none."""
        await self.made(store)
        await store.advance([step(0, 5, person("ann")), step(0, 5, projection=MAP)])
        for wrong in (0, 4, 6):
            steps = [step(wrong, 9, person("bob")), step(5, 9, Put(PLACES, ("hill",)), projection=MAP)]
            assert await store.advance(steps, [KeyRecord("k", None, "s", 6)]) is CheckpointOutcome.MISMATCH
        assert await store.checkpoints() == {"visitors": checkpoint(5), "map": checkpoint(5, MAP)}
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await self.rows(store, PLACES) == []
        assert await store.find_key("k") is None

    async def test_version_and_incarnation_are_compared_too(self, store: Store) -> None:
        """A checkpoint of another stream at the same sequence is another checkpoint."""
        await self.made(store)
        await store.advance([step(0, 5)])
        other = Step(
            projection=VISITORS, before=checkpoint(5, incarnation="two"), after=checkpoint(6, incarnation="two"), changes=()
        )
        assert await store.advance([other]) is CheckpointOutcome.MISMATCH

    async def test_a_step_that_was_stored_is_known_again(self, store: Store) -> None:
        """The answer to an earlier try may have been lost."""
        await self.made(store)
        steps = [step(0, 5, person("ann", 1))]
        assert await store.advance(steps) is CheckpointOutcome.STORED
        assert await store.advance(steps) is CheckpointOutcome.ALREADY
        assert await store.advance([step(5, 6, person("ann", 2))]) is CheckpointOutcome.STORED
        assert await store.advance(steps) is CheckpointOutcome.MISMATCH
        assert [row["age"] for row in await self.rows(store, PEOPLE)] == [2]

    async def test_of_two_projectors_one_goes_on(self, store: Store) -> None:
        """At the same moment, from the same checkpoint, with different rows."""
        await self.made(store)
        outcomes = await asyncio.gather(*(store.advance([step(0, 5 + n, person(f"p{n}"))]) for n in range(8)))
        assert sorted(outcome.value for outcome in outcomes) == ["mismatch"] * 7 + ["stored"]
        assert len(await self.rows(store, PEOPLE)) == 1

    async def test_a_row_that_cannot_be_held_is_refused_whole(self, store: Store) -> None:
        """A constraint, a value of no known type, a number that does not fit: no row is written, and the next step is."""
        await self.made(store)
        for bad in (person("bob", -1), person("bob", 2**70), Put(PEOPLE, ("bob", object(), None, None, None, None))):
            with _refused(RowRefused):
                await store.advance([step(0, 1, person("ann", 1), bad)], [KeyRecord("k", None, "s", 1)])
        assert await self.rows(store, PEOPLE) == []
        assert await store.checkpoints() == {}
        assert await store.find_key("k") is None
        assert await store.advance([step(0, 1, person("ann", 1))]) is CheckpointOutcome.STORED

    async def test_the_first_use_of_a_key_stays(self, store: Store) -> None:
        """In one batch and over several."""
        await self.made(store)
        first = KeyRecord("key-ü", "print", "a.b.c", 1)
        await store.advance([step(0, 2)], [first, KeyRecord("key-ü", None, "a.b.d", 2), KeyRecord("other", None, "a.b.d", 2)])
        await store.advance([step(2, 3)], [KeyRecord("key-ü", "x", "a.b.e", 3)])
        assert await store.find_key("key-ü") == first
        assert await store.find_key("other") == KeyRecord("other", None, "a.b.d", 2)

    async def test_what_is_parked_is_kept_with_the_checkpoint(self, store: Store) -> None:
        """By projection and sequence; put again over what was there, taken away, and nothing where the checkpoint moved."""
        await self.made(store)
        ann, bob, lake = parked("p.ann", 5), parked("p.bob", 2), parked("p.ann", 4, MAP, types="")
        assert await store.advance([step(0, 5)], (), {one.place: one for one in (ann, bob, lake)}) is CheckpointOutcome.STORED
        assert await store.parked() == [lake, bob, ann]
        more = parked("p.ann", 5, waiting=3, last=9)
        assert await store.advance([step(4, 9)], (), {more.place: more, bob.place: None}) is CheckpointOutcome.MISMATCH
        assert await store.parked() == [lake, bob, ann]
        assert (
            await store.advance([step(5, 9)], (), {more.place: more, bob.place: None, ("map", "p.never"): None})
            is CheckpointOutcome.STORED
        )
        assert await store.parked() == [lake, more]
        with _refused(RowRefused):
            await store.advance([step(9, 10, person("bob", -1))], (), {more.place: None})
        assert await store.parked() == [lake, more]
        assert await store.advance([], (), {lake.place: None}) is CheckpointOutcome.STORED
        await store.close()
        await store.open()
        assert await store.parked() == [more]

    async def test_forgetting_empties_one_projection_and_no_other(self, store: Store) -> None:
        """Rows, checkpoint and parked aggregates go, the ones of other projections stay."""
        await self.made(store)
        ann, lake = parked("p.ann", 5), parked("p.lake", 5, MAP)
        steps = [step(0, 5, person("ann"), visit("ann", 1)), step(0, 5, Put(PLACES, ("lake",)), projection=MAP)]
        await store.advance(steps, (), {ann.place: ann, lake.place: lake})
        await store.forget([VISITORS])
        assert await store.parked() == [lake]
        assert await store.checkpoints() == {"map": checkpoint(5, MAP)}
        assert await self.rows(store, PEOPLE) == []
        assert await self.rows(store, VISITS) == []
        assert await self.rows(store, PLACES) == [{"name": "lake"}]
        assert await store.advance([step(0, 5, person("bob"))]) is CheckpointOutcome.STORED

    async def test_a_snapshot_does_not_change(self, store: Store) -> None:
        """Rows and checkpoints of one moment, by key, in lists, while more is written."""
        await self.made(store)
        names = ["b", "Z", "é", "a", "\U0001f9ea", "ﬀ", "10", "9"]
        await store.advance([step(0, 1, *(person(name, awake=len(name) > 1) for name in names))])
        async with store.snapshot() as snapshot:
            await store.advance([step(1, 2, person("later"), Delete(PEOPLE, ("a",)))])
            assert await snapshot.checkpoints() == {"visitors": checkpoint(1)}
            lists = [list(rows) async for rows in snapshot.scan(PEOPLE, batch=3)]
        assert [len(rows) for rows in lists] == [3, 3, 2]
        rows = [row for rows in lists for row in rows]
        assert [row[0] for row in rows] == sorted(names, key=str.encode)
        assert [row[3] for row in rows] == [len(name) > 1 for name in sorted(names, key=str.encode)]
        async with store.snapshot() as snapshot:
            assert await snapshot.checkpoints() == {"visitors": checkpoint(2)}

    async def test_columns_tell_what_they_can_hold(self, store: Store) -> None:
        """Each declared type is held by the column made for it, and the key is known."""
        await self.made(store)
        columns = await store.columns("people")
        assert tuple(column.name for column in columns) == PEOPLE.names
        assert all(declared.type in column.holds for declared, column in zip(PEOPLE.columns, columns, strict=True))
        assert "real" not in columns[1].holds
        assert [column.key for column in await store.columns("visits")] == [0, 1, None]

    async def test_a_migration_is_applied_once(self, store: Store) -> None:
        """By the first process that tries at the same time; the others learn that they are late."""
        await self.made(store)

        async def migrate() -> Sequence[str] | None:
            return await store.migrate(
                "CREATE TABLE more (a INTEGER); CREATE INDEX people_by_age ON people (age);",
                before=SchemaVersion(1),
                after=SchemaVersion(2),
                projections=BOTH,
            )

        done = await asyncio.gather(*(migrate() for _ in range(4)))
        assert done.count(None) == 3
        assert await store.schema() == SchemaVersion(2)
        assert len(await store.columns("more")) == 1

    async def test_a_migration_that_fails_changes_nothing(self, store: Store) -> None:
        """Neither tables nor rows nor version."""
        await self.made(store)
        await store.advance([step(0, 5, person("ann"))])
        for bad in ("CREATE TABLE more (a INTEGER); DELETE FROM people; SELECT * FROM nowhere;", "no statement"):
            with _refused(MigrationError):
                await store.migrate(bad, before=SchemaVersion(1), after=SchemaVersion(2), projections=BOTH)
        assert await store.schema() == SchemaVersion(1)
        assert await store.columns("more") == []
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await store.checkpoints() == {"visitors": checkpoint(5)}

    async def test_a_migration_that_touches_a_table_has_its_projection_filled_again(self, store: Store) -> None:
        """If a table is added, removed, created again, has other columns or fewer rows; an index or a comment touches nothing."""
        await self.made(store)
        changes = {
            "CREATE INDEX people_by_age ON people (age);": False,
            "-- a word; and another one\n;": False,
            "ALTER TABLE visits ADD COLUMN note TEXT;": True,
            "DELETE FROM visits;": True,
            "DROP TABLE visits;": True,
            "CREATE TABLE visits (person TEXT, number INTEGER, place TEXT, PRIMARY KEY (person, number));": True,
            "DROP TABLE visits; CREATE TABLE visits (person TEXT, number INTEGER, place TEXT, PRIMARY KEY (number))": True,
        }
        for version, (sql, touches) in enumerate(changes.items(), start=1):
            before = await store.checkpoints()
            if "visitors" not in before and await store.columns("visits"):
                await store.advance([step(0, 5, person("ann"), visit("ann", 1))])
            if "map" not in before:
                await store.advance([step(0, 5, Put(PLACES, ("lake",)), projection=MAP)])
            forgotten = await store.migrate(
                sql, before=SchemaVersion(version), after=SchemaVersion(version + 1), projections=BOTH
            )
            assert forgotten == (["visitors"] if touches else []), sql
            assert ("visitors" in await store.checkpoints()) is not touches
            assert len(await self.rows(store, PEOPLE)) == (0 if touches else 1)
            assert await self.rows(store, PLACES) == [{"name": "lake"}]

    async def indexes(self, store: Store) -> set[str]:
        """The names of all indexes, except for the table with the definitions of left-out indexes."""
        return {row["name"] for row in await store.fetch(_INDEXES[store.dialect]) if "projection_indexes" not in row["name"]}

    async def indexed(self, store: Store) -> set[str]:
        """The names of all indexes, when there are some of each kind, and the table `places` is not empty."""
        await self.made(store)
        await store.advance([step(0, 1, Put(PLACES, ("lake",)), projection=MAP)])
        await store.migrate(_CREATE_INDEXES, before=SchemaVersion(1), after=SchemaVersion(2), projections=BOTH)
        return await self.indexes(store)

    async def test_indexes_that_only_queries_need_are_left_out_and_made(self, store: Store) -> None:
        """Of empty tables, also if the process that began does not end it. Unique values are unique all the time."""
        before = await self.indexed(store)
        await store.leave_indexes_out(BOTH)
        assert before - await self.indexes(store) == {"people_by_age", 'visits by "place'}
        born = datetime(2026, 1, 1, tzinfo=UTC)
        await store.advance([step(0, 1, *(person(f"p{n}", n) for n in range(100)), person("ann", 1, born=born), visit("ann", 1))])
        with _refused(RowRefused):
            await store.advance([step(1, 2, person("bob", 1, born=born))])
        await store.close()
        await store.open()
        await store.leave_indexes_out(BOTH)
        assert before - await self.indexes(store) == {"people_by_age", 'visits by "place'}
        for _ in range(2):
            await store.make_indexes()
            assert await self.indexes(store) == before
            assert await store.columns("projection_indexes") == []
        await store.leave_indexes_out(BOTH)
        assert await self.indexes(store) == before

    async def test_a_migration_has_all_indexes(self, store: Store) -> None:
        """It may take away one that has been left out; if it fails they are left out as before."""
        before = await self.indexed(store)
        await store.leave_indexes_out(BOTH)
        with _refused(MigrationError):
            await store.migrate("no statement", before=SchemaVersion(2), after=SchemaVersion(3), projections=BOTH)
        assert "people_by_age" not in await self.indexes(store)
        await store.migrate("DROP INDEX people_by_age", before=SchemaVersion(2), after=SchemaVersion(3), projections=BOTH)
        await store.make_indexes()
        assert before - await self.indexes(store) == {"people_by_age"}

    async def test_a_dirty_version_is_kept(self, store: Store) -> None:
        """Somebody else's tool may have left it."""
        await store.migrate("", before=SchemaVersion(0), after=SchemaVersion(3, dirty=True), projections=())
        assert await store.schema() == SchemaVersion(3, dirty=True)

    async def test_that_a_migration_was_taken_back_is_kept_until_one_is_applied(self, store: Store) -> None:
        """It distinguishes tables of before from tables of an older program."""
        await self.made(store)
        for before, after, taken_back in ((1, 2, False), (2, 1, True), (1, 2, False)):
            then = SchemaVersion(after, taken_back=taken_back)
            await store.migrate("", before=SchemaVersion(before), after=then, projections=BOTH)
            await store.close()
            await store.open()
            assert (await store.schema()).taken_back is taken_back

    async def test_a_read_transaction_shows_one_moment(self, store: Store) -> None:
        """Rows and checkpoints, by each way of asking, also under writes. The next transaction shows the written rows."""
        await self.made(store)
        await store.advance([step(0, 1, person("ann", 1))])
        ages = "SELECT age FROM people ORDER BY id"
        async with store.transaction() as reading:
            assert await reading.fetch_one(ages) == {"age": 1}
            await store.advance([step(1, 2, person("ann", 2), person("bob", 2))])
            assert await reading.fetch(ages) == await reading.fetch_in_thread(ages) == [{"age": 1}]
            assert reading.checkpoints == {"visitors": checkpoint(1)}
            assert await reading.fetch_one("SELECT age FROM people WHERE id = $1", "bob") is None
        async with store.transaction() as reading:
            assert (reading.checkpoints, await reading.fetch(ages)) == ({"visitors": checkpoint(2)}, [{"age": 2}, {"age": 2}])

    async def test_statements_of_a_read_transaction_may_be_asked_at_once(self, store: Store) -> None:
        """They follow one another, and none blocks the event loop until another has ended."""
        await self.made(store)
        async with store.transaction() as reading, asyncio.timeout(60):
            slow = asyncio.create_task(reading.fetch_in_thread(_ENDLESS.replace("2000000000", "200000")))
            waiting = [asyncio.create_task(reading.fetch("SELECT 1 AS one")) for _ in range(3)]
            await asyncio.sleep(0)
            assert [await task for task in waiting] == [[{"one": 1}]] * 3
            assert slow.done()
            assert await slow == [{"c": 200_000}]

    async def test_a_statement_ends_with_the_task_that_asked_for_it(self, store: Store) -> None:
        """Or with its transaction; statements of others do not wait for it, and its connection is used again."""
        await self.made(store)
        async with asyncio.timeout(60):
            for _ in range(3):
                endless = [asyncio.create_task(store.fetch_in_thread(_ENDLESS)) for _ in range(6)]
                for _ in range(3):
                    assert await store.fetch_in_thread("SELECT 1 AS one") == [{"one": 1}]
                for task in endless:
                    task.cancel()
                await asyncio.wait(endless)
            async with store.transaction() as reading:
                endless = [asyncio.create_task(reading.fetch_in_thread(_ENDLESS))]
                await asyncio.wait(endless, timeout=0.05)
                endless[0].cancel()
            assert endless[0].done()

    async def test_the_size_of_a_table_is_about_its_rows(self, store: Store) -> None:
        """At least in the right order of magnitude, also before the database has counted them, and 0 for an empty table."""
        await self.made(store)
        assert await store.sizes(["people", "places"]) == {"people": 0, "places": 0}
        await store.advance([step(0, 1, *(person(f"p{number}", number) for number in range(1000)))])
        found = await store.sizes(["people"])
        assert 100 <= found["people"] <= 10_000

    async def test_all_of_it_is_there_after_reopening(self, store: Store) -> None:
        """Rows, checkpoints, keys, version."""
        await self.made(store)
        await store.advance([step(0, 5, person("ann"))], [KeyRecord("k", None, "s", 5)])
        await store.close()
        await store.open()
        assert await store.checkpoints() == {"visitors": checkpoint(5)}
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await store.find_key("k") == KeyRecord("k", None, "s", 5)
        assert await store.schema() == SchemaVersion(1)
