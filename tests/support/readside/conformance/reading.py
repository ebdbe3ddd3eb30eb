"""Promises about reading: snapshots, read transactions, statements that run long, sizes of tables."""

from __future__ import annotations

import asyncio

from projections.model import Delete
from projections.store import Store
from tests.support.readside.conformance.tables import PEOPLE, OnTables, checkpoint, person, step

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) AS c FROM n"
"""A statement that takes minutes."""


class ReadingPromises(OnTables):
    """A reader sees one moment, and blocks no other reader."""

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
