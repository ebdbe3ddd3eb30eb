"""The pantry while its parts are killed: acknowledged changes stay and count once, and no product goes below zero."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pantry.domain.product import MovementRecorded, MovementType
from tests.support.pace import within
from tests.support.pantry.system import API, FLOUR, MIGRATIONS, MILK, Answer, Server, pantry_system
from tests.support.programs import warm
from tests.support.tracker.system import Program
from tests.support.waiting import wait_until
from tests.support.web.listener import Listener

pytestmark = pytest.mark.real

READS = ("/products", "/categories", "/movements", "/reports/stock", "/reports/low-stock", f"/products/{FLOUR}")


async def persist(server: Server, type_: str, quantity: float, key: str) -> Answer:
    """Repeat a movement under one key until it is accepted or refused, as a client would that wants to know."""

    async def settled() -> list[Answer]:
        answer = await server.post(
            "/movements", {"product_ean13": FLOUR, "type": type_, "quantity": quantity}, **{"Idempotency-Key": key}
        )
        return [answer] if answer.status in {201, 422} else []

    return (await wait_until(settled, timeout=60, every=0.1))[0]


@pytest.mark.long
async def test_of_64_that_take_from_20_exactly_20_succeed_while_the_broker_is_killed(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        await server.moved("in", 20)
        taking = [asyncio.create_task(persist(server, "out", 1, f"out-{number}")) for number in range(64)]
        for _ in range(2):
            await asyncio.sleep(0)
            await system.nats.kill()
            await system.nats.start()
        answers = await asyncio.gather(*taking)
        accepted = [answer.body["id"] for answer in answers if answer.status == 201]
        refused = [answer.body["error"] for answer in answers if answer.status == 422]
        assert len(accepted) == len(set(accepted)) == 20
        assert refused == ["insufficient stock: available 0.000, requested 1.000"] * 44
        await server.ready()
        movements = [event for event in await system.events() if isinstance(event, MovementRecorded)]
        assert {event.id for event in movements if event.type is MovementType.OUT} == set(accepted)
        assert min(event.stock for event in movements) == 0
        assert await server.stock() == 0
        assert {row["id"] for row in await server.get("/movements?type=out")} == set(accepted)
        await server.kill()
        assert await server.difference_from_a_fold() is None


async def test_without_a_broker_writes_are_refused_in_time_and_reads_go_on(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        await server.moved("in", 1)
        assert await server.stock() == 1
        await system.nats.kill()
        with within(2 + 1):  # the promise, and the time of one request
            refused = await server.move("in", 1)
        assert refused.status == 503, refused
        assert "Retry-After" in refused.headers
        assert refused.body["error"] == refused.body["detail"]
        assert (await server.ask("GET", "/ping")).status == 200
        assert await server.stock() == 1

        async def not_ready() -> bool:
            answer = await server.ask("GET", "/readyz")
            return answer.status == 503 and "broker" in answer.body["reason"]

        await wait_until(not_ready, timeout=30)
        await system.nats.start()
        await server.ready()
        assert (await server.move("in", 1)).status == 201


@pytest.mark.parametrize("log", ["on a full disk", "without a reader"])
async def test_a_log_that_cannot_be_written_changes_no_answer(tmp_path: Path, log: str) -> None:
    if log == "on a full disk":
        unwritable = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, unwritable = os.pipe()
        os.close(reader)
    async with pantry_system(tmp_path) as system:
        server = Server(tmp_path, "mute", system.nats, {"PANTRY_LOG_LEVEL": "debug"})
        server.http = system.one.http
        said = tmp_path / "mute.log"
        with said.open("wb") as output:
            streams = (None, output.fileno(), unwritable)
            server.program = Program(await warm.fork("pantry", "serve", environment=server.environment, streams=streams), said)
        os.close(unwritable)
        try:
            await server.ready()
            await server.create()
            moved = await server.move("in", 2)
            assert (moved.status, moved.body["stock_after"]) == (201, 2)
            seen = await system.one.get(f"/products/{FLOUR}/stock?min_seq={moved.headers['Event-Sequence']}")
            assert [await server.stock(), seen["current_stock"]] == [2, 2]
            assert (await server.ask("GET", "/readyz")).status == 200
        finally:
            await server.kill()


async def test_a_read_model_that_was_removed_is_made_again_and_answers_the_same(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        category = (await server.post("/categories", {"name": "Baking"})).body["id"]
        await server.create(category_id=category, min_stock=2)
        await server.create(MILK)
        bought = await server.moved("in", 5, reason="bought", created_by="Ada")
        await server.post(f"/movements/{bought['id']}/undo")
        await server.post(f"/products/{MILK}/count", {"counted": 3})
        await server.ask("DELETE", f"{API}/products/{MILK}")
        before = [await server.get(path) for path in READS]
        await server.kill()
        server.remove_database()
        await server.start()
        assert [await server.get(path) for path in READS] == before


async def test_migrations_down_and_up_fill_the_tables_from_the_log_again(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        await server.moved("in", 5)
        before = [await server.get(path) for path in READS]
        await server.kill()
        count = len(MIGRATIONS)
        assert await migrate(server, "version") == (0, f"Current migration version: {count}\n")
        assert await migrate(server, "down") == (0, f"taken back {MIGRATIONS[-1]}\n")
        assert await migrate(server, "version") == (0, f"Current migration version: {count - 1}\n")
        for _ in range(count - 1):
            assert (await migrate(server, "down"))[0] == 0
        ups = await asyncio.gather(*(migrate(server, "up") for _ in range(2)))
        assert [code for code, _ in ups] == [0, 0]
        assert sum(text.count("applied") for _, text in ups) == count
        await server.start()
        assert [await server.get(path) for path in READS] == before


async def migrate(server: Server, *arguments: str) -> tuple[int, str]:
    """Exit code and standard output of `pantry migrate`."""
    return await command(server, "migrate", *arguments)


async def command(server: Server, *arguments: str) -> tuple[int, str]:
    """Exit code and standard output of a command."""
    done = await asyncio.to_thread(warm.run, "pantry", *arguments, environment=server.environment)
    return done.returncode, done.stdout


async def test_a_write_through_one_server_is_read_through_the_other(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, servers=2) as system:
        one, other = system.servers
        await one.create()
        for number in range(1, 31):
            writer, reader = (one, other) if number % 2 else (other, one)
            moved = await writer.move("in", 1)
            assert moved.status == 201
            sequence = moved.headers["Event-Sequence"]
            assert (await reader.get(f"/products/{FLOUR}/stock?min_seq={sequence}"))["current_stock"] == number
        for server in system.servers:
            await server.kill()
            assert await server.difference_from_a_fold() is None


async def test_a_crossing_of_the_minimum_is_told_once_in_either_direction(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create(min_stock=5)
        first = int((await server.move("in", 10)).headers["Event-Sequence"])
        expected = [
            *[("stock", 5), ("low_stock", True), ("stock", 4), ("stock", 5), ("stock", 6), ("low_stock", False), ("stock", 7)],
            *[("product", 8), ("low_stock", True), ("product", 7)],
        ]
        async with Listener(f"{server.url}{API}/events", cut_after=lambda: 2, after=first) as listener:
            for type_, quantity in (("out", 5), ("out", 1), ("in", 1), ("in", 1), ("in", 1)):
                await server.moved(type_, quantity)
            document = {"name": "flour", "unit": "kg"}
            await server.ask("PUT", f"{API}/products/{FLOUR}", {**document, "min_stock": 8})
            await server.ask("PUT", f"{API}/products/{FLOUR}", {**document, "min_stock": 7})
            await listener.until_seen(len(expected))
        assert [(name, said(name, json.loads(data))) for name, data in listener.events] == expected
        assert len(set(listener.ids)) == len(listener.ids) == len(expected)
        assert listener.connections > 2
        async with Listener(f"{server.url}{API}/events?events=low_stock") as only:
            await server.moved("in", 3)
            await only.until_seen(1)
        assert [name for name, _ in only.events] == ["low_stock"]


def said(name: str, document: Any) -> object:
    """Return the field of a frame that the test is about."""
    return document[{"stock": "current_stock", "low_stock": "is_low_stock", "product": "min_stock"}[name]]
