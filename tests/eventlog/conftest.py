"""Fixtures of the event log's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.cluster.servers import Cluster
from tests.support.log.nats import remove_streams


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """The servers behind `cluster`; do not use it directly."""
    async with Cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest_asyncio.fixture
async def cluster(session_cluster: Cluster) -> AsyncIterator[Cluster]:
    """Three servers that all tests share, one after the other: who kills one starts it again. Streams are deleted after each."""
    yield session_cluster
    await remove_streams(session_cluster.nodes[0].url, *(node.data_dir for node in session_cluster.nodes))
