"""The Postgres store keeps the promises of every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from projections.stores.postgres import PostgresStore
from projections.stores.postgres.reader import CONNECTIONS
from tests.support.readside.conformance import StoreConformance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

_ASLEEP = (
    "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active' AND datname = current_database()"
)


class TestPostgresStore(StoreConformance):
    @pytest_asyncio.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[PostgresStore]:
        async with PostgresStore(postgres_url) as store:
            yield store

    async def test_readers_that_are_cancelled_once_more_while_they_end_give_their_connections_back(
        self, store: PostgresStore
    ) -> None:
        """As a query does whose time is over, and whose client leaves then."""

        async def read() -> None:
            async with store.transaction() as moment:
                await moment.fetch("SELECT pg_sleep(60)")

        for _ in range(CONNECTIONS):
            reading = asyncio.create_task(read())
            await wait_until(lambda: store.fetch_one(_ASLEEP))
            reading.cancel()
            await asyncio.sleep(0)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        async with asyncio.timeout(30):
            assert await store.fetch_one("SELECT 1 AS one") == {"one": 1}
