"""Promises about rows: values, keys, references, parameters of queries, and the last change that counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from projections.errors import ArgumentRefused, RowRefused
from projections.model import Delete, Put
from projections.store import CheckpointOutcome, Store
from tests.support.readside.conformance.tables import (
    DIARY,
    MAP,
    PEOPLE,
    PLACES,
    REGIONS,
    VISITS,
    WRITTEN,
    OnTables,
    checkpoint,
    person,
    refused,
    step,
    visit,
)


class RowPromises(OnTables):
    """Rows are as they were written."""

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
                with refused(ArgumentRefused):
                    await fetch(sql, 2**70)
        assert await store.fetch("SELECT id FROM people") == []

    async def test_a_time_without_a_zone_is_refused(self, store: Store) -> None:
        """In a row, in the key of a deleted one, and as an argument: it would be read as local time."""
        await self.made(store)
        await self.made_diary(store)
        at = datetime(2026, 1, 1)  # noqa: DTZ001 - the subject of the test
        for change in (Put(DIARY, ("ann", at, "wrote")), Delete(DIARY, ("ann", at))):
            with refused(RowRefused):
                await store.advance([step(0, 1, change, projection=WRITTEN)])
        with refused(RowRefused):
            await store.advance([step(0, 1, person("ann", born=at))])
        async with store.transaction() as reading:
            for fetch in (store.fetch, store.fetch_one, store.fetch_in_thread, reading.fetch):
                with refused(ArgumentRefused):
                    await fetch("SELECT id FROM people WHERE born = $1", at)

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

    async def test_a_time_may_be_in_a_key(self, store: Store) -> None:
        """A row is found by it in any zone, to be replaced and to be deleted."""
        await self.made(store)
        await self.made_diary(store)
        at = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(3)]
        await store.advance([step(0, 1, *(Put(DIARY, ("ann", one, "wrote")) for one in at), projection=WRITTEN)])
        changes = Put(DIARY, ("ann", at[0], "read")), Delete(DIARY, ("ann", at[1].astimezone(timezone(timedelta(hours=2)))))
        await store.advance([step(1, 2, *changes, projection=WRITTEN)])
        assert [(row["at"], row["entry"]) for row in await self.rows(store, DIARY)] == [
            ("2026-01-01T00:00:00.000000Z", "read"),
            ("2026-01-01T02:00:00.000000Z", "wrote"),
        ]

    async def test_many_rows_are_as_few(self, store: Store) -> None:
        """Put, put again and deleted by the hundred, with their references, in one transaction each."""
        await self.made(store)
        several = range(700)
        people = [person(f"p{n}", n, born=datetime(2026, 1, 1, tzinfo=UTC), extra="[1]") for n in several]
        visits = [visit(f"p{n}", 1, None if n % 2 else "lake") for n in several]
        assert await store.advance([step(0, 1, *visits, *people)]) is CheckpointOutcome.STORED
        later = [person(f"p{n}", 2 * n) for n in several[:400]]
        gone = [Delete(VISITS, (f"p{n}", 1)) for n in several[400:]] + [Delete(PEOPLE, (f"p{n}",)) for n in several[400:]]
        assert await store.advance([step(1, 2, *gone, *later)]) is CheckpointOutcome.STORED
        assert {row["id"]: row["age"] for row in await self.rows(store, PEOPLE)} == {f"p{n}": 2 * n for n in several[:400]}
        assert len(await self.rows(store, VISITS)) == 400

    async def test_the_character_nul_stops_nothing(self, store: Store) -> None:
        """It is held, or U+FFFD in its place; a row is found by it, and replaced, and removed."""
        await self.made(store)
        await store.advance([step(0, 1, person("a\0b", 1), visit("a\0b", 1, "\0"))])
        row = await store.fetch_one("SELECT id, age FROM people WHERE id = $1", "a\0b")
        assert row is not None
        assert (row["id"].replace("\ufffd", "\0"), row["age"]) == ("a\0b", 1)
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
        with refused(RowRefused):
            await store.advance([step(2, 3, visit("nobody", 1))])
        assert (await store.checkpoints())["visitors"].sequence == 2
        regions = (Put(REGIONS, ("valley", "country")), Put(REGIONS, ("country", "world")), Put(REGIONS, ("world", None)))
        await store.advance([step(0, 1, *regions, projection=MAP)])
        await store.advance([step(1, 2, *(Delete(REGIONS, (name,)) for name in ("world", "country", "valley")), projection=MAP)])
        assert await self.rows(store, REGIONS) == []

    async def test_a_row_that_cannot_be_held_is_refused_whole(self, store: Store) -> None:
        """A constraint, a value of no known type or of another, a number that does not fit: no row is written. The next step is.

        Neither is the row of another projection.
        """
        await self.made(store)
        strange = Put(PEOPLE, ("bob", object(), None, None, None, None))
        text = Put(PEOPLE, ("bob", None, None, None, "2026-01-01T00:00:00Z", None))
        for bad in (person("bob", -1), person("bob", 2**70), strange, text, Put(PLACES, ("lake",))):
            with refused(RowRefused):
                await store.advance([step(0, 1, person("ann", 1), bad)])
        assert await self.rows(store, PEOPLE) == []
        assert await store.checkpoints() == {}
        assert await store.advance([step(0, 1, person("ann", 1))]) is CheckpointOutcome.STORED

    async def test_a_value_of_another_type_is_refused(self, store: Store) -> None:
        """A text in a column of integers, of floats or of truth, a fraction in one of integers, bytes in one of text."""
        await self.made(store)
        values: list[Any] = ["abc", 1.5, b"lake"]
        number, fraction, data = values
        for bad in (
            person("ann", number),
            person("ann", fraction),
            person("ann", height="tall"),
            person("ann", awake="yes"),
            visit("ann", 1, data),
        ):
            with refused(RowRefused):
                await store.advance([step(0, 1, person("ann"), bad)])
        assert await self.rows(store, PEOPLE) == []

    async def test_columns_tell_what_they_can_hold(self, store: Store) -> None:
        """Each declared type is held by the column made for it, and the key is known."""
        await self.made(store)
        columns = await store.columns("people")
        assert tuple(column.name for column in columns) == PEOPLE.names
        assert all(declared.type in column.holds for declared, column in zip(PEOPLE.columns, columns, strict=True))
        assert "real" not in columns[1].holds
        assert all(column.strict for column in columns)
        assert [column.key for column in await store.columns("visits")] == [0, 1, None]
