"""Fixtures of the read side's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from projections.stores.databases import store_at
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore

pytest.register_assert_rewrite("tests.support.readside.conformance")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'new' / 'read.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest_asyncio.fixture
async def either_store(database_url: str) -> AsyncIterator[SQLiteStore | PostgresStore]:
    """An empty store of either kind, open."""
    async with store_at(database_url) as store:
        yield store
