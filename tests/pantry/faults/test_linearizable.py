"""Histories of real servers are linearizable: each product answers as if one request came after the other, whatever is killed."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.log.linearizability import UNANSWERED, RecordedOperation, SequentialModel, broken, judge
from tests.support.pantry.system import FLOUR, MILK, PantrySystem, Server, pantry_system

pytestmark = [pytest.mark.real, pytest.mark.long]

CLIENTS = 6
PRODUCTS = (FLOUR, MILK)
READ = 0
_SHORT = re.compile(r"insufficient stock: available (-?[0-9.]+),")
_NOT_STORED = frozenset({409, 429})

Stock = tuple[float, int]
"""Stock of a product, and the sequence of its last movement that was answered."""


def after(state: Stock, call: int, answer: Any) -> Iterable[Stock]:
    """A product that does one thing at a time: `call` is a quantity, negative to take it out, or READ.

    Answers: `("booked", sequence)`, `("short", available)`, `("stock", stock)`.
    """
    stock, last = state
    match answer:
        case ("stock", shown):
            return [state] if shown == stock else []
        case ("short", available):
            return [state] if available == stock and stock + call < 0 else []
        case ("booked", sequence):
            return [(stock + call, sequence)] if stock + call >= 0 and sequence >= last else []
    return [(stock + call, last)] if stock + call >= 0 else []


PRODUCT: SequentialModel[Stock] = SequentialModel((0.0, 0), after)


@attrs.define
class Recorder:
    """Clients of several servers, and the history of their requests and answers."""

    system: PantrySystem
    history: list[RecordedOperation] = attrs.field(factory=list)
    seen: int = 0
    """The highest `Event-Sequence` that any client was shown: readers ask for at least that."""
    ending: bool = False

    async def client(self, number: int) -> None:
        """Book and read at random until the end."""
        chance, name, count = random.Random(number), f"client {number}", 0
        while not self.ending:
            count += 1
            product = chance.choice(PRODUCTS)
            if chance.random() < 0.3:
                await self._read(name, self._server(chance), product)
            else:
                key = f"{name}-{count}".replace(" ", "-") if chance.random() < 0.9 else None
                await self._move(name, chance, product, chance.choice((-4, -3, -2, -1, 1, 2, 3)), key)
            await asyncio.sleep(0.01)

    def _server(self, chance: random.Random) -> Server:
        return chance.choice(self.system.servers)

    async def _read(self, name: str, server: Server, product: str) -> None:
        called, path = time.monotonic(), f"/api/v1/products/{product}/stock?min_seq={self.seen}"
        answer = await server.ask("GET", path)
        if answer.status == 200:
            self.seen = max(self.seen, int(answer.headers["Event-Sequence"]))
            self._note(name, product, READ, ("stock", answer.body["current_stock"]), called)

    async def _move(self, name: str, chance: random.Random, product: str, quantity: int, key: str | None) -> None:
        """Book; with a key again until it is known whether it took effect."""
        first, unknown = time.monotonic(), False
        document = {"product_ean13": product, "type": "in" if quantity > 0 else "out", "quantity": abs(quantity)}
        headers = {} if key is None else {"Idempotency-Key": key}
        while True:
            called = time.monotonic()
            answer = await self._server(chance).post("/movements", document, **headers)
            if answer.status == 201:
                sequence = int(answer.headers["Event-Sequence"])
                self.seen = max(self.seen, sequence)
                self._note(name, product, quantity, ("booked", sequence), first)
                return
            short = _SHORT.search(str(answer.body)) if answer.status == 422 else None
            if short is not None:
                self._note(name, product, quantity, ("short", float(short[1])), called)
                break
            assert answer.status in {0, 503, *_NOT_STORED}, answer
            unknown |= answer.status not in _NOT_STORED
            if key is None:
                break
            await asyncio.sleep(0.05)
        if unknown:
            self._note(name, product, quantity, UNANSWERED, first)

    def _note(self, client: str, product: str, call: int, answer: Any, called: float) -> None:
        operation = RecordedOperation(
            client=client, aggregate=product, call=call, answer=answer, called=called, answered=time.monotonic()
        )
        self.history.append(operation)

    async def quiet(self, more: int) -> None:
        """Wait until `more` further operations are answered."""
        wanted = sum(one.known for one in self.history) + more
        async with asyncio.timeout(60):
            while sum(one.known for one in self.history) < wanted:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.02)


async def test_answers_of_servers_are_linearizable_while_everything_is_killed(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, servers=2) as system:
        for product in PRODUCTS:
            await system.one.create(product)
        recorder = Recorder(system)
        clients = [asyncio.create_task(recorder.client(number)) for number in range(CLIENTS)]
        await recorder.quiet(40)
        await system.nats.kill()
        await system.nats.start()
        await recorder.quiet(40)
        await system.servers[1].kill()
        await recorder.quiet(20)
        await system.servers[1].start()
        await recorder.quiet(40)
        recorder.ending = True
        await asyncio.gather(*clients)
    kinds = {one.answer[0] for one in recorder.history if one.known}
    assert kinds == {"booked", "short", "stock"}, "a history without refusals and reads proves little"
    assert [str(verdict) for verdict in broken(judge(recorder.history, PRODUCT))] == []
    assert broken(judge(_with_an_impossible_read(recorder.history), PRODUCT)), "the checker has to notice it"


def _with_an_impossible_read(history: list[RecordedOperation]) -> list[RecordedOperation]:
    """The same, and in the end a client that reads a stock that no order of the movements gives."""
    end = max(one.answered for one in history if one.known)
    read = next(one for one in history if one.known and one.answer[0] == "stock")
    answer = ("stock", read.answer[1] + 1000)
    return [*history, attrs.evolve(read, client="other", answer=answer, called=end + 1, answered=end + 2)]
