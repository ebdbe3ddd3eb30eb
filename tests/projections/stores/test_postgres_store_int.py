"""The Postgres store keeps the promises of every store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from projections.stores.postgres import PostgresStore
from projections.testing.conformance import StoreConformance


class TestPostgresStore(StoreConformance):
    @pytest_asyncio.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[PostgresStore]:
        async with PostgresStore(postgres_url) as store:
            yield store
