"""The write-ahead log of a SQLite store, all in the database and left alone: before a test looks at the file, or spoils it."""

from __future__ import annotations

import asyncio

from projections.stores.sqlite.store import SQLiteStore


async def copied_whole(store: SQLiteStore) -> None:
    """Wait until the store, which copies the log during the writes, has copied and emptied it. The store has to be open."""
    assert store._copier is not None
    assert store._writer is not None
    async with asyncio.timeout(60):
        while True:
            if store._copier._copying is not None:
                await asyncio.wrap_future(store._copier._copying)
            await store.checkpoints()  # comes after what the writer was given to copy
            busy, _, _ = store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
