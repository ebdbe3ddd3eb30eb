"""Two servers on one Postgres: both answer and show events, one leads, and the other takes over when the leader is killed."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp
import pytest

from eventlog.embedded.nats import free_port
from pantry.readmodel import MODEL
from projections.rebuild.verify import compare, replayed_copy
from projections.stores.databases import store_at
from tests.support.pantry.system import API, FLOUR, Server, log_of, pantry_system
from tests.support.tracker.system import tracker_system
from tests.support.waiting import wait_until
from tests.support.web.listener import Listener

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"


async def leads(http: aiohttp.ClientSession, url: str) -> bool:
    """Whether it is this server that applies events, by its own figures."""
    try:
        async with http.get(f"{url}/metrics") as answer:
            found = re.search(r"^\w*projection_leading (\d)", await answer.text(), re.MULTILINE)
    except aiohttp.ClientError:
        return False
    return found is not None and found[1] == "1"


async def move(server: Server, quantity: int) -> str:
    """Book a movement; the sequence from which on it can be read everywhere."""
    answer = await server.move("in", quantity)
    assert answer.status == 201, answer
    return answer.headers["Event-Sequence"]


async def test_two_pantries_are_one(tmp_path: Path, postgres_url: str) -> None:
    """A change through one can be read through the other. After kill -9 of the leader all data is there."""
    async with pantry_system(tmp_path, servers=2, PANTRY_DATABASE_URL=postgres_url) as system:
        one, two = system.servers
        await wait_until(lambda: leads(one.http, one.url), timeout=30)
        assert not await leads(two.http, two.url)
        await two.create(FLOUR)
        streams = [f"{server.url}{API}/events?events=stock" for server in (one, two)]
        async with Listener(streams[0]) as of_one, Listener(streams[1]) as of_two:
            total = 0
            for number in range(1, 11):
                writer, reader = (one, two) if number % 2 else (two, one)
                sequence = await move(writer, number)
                total += number
                stock = await reader.get(f"/products/{FLOUR}/stock?min_seq={sequence}")
                assert stock["current_stock"] == total
            for listener in (of_one, of_two):
                await listener.until_seen(10)
            assert of_one.events == of_two.events
            assert len(of_one.ids) == 10
            await one.kill()
            sequence = await move(two, 100)
            await wait_until(lambda: leads(two.http, two.url), timeout=30)
            assert (await two.get(f"/products/{FLOUR}/stock?min_seq={sequence}"))["current_stock"] == total + 100
            await of_two.until_seen(11)
            assert len(of_two.ids) == 11
        await two.kill()
        async with log_of(system.nats) as log, store_at(postgres_url) as live:
            until = (await log.head()).last
            assert {checkpoint.sequence for checkpoint in (await live.checkpoints()).values()} == {until}
            async with replayed_copy(log, MODEL, until=until) as fresh:
                assert await compare(live, fresh, MODEL) is None


async def test_two_control_planes_are_one(tmp_path: Path, postgres_url: str) -> None:
    """Tasks are scheduled and followed through either; when the one that dispatches is killed, the other one does."""
    async with tracker_system(tmp_path, GCTD_DATABASE_URL=postgres_url) as system:
        first, second = system.url, f"http://127.0.0.1:{free_port()}"
        await wait_until(lambda: leads(system.http, first), timeout=30)
        system.url = second
        await system.start("serve-2", "gctd", "serve", GCTD_PORT=second.rpartition(":")[2], GCTD_URL=second)
        await system.ready()
        assert not await leads(system.http, second)
        await system.start_worker()
        await system.register(REPO)
        (task, *_) = await system.post("/api/repos/analyze", {"repo_url": REPO})
        system.url = first
        await system.until_task(task["id"], "completed")
        assert system.serve is not None
        await system.serve.kill()
        system.url = second
        (task, *_) = await system.post("/api/repos/analyze", {"repo_url": REPO})
        await system.until_task(task["id"], "completed", timeout=60)
        assert await leads(system.http, second)
