"""A booking is answered when the log has it, and no read of the server misses an answered booking."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from pantry.domain.gtin import own_code
from servicekit.read_side import AHEAD
from tests.support.pantry.system import API, FLOUR, Answer, Server, pantry_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

PATIENCE = 5.0
"""Seconds that a read waits for the tables."""
PROMPT = 3.0
"""Seconds for an answer that does not wait for the tables, on a busy machine."""


@pytest_asyncio.fixture(loop_scope="module")
async def product(server: Server, code: str) -> str:
    """The code of a product without stock."""
    await server.create(code)
    return code


@contextmanager
def locked(server: Server) -> Iterator[None]:
    """No other program can write to the tables of the server during the block."""
    with closing(sqlite3.connect(server.database, timeout=10, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def booked(server: Server, product: str, count: int = 1) -> Sequence[Answer]:
    """Book; each answer is prompt."""
    made = await asyncio.wait_for(asyncio.gather(*(server.move("in", 1, product) for _ in range(count))), PROMPT)
    assert {answer.status for answer in made} == {201}, made
    return made


def sequence_of(answer: Answer) -> int:
    return int(answer.headers["Event-Sequence"])


async def test_reads_of_every_form_wait_for_an_answered_booking(server: Server, product: str) -> None:
    of_product, stock = f"{API}/products/{product}", f"{API}/products/{product}/stock"
    for _ in range(2):  # a second answer is a kept one
        assert (await server.get(f"/products/{product}"))["current_stock"] == 0
    with locked(server):
        [booking] = await booked(server, product)
        asking = [
            asyncio.create_task(server.ask("GET", path, headers=headers))
            for path, headers in (
                (of_product, {}),
                (stock, {}),
                (f"{API}/movements/{booking.body['id']}", {}),
                (f"{API}/reports/stock", {"Accept": "text/csv"}),
            )
        ]
        done, _ = await asyncio.wait(asking, timeout=0.5)
        assert not done, [task.result() for task in done]
    kept, plain, one, report = await asyncio.gather(*asking)
    assert kept.body["current_stock"] == plain.body["current_stock"] == 1
    assert one.body["id"] == booking.body["id"]
    assert product in report.body
    assert {sequence_of(answer) for answer in (kept, plain, one, report)} == {sequence_of(booking)}


async def test_an_event_stream_begins_after_the_bookings_that_were_answered(server: Server, product: str) -> None:
    with locked(server):
        await booked(server, product)
        opening = asyncio.create_task(server.http.get(f"{server.url}{API}/events?events=stock"))
        done, _ = await asyncio.wait({opening}, timeout=0.5)
        assert not done
    async with await opening as stream:
        [booking] = await booked(server, product)
        async for line in stream.content:
            if line.startswith(b"data:") and b"current_stock" in line:
                assert json.loads(line.removeprefix(b"data:"))["current_stock"] == booking.body["stock_after"] == 2
                break


async def test_an_undo_finds_an_answered_booking(server: Server, product: str) -> None:
    with locked(server):
        [booking] = await booked(server, product)
        undoing = asyncio.create_task(server.post(f"/movements/{booking.body['id']}/undo"))
        done, _ = await asyncio.wait({undoing}, timeout=0.5)
        assert not done, undoing.result()
    assert (await undoing).status == 201
    assert await server.stock(product) == 0


@pytest.mark.parametrize("change", ["undo", "remove a code"])
async def test_a_command_finds_the_answer_of_another_server(tmp_path: Path, change: str) -> None:
    """A 404 is true for the log, not for tables that are late."""
    async with pantry_system(tmp_path, servers=2) as system:
        one, two = system.servers
        await one.create()
        with locked(two):
            if change == "undo":
                [booking] = await booked(one, FLOUR)
                sending = asyncio.create_task(two.post(f"/movements/{booking.body['id']}/undo"))
            else:
                code = own_code(1)
                await one.ask("PUT", f"{API}/codes/{code}", {"product_ean13": FLOUR})
                sending = asyncio.create_task(two.ask("DELETE", f"{API}/codes/{code}"))
            done, _ = await asyncio.wait({sending}, timeout=0.5)
            assert not done, sending.result()
        assert (await sending).status in {201, 204}
        unknown = f"/movements/{uuid4()}/undo"
        assert (await two.post(unknown)).status == 404


async def test_a_booking_that_is_repeated_at_once_takes_effect_once(server: Server, product: str) -> None:
    body, key = {"product_ean13": product, "type": "in", "quantity": 1}, {"Idempotency-Key": f"once-{product}"}
    with locked(server):
        first = await asyncio.wait_for(server.post("/movements", body, **key), PROMPT)
        again = asyncio.create_task(server.post("/movements", body, **key))
        await asyncio.wait({again}, timeout=0.5)
    assert (await again).body["id"] == first.body["id"]
    assert (await again).headers["Idempotent-Replayed"] == "true"
    assert await server.stock(product) == 1


async def test_reads_wait_once_for_tables_that_stay_behind_and_name_the_position_that_they_show(
    server: Server, product: str
) -> None:
    with locked(server):
        [booking] = await booked(server, product)
        sequence = sequence_of(booking)
        began = time.monotonic()
        late = await server.ask("GET", f"{API}/products/{product}")
        assert time.monotonic() - began > PATIENCE - 0.5
        assert (late.body["current_stock"], sequence_of(late)) == (0, sequence - 1)
        assert await asyncio.wait_for(server.stock(product), PROMPT) == 0
        asked = await server.ask("GET", f"{API}/products/{product}?min_seq={sequence}")
        assert asked.status == 503, "a client that names the sequence gets no older answer"
    assert (await server.get(f"/products/{product}?min_seq={sequence}"))["current_stock"] == 1
    with locked(server):
        await booked(server, product)
        reading = asyncio.create_task(server.stock(product))
        done, _ = await asyncio.wait({reading}, timeout=0.5)
        assert not done, "the tables were up to date in between"
    assert await reading == 2


async def test_bookings_are_ahead_of_the_tables_by_a_bounded_number(server: Server, product: str) -> None:
    with locked(server):
        for _ in range(AHEAD):  # one after another, since several at a time can share a commit
            await booked(server, product)
        more = [asyncio.create_task(server.move("in", 1, product)) for _ in range(5)]
        done, _ = await asyncio.wait(more, timeout=0.5)
        assert not done, [task.result() for task in done]
    assert {answer.status for answer in await asyncio.gather(*more)} == {201}
    assert await server.stock(product) == AHEAD + 5


async def test_a_killed_server_shows_its_earlier_answers(server: Server, product: str) -> None:
    with locked(server):
        await booked(server, product, 20)
        await server.kill()
    await server.begin()

    async def first() -> Sequence[Answer]:
        answer = await server.ask("GET", f"{API}/products/{product}")
        return [answer] if answer.status == 200 else []

    [answer] = await wait_until(first, timeout=60, every=0.01)
    assert answer.body["current_stock"] == 20


async def test_servers_with_shared_tables_show_the_answers_of_any_of_them(tmp_path: Path, postgres_url: str) -> None:
    """No server has a note of the bookings of another one, so a booking waits for the tables."""
    async with pantry_system(tmp_path, servers=2, PANTRY_DATABASE_URL=postgres_url) as system:
        one, other = system.servers
        await one.create()
        for number in range(1, 30):
            await (one, other)[number % 2].moved("in", 1)
            assert await other.stock() == await one.stock() == number
