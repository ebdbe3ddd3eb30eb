"""Fixtures that tests of several parts share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from hypothesis import HealthCheck, settings

from eventlog.embedded.nats import EmbeddedServer
from projections.stores.postgres.server import PostgresServer
from tests.support.log.nats import remove_streams
from tests.support.readside.postgres import fresh_database, temporary_server

pytest_plugins = [f"tests.support.plugins.{name}" for name in ("processor_time", "seed", "skips", "tiers")]
_STATE = tempfile.TemporaryDirectory(prefix="state-")
os.environ["XDG_STATE_HOME"] = _STATE.name  # commands of the user must not find a system of a test
# How long an example takes says nothing about the code on a machine under load.
for name, examples in (("usual", 50), ("long", 500)):
    settings.register_profile(name, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.option.long else "usual")


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Restore the configuration of logs after each test. No logger is cached, because later tests capture its lines."""
    configure, before = structlog.configure, structlog.get_config()

    def without_cache(**settings: Any) -> None:
        configure(**settings | {"cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", without_cache)
        yield
    configure(**before)


@pytest_asyncio.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test alone, on a fresh data directory: may be killed, restarted, wiped."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """The server behind `nats_url`; do not use it directly."""
    async with EmbeddedServer(tmp_path_factory.mktemp("nats"), durable=False) as server:  # the machine stays up
        yield server


@pytest_asyncio.fixture
async def nats_url(session_nats_server: EmbeddedServer) -> AsyncIterator[str]:
    """The address of a server that all tests share, one after the other, each on its own streams: they are deleted after it.

    Cheaper than `nats_server`; do not kill or pause this one.
    """
    yield session_nats_server.url
    await remove_streams(session_nats_server.url, session_nats_server.data_dir)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_postgres_server() -> AsyncIterator[PostgresServer]:
    """The server behind `postgres_url`; do not use it directly."""
    async with temporary_server() as server:
        yield server


@pytest_asyncio.fixture
async def postgres_url(session_postgres_server: PostgresServer) -> AsyncIterator[str]:
    """The address of an empty database of this test alone, on a server that all tests share: do not kill or pause that."""
    async with fresh_database(session_postgres_server) as url:
        yield url


@pytest_asyncio.fixture
async def postgres_server() -> AsyncIterator[PostgresServer]:
    """A Postgres of this test alone: may be killed and restarted."""
    async with temporary_server() as server:
        yield server
