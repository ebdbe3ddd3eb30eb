"""Promises about migrations, the version of the schema, and the indexes that a rebuild leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from projections.errors import MigrationError, RowRefused
from projections.model import Put
from projections.store import SchemaVersion, Store
from tests.support.readside.conformance.tables import (
    BOTH,
    MAP,
    PEOPLE,
    PLACES,
    OnTables,
    checkpoint,
    person,
    refused,
    step,
    visit,
)

_INDEXES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY name",
    "postgres": "SELECT indexname AS name FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname",
}
_CREATE_INDEXES = """
CREATE INDEX people_by_age ON people (age DESC, id) WHERE age > 1;
CREATE UNIQUE INDEX people_by_birth ON people (born);
CREATE INDEX visits_by_person ON visits (person, place);
CREATE INDEX "visits by ""place" ON visits (place);
CREATE INDEX places_by_name ON places (name DESC);
"""


class MigrationPromises(OnTables):
    """A migration is applied once and whole."""

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
            with refused(MigrationError):
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
        with refused(RowRefused):
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
        with refused(MigrationError):
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
