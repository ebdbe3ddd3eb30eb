"""Fixtures of the event log's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.cluster import Cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """Three servers that all tests share, one after the other: who kills one starts it again, who creates a stream deletes it."""
    async with Cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running
