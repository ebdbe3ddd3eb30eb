"""A log in memory, a store, and their faults."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from projections.migrations import Migrations
from projections.store import Store
from projections.stores.databases import store_at
from tests.projections.projector.on_memory.faulty import Faults, FaultyLog
from tests.support.readside import ledger
from tests.support.readside.ledger import Book


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog()


@pytest.fixture
def book(log: FaultyLog) -> Book:
    return Book(log)


@pytest_asyncio.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    async with store_at(database_url) as store:
        await Migrations(store, ledger.MODEL).up()
        yield store


@pytest.fixture
def faults(store: Store) -> Faults:
    return Faults(store)
