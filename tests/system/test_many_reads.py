"""Many reads at the same time share the connections to Postgres: none waits for a connection while it has one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

import gctd.serve
import pantry.serve
from eventlog.errors import BlobMissing
from eventlog.jetstream.log import JetStreamLog
from gctd.broker.blobs import BlobStore
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.reports import Reports
from gctd.readmodel.views import AnalysisView
from httpkit.routes import Scope
from projections.stores.postgres.reader import CONNECTIONS
from servicekit.access import service_access
from servicekit.access.tokens import TokenOffice
from servicekit.service import Service
from tests.support.pace import within
from tests.support.tracker.analyses import REPORT, analysis
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

READS = 30
TRACKER = ["/api/repos", "/api/repos/registered", "/api/tasks", "/api/workers", "/api/functions?search=x", "/api/projections"]
PANTRY = [f"/api/v1/{name}" for name in ("products", "movements", "categories", "sessions", "stocktakes", "projections")]
SERVICES = {"gctd": (gctd.serve.SERVICE, TRACKER), "pantry": (pantry.serve.SERVICE, PANTRY)}


async def issued(service: Service, settings: Any) -> str:
    """A token of a service whose streams have no other event."""
    assert service.tokens is not None
    async with service.connected(settings) as connection:
        log = JetStreamLog(connection, service.model.stream, service.model.registry)
        made = await TokenOffice(service.tokens, log, actor="local").issue("reader", Scope.READ, timedelta(days=1))
        return made.text


@pytest.mark.parametrize("name", SERVICES)
async def test_more_reads_than_connections_are_answered_at_the_same_time(
    name: str, nats_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the log does not answer, and tokens are read from the tables."""
    where: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "nats_url": nats_url, "database_url": postgres_url}
    service, paths = SERVICES[name]
    settings = service.settings(**where, require_tokens=True)
    assert READS > 2 * CONNECTIONS
    headers = {"Authorization": f"Bearer {await issued(service, settings)}"}
    connector = aiohttp.TCPConnector(limit=READS)
    async with (
        service.listening(settings) as address,
        aiohttp.ClientSession(address.url, connector=connector, headers=headers) as http,
    ):

        async def status(path: str) -> tuple[str, int]:
            async with http.get(path) as answer:
                return path, answer.status

        assert await status(f"{paths[0]}?min_seq=1") == (f"{paths[0]}?min_seq=1", 200)
        monkeypatch.setattr(service_access, "PATIENCE", 0)
        monkeypatch.setattr(service_access, "REMEMBERED", 0)
        for chosen in paths, *([path] for path in paths):
            with within(5):
                answers = await asyncio.gather(*(status(chosen[number % len(chosen)]) for number in range(READS)))
            assert set(answers) == {(path, 200) for path in chosen}


ID = "a" * 12
OF_BODIES = [f"/api/repos/{ID}", f"/api/repos/{ID}/functions/Add", f"/api/repos/{ID}/functions/Add/history"]
OF_BODIES += [f"/api/tasks/task-1/{name}" for name in ("profile", "export", "export?format=csv")]


@pytest.mark.parametrize("path", OF_BODIES)
async def test_tables_are_read_while_the_broker_hangs_that_has_the_bodies_of_other_answers(
    path: str, nats_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, hung, asked = analysis(REPORT, profile_digest="b" * 64), asyncio.Event(), 0

    async def found(_queries: TrackerQueries, _id: str) -> AnalysisView:
        return row

    async def get(_store: BlobStore, digest: str) -> bytes:
        nonlocal asked
        asked += 1
        await hung.wait()
        raise BlobMissing(digest)

    async def all_hang() -> bool:
        return asked >= READS

    monkeypatch.setattr(TrackerQueries, "analysis", found)
    monkeypatch.setattr(TrackerQueries, "analysis_of_task", found)
    monkeypatch.setattr(Reports, "functions", get)
    monkeypatch.setattr(BlobStore, "get", get)
    service = gctd.serve.SERVICE
    settings = service.settings(host="127.0.0.1", port=0, nats_url=nats_url, database_url=postgres_url)
    connector = aiohttp.TCPConnector(limit=READS + 1)
    async with service.listening(settings) as address, aiohttp.ClientSession(address.url, connector=connector) as http:
        reading = [asyncio.create_task(http.get(path)) for _ in range(READS)]
        try:
            await wait_until(all_hang, timeout=5)
            async with http.get("/api/tasks") as answer:
                assert answer.status == 200
        finally:
            hung.set()
            for response in await asyncio.gather(*reading):
                response.release()
