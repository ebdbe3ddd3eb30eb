"""A newer pantry, with other tables, takes over from the one before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from projections.rebuild.verify import compare, replayed_copy
from projections.stores.databases import copies_at, store_at
from tests.support.pantry.newer import NEWER
from tests.support.pantry.system import API, FLOUR, Server, log_of, pantry_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

READS = ("/products", "/movements", "/reports/stock", f"/products/{FLOUR}")
WAITS = "the process that brings the tables of another version up to date is waited for"


@asynccontextmanager
async def read_all_the_time(server: Server) -> AsyncIterator[None]:
    """Every read is answered during the block."""

    async def read() -> None:
        while True:
            for path in READS:
                await server.get(path)
            await asyncio.sleep(0.02)

    reading = asyncio.create_task(read())
    try:
        yield
        assert not reading.done(), reading.exception()
    finally:
        reading.cancel()
        await asyncio.wait({reading})


async def reason(server: Server) -> str:
    """Why it is not ready; empty if it is, or does not answer."""
    answer = await server.ask("GET", "/readyz")
    return answer.body["reason"] if answer.status == HTTPStatus.SERVICE_UNAVAILABLE else ""


async def is_half_way(server: Server) -> bool:
    return "11 events applied, 11 left" in await reason(server)


async def shows_nothing_yet(server: Server) -> None:
    """Check that it lives, reports its progress, and refuses requests that it cannot answer."""
    await wait_until(lambda: is_half_way(server))
    assert (await server.ask("GET", "/livez")).status == HTTPStatus.OK
    for path in READS:
        answer = await server.ask("GET", API + path)
        assert (answer.status, answer.headers["Retry-After"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "1")
        assert "the tables belong to another version of the program" in answer.body["error"]


async def filled(server: Server) -> None:
    """22 events: the key of a product is another one."""
    await server.create()
    for number in range(20):
        await server.moved("in", 1 + number)


async def test_a_newer_one_beside_an_older_one_on_a_shared_database(tmp_path: Path, postgres_url: str) -> None:
    """The older one always answers. The newer one, killed half way, continues, and shows everything when the other ends."""
    gate = tmp_path / "gate"
    async with pantry_system(tmp_path, servers=2, PANTRY_DATABASE_URL=postgres_url, NEWER_GATE=str(gate)) as system:
        older, newer = system.servers
        await newer.kill()
        await filled(older)
        newer.module = "tests.support.pantry.newer"
        async with read_all_the_time(older):
            await newer.begin()
            await shows_nothing_yet(newer)
            await newer.kill()
            await newer.begin()
            await shows_nothing_yet(newer)
            gate.touch()
            await wait_until(lambda: _waits(newer))
            await older.moved("in", 1000)
            before = [await older.get(path) for path in READS]
        assert older.program is not None
        await older.program.stop()
        await newer.ready()
        assert [await newer.get(path) for path in READS] == before
        await newer.moved("out", 1000)
        await newer.kill()
        await is_as_a_fold(newer, postgres_url)


@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.long)])
async def test_a_newer_one_on_a_file_of_its_own(tmp_path: Path, kills: int) -> None:
    """It continues at the point of the kill, and shows everything when its tables are complete. The older one can go back."""
    gate = tmp_path / "gate"
    async with pantry_system(tmp_path, NEWER_GATE=str(gate)) as system:
        server = system.one
        await filled(server)
        before = [await server.get(path) for path in READS]
        await server.kill()
        server.module = "tests.support.pantry.newer"
        for _ in range(kills):
            await server.begin()
            await shows_nothing_yet(server)
            await server.kill()
        gate.touch()
        await server.start()
        assert [await server.get(path) for path in READS] == before
        await server.moved("out", 1)
        assert await server.stock() == before[-1]["current_stock"] - 1, "the tables have the answered booking"
        await server.kill()
        await is_as_a_fold(server, server.environment["PANTRY_DATABASE_URL"])


async def _waits(server: Server) -> bool:
    return WAITS in await reason(server)


async def is_as_a_fold(server: Server, database: str) -> None:
    """Check that the stopped server has the tables of the newer version, and that the old ones are kept."""
    assert await copies_at(database).there() == ["old"]
    async with log_of(server.nats) as log:
        head = await log.head()
        async with store_at(database) as live, replayed_copy(log, NEWER, until=head.last) as fresh:
            assert await compare(live, fresh, NEWER) is None
