"""Health of writes: a broker that stores no message is reported, reads and writes apart, and acknowledged changes stay."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from tests.support.pantry.system import FLOUR, MILK, Answer, PantrySystem, Server, pantry_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


def forbid_growth(system: PantrySystem) -> None:
    """No file of the nats-server grows from now on, as on a full disk."""
    psutil.Process(system.nats.pid).rlimit(psutil.RLIMIT_FSIZE, (4096, psutil.RLIM_INFINITY))


def allow_growth(system: PantrySystem) -> None:
    psutil.Process(system.nats.pid).rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))


async def move_until_it_fails(server: Server) -> tuple[int, Answer]:
    """Return the number of booked movements, and the first other answer."""
    for booked in range(10_000):
        answer = await server.move("in", 1)
        if answer.status != 201:
            return booked, answer
    raise AssertionError("all were booked")


async def writes_fail(server: Server, part: str, within: float) -> float:
    """Wait until `/readyz` says of writes that they fail, with this in the reason; the seconds it took."""
    began = time.monotonic()

    async def said() -> bool:
        answer = await server.ask("GET", "/readyz")
        return (
            answer.status == 503
            and part in answer.body["writes"]
            and (answer.body["reads"] == "ok" or part in answer.body["reads"])
        )

    await wait_until(said, timeout=within, every=0.05)
    return time.monotonic() - began


async def figure(server: Server, name: str) -> float:
    text = (await server.ask("GET", "/metrics")).body
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))


async def test_a_write_error_of_the_broker_makes_writes_not_ready_until_it_is_started_again(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        await server.moved("in", 1)
        assert (await server.ask("GET", "/readyz")).body == {"status": "ok", "reads": "ok", "writes": "ok"}
        assert await figure(server, "writes_ready") == 1
        forbid_growth(system)
        moving = asyncio.create_task(move_until_it_fails(server))
        await writes_fail(server, "write error", within=3 + 7)  # the promise, and an allowance for a busy machine
        booked, refused = await moving
        assert refused.status in {0, 503}, refused
        assert await figure(server, "writes_ready") == 0
        refused = await server.post(f"/products/{MILK}", {"name": "milk", "unit": "kg"})
        assert refused.status == 503
        assert "nothing was stored" in refused.body["detail"]
        assert "write error" in refused.body["detail"]
        assert (await server.ask("GET", "/readyz?for=reads")).status == 200
        assert (await server.ask("GET", "/readyz?for=writes")).status == 503
        assert await server.stock() >= 1 + booked

        allow_growth(system)
        assert (await server.ask("GET", "/readyz")).status == 503, "room alone does not open the stream again"
        await system.nats.restart()
        await server.ready(timeout=10 + 20)
        stock = await server.stock()
        assert 1 + booked <= stock <= 2 + booked  # the last one may have been stored without an answer
        await server.moved("in", 1)
        assert await server.stock() == stock + 1
        await server.kill()
        assert await server.difference_from_a_fold() is None


async def test_a_full_stream_is_warned_of_and_then_named_and_more_room_needs_no_restart(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, PANTRY_EVENT_STORE_MAX_BYTES="64KiB") as system:
        server = system.one
        await server.create()
        async with Connection.open(system.nats.url, name="operator") as connection:
            booked = 0
            while (await call(connection, "STREAM.INFO.PANTRY"))["state"]["bytes"] < 0.87 * 64 * 1024:
                await server.moved("in", 1)
                booked += 1

        async def warned() -> bool:
            answer = await server.ask("GET", "/readyz")
            return answer.status == 200 and "of a limit is used: the stream PANTRY" in answer.body.get("note", "")

        await wait_until(warned, timeout=20)
        more, refused = await move_until_it_fails(server)
        assert refused.status == 503
        assert "maximum bytes exceeded (10077)" in refused.body["detail"]
        await writes_fail(server, "the stream PANTRY", within=3 + 7)
        assert await server.stock() == booked + more
        async with Connection.open(system.nats.url, name="operator") as connection:
            config = (await call(connection, "STREAM.INFO.PANTRY"))["config"]
            await call(connection, "STREAM.UPDATE.PANTRY", {**config, "max_bytes": 1024**2})
        await server.ready(timeout=10 + 20)
        await server.moved("in", 1)


async def test_without_a_monitoring_address_health_of_writes_is_known_from_appends_only(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.kill()
        server.monitored = False
        await server.start()
        assert (await server.ask("GET", "/readyz")).body["writes"].startswith("unknown: writes: no append yet")
        await server.create()
        assert (await server.ask("GET", "/readyz")).body["writes"] == "ok"
        forbid_growth(system)
        moving = asyncio.create_task(move_until_it_fails(server))
        await writes_fail(server, "silent", within=5 + 10)
        moving.cancel()


async def test_a_server_whose_clock_is_two_days_ahead_books_in_the_brokers_time_and_is_named(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, servers=2) as system:
        right, wrong = system.servers
        await wrong.kill()
        wrong.module = "tests.support.pantry.ahead"
        await wrong.start()
        await right.create(MILK)
        booked = await wrong.moved("in", 10, MILK)
        assert abs(datetime.fromisoformat(booked["created_at"]) - datetime.now(UTC)) < timedelta(hours=1)
        await right.moved("out", 9, MILK)
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        assert (await right.get(f"/products/{MILK}/stock?as_of={now}"))["current_stock"] == 1
        note = (await wrong.ask("GET", "/readyz")).body["note"]
        assert "the clock of this server is 2 days, 0:00:00 ahead of the broker's" in note
        assert "note" not in (await right.ask("GET", "/readyz")).body


async def test_tables_that_another_program_has_locked_are_the_reason_that_a_client_is_told(tmp_path: Path) -> None:
    """Not the log. A command that was not sent has no effect later, and may be repeated."""
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        with closing(sqlite3.connect(server.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await server.moved("in", 1)
            await writes_fail(server, "locked by another program", within=3 + 7)
            movement = {"product_ean13": FLOUR, "type": "in", "quantity": 5}
            refused = await server.post("/movements", movement, **{"Idempotency-Key": "k"})
            assert refused.status == 503
            assert "is not stored" in refused.body["detail"]
            assert "locked by another program" in refused.body["detail"]
            assert (await server.ask("GET", "/readyz?for=reads")).status == 503
        await server.ready()
        assert (await server.post("/movements", movement, **{"Idempotency-Key": "k"})).status == 201
        assert await server.stock() == 6
