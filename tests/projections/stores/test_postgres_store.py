"""The Postgres store keeps the promises of every store."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import pytest
import pytest_asyncio

from projections.stores.postgres import PostgresStore
from projections.stores.postgres.reader import CONNECTIONS
from tests.support.readside.conformance import StoreConformance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

_ASLEEP = (
    "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active' AND datname = current_database()"
)


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    """The session of this process of the server does not answer during the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a query that is under way. It ends before the driver stops waiting for the server, which takes 5 s."""
    await asyncio.wait({task}, timeout=0.05)
    task.cancel()
    await asyncio.wait({task}, timeout=3)
    assert task.cancelled()


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

    @pytest.mark.parametrize("in_transaction", [False, True])
    async def test_a_query_that_is_cancelled_ends_at_once_if_the_server_hangs(
        self, store: PostgresStore, *, in_transaction: bool
    ) -> None:
        """The driver waits five seconds for the server to cancel the statement. Its connection is used again afterwards."""

        async def read() -> None:
            if in_transaction:
                async with store.transaction() as moment:
                    await moment.fetch("SELECT pg_sleep(60)")
            else:
                await store.fetch("SELECT pg_sleep(60)")

        reading = asyncio.create_task(read())
        session = await wait_until(lambda: store.fetch_one(_ASLEEP))
        assert session is not None
        with hanging(session["pid"]):
            await cancel(reading)
        for _ in range(2):
            assert await store.fetch_one("SELECT 1 AS one") == {"one": 1}
