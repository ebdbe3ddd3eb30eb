"""Fixtures that tests of several parts share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from eventlog.embedded import EmbeddedServer
from tests.support.nats import remove_streams


@pytest_asyncio.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test alone, on a fresh data directory: may be killed, restarted, wiped."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """The server behind `nats_url`; do not use it directly."""
    async with EmbeddedServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest_asyncio.fixture
async def nats_url(session_nats_server: EmbeddedServer) -> AsyncIterator[str]:
    """The address of a server that all tests share, one after the other, each on its own streams: they are deleted after it.

    Cheaper than `nats_server`; do not kill or pause this one.
    """
    yield session_nats_server.url
    await remove_streams(session_nats_server.url)
