"""The SQLite store keeps the promises of every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from projections.stores.sqlite import SQLiteStore
from tests.support.readside.conformance import StoreConformance


class TestSQLiteStore(StoreConformance):
    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SQLiteStore]:
        async with SQLiteStore(tmp_path / "read.db") as store:
            yield store
