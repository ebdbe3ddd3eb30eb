"""A disk that fills under load and gets room again: the supervisor restarts the broker, and writes continue without a human."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from eventlog.embedded.nats import EmbeddedServer
from pantry.domain.product import MovementRecorded
from tests.support.pantry.system import Server, log_of
from tests.support.programs.small_disk import SmallDisk, small_disk
from tests.support.programs.supervised import Supervised, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@contextmanager
def broker_under_supervision(directory: Path) -> Iterator[Supervised]:
    """A nats-server on a data directory, started again by the supervisor."""
    arguments = [str(directory), str(directory.parent / "ready.json"), "ok"]
    command = [sys.executable, "-m", "tests.gctd.cli.up.standins", *arguments]
    with supervised(command, directory.parent / "console.txt", dict(os.environ)) as running:
        yield running


async def test_a_disk_that_fills_under_load_and_gets_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, broker_under_supervision(tmp_path / "disk") as supervisor:
        addresses = await supervisor.ready()
        nats = EmbeddedServer(
            tmp_path, port=int(addresses["nats"].rpartition(":")[2]), http_port=int(addresses["monitoring"].rpartition(":")[2])
        )
        environment = {"PANTRY_EVENT_STORE_MAX_BYTES": "16MiB"}
        server = Server(tmp_path, "pantry", nats, environment)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as server.http:
            await server.start()
            try:
                await fill_and_free(server, disk, supervisor)
            finally:
                await server.kill()
        assert await server.difference_from_a_fold() is None


@pytest.mark.long
async def test_a_fresh_start_and_the_next_one_work_on_a_disk_of_1_gib(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", mib=1024):
        for start in ("first", "second"):
            with _everything(tmp_path, start) as running:
                await running.ready(120)
                assert "differs" not in running.said
                assert await running.end(signal.SIGINT) == 130


@pytest.mark.long
async def test_a_disk_that_is_too_small_is_named_with_the_need(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if not disk.mounted:
            pytest.skip("no small disk can be mounted here")
        with _everything(tmp_path, "only") as running:
            await wait_until(lambda: running.process.poll() is not None, 60)
            assert f"the disk of {tmp_path / 'disk' / 'data'}" in running.said
            assert "they need at least 64 MiB" in running.said


@contextmanager
def _everything(directory: Path, name: str) -> Iterator[Supervised]:
    options = ["--data-dir", str(directory / "disk" / "data"), "--ready-file", str(directory / "ready.json"), "--port-base", "0"]
    with supervised([sys.executable, "-m", "gctd", "up", *options], directory / f"{name}.txt", dict(os.environ)) as running:
        yield running


async def fill_and_free(server: Server, disk: SmallDisk, supervisor: Supervised) -> None:
    await server.create()
    acknowledged: list[str] = []
    unknown: list[int] = []

    enough = asyncio.Event()

    async def load() -> None:
        while not enough.is_set():
            answer = await server.move("in", 1)
            if answer.status == 201:
                acknowledged.append(answer.body["id"])
            else:
                unknown.append(answer.status)
                await asyncio.sleep(0.1)

    loading = [asyncio.create_task(load()) for _ in range(4)]
    await wait_until(lambda: len(acknowledged) > 20)
    broker = supervisor.find("nats-server.conf")
    disk.fill(broker)

    async def writes_fail() -> bool:
        answer = await server.ask("GET", "/readyz")
        return answer.status == 503 and "writes:" in answer.body["reason"]

    await wait_until(writes_fail, timeout=3 + 7)  # the promise, and an allowance for a busy machine
    assert (await server.ask("GET", "/readyz?for=reads")).status == 200
    await wait_until(lambda: unknown, timeout=20)
    disk.free()
    before = len(acknowledged)
    await server.ready(timeout=10 + 20)
    await wait_until(lambda: len(acknowledged) > before + 20)
    enough.set()
    await asyncio.gather(*loading)
    assert "nats-server has closed a stream after a write error" in supervisor.said
    stock = await server.stock()
    assert len(acknowledged) <= stock <= len(acknowledged) + len(unknown)
    async with log_of(server.nats) as log:
        head = await log.head()
        commits = [commit async for some in log.follow(after=0, until=head.last) for commit in some]
    booked = {event.data.id for commit in commits for event in commit.events if isinstance(event.data, MovementRecorded)}
    assert set(acknowledged) <= booked
    assert len(booked) == stock
