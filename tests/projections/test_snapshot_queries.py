"""Queries of a block see one moment of the tables."""

from __future__ import annotations

from eventlog import Registry
from projections.model import KEYS, Put, ReadModel
from projections.queries import SnapshotQueries
from projections.store import SchemaVersion, Store
from tests.support.readside.conformance import MAP, PLACES, step

_CREATE = (
    "CREATE TABLE places (name TEXT NOT NULL PRIMARY KEY); CREATE TABLE regions (name TEXT NOT NULL PRIMARY KEY, within TEXT)"
)
MODEL = ReadModel(name="map", stream="MAP", registry=Registry(), projections=(MAP,))
_COUNT = "SELECT count(*) AS places FROM places"


async def test_queries_of_a_block_see_one_moment_and_later_ones_the_present(either_store: Store) -> None:
    store = either_store
    await store.migrate(_CREATE, before=SchemaVersion(0), after=SchemaVersion(1), projections=(MAP,))
    snapshots = SnapshotQueries(store, MODEL)

    async def counts() -> list[object]:
        rows = [*await snapshots.fetch(_COUNT), *await snapshots.fetch_in_thread(_COUNT), await snapshots.fetch_one(_COUNT)]
        return [row and row["places"] for row in rows]

    async with snapshots.moment() as sequence:
        assert await counts() == [0, 0, 0]
        await store.advance([step(0, 1, Put(PLACES, ("lake",)), projection=MAP), step(0, 1, projection=KEYS)])
        assert (await counts(), sequence) == ([0, 0, 0], 0)
    assert await counts() == [1, 1, 1]


async def test_the_sequence_of_a_moment_is_the_one_of_the_rows_that_it_shows(either_store: Store) -> None:
    """Also if a projector commits between the look at the position and the query, and in a block inside of the block."""
    store = either_store
    await store.migrate(_CREATE, before=SchemaVersion(0), after=SchemaVersion(1), projections=(MAP,))
    snapshots = SnapshotQueries(store, MODEL)
    await store.advance([step(0, 1, Put(PLACES, ("lake",)), projection=MAP), step(0, 1, projection=KEYS)])
    async with snapshots.moment() as sequence:
        await store.advance([step(1, 2, Put(PLACES, ("hill",)), projection=MAP), step(1, 2, projection=KEYS)])
        assert (sequence, await snapshots.fetch_one(_COUNT)) == (1, {"places": 1})
        async with snapshots.moment() as again:
            assert again == 1
    async with snapshots.moment() as sequence:
        assert (sequence, await snapshots.fetch_one(_COUNT)) == (2, {"places": 2})
