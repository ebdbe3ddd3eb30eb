"""The clients of a simulation: they book, transfer and read, repeat what has a key, and note every answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import attrs

from tests.simulator.process import Answer, Process, Request
from tests.support.log.linearizability import UNANSWERED, RecordedOperation

if TYPE_CHECKING:
    from tests.simulator.simulation import Simulation

ACCOUNTS = ("a", "b", "c")
REFUSED = "refused"
_CLIENTS = 3
_LEAST, _MOST = 4, 9
_TRIES = 8
_MOST_AT_ONCE = 6
_PATIENCE = 9.0
"""Virtual seconds after which a client gives up a request."""


@attrs.frozen
class Acknowledged:
    """A booking that was acknowledged to a client."""

    request: str
    account: str
    sequence: int
    balance: tuple[int, int]
    at: float


class Clients:
    """The clients of one simulation, and the answers that they got."""

    def __init__(self, simulation: Simulation) -> None:
        self.requests = 0
        self.history: list[RecordedOperation] = []
        self.acknowledged: list[Acknowledged] = []
        self.not_stored: set[str] = set()
        """Ids of requests that were denied: the answer is that they are not stored."""
        self.begun: dict[str, float] = {}
        """When each request was sent."""
        self._simulation = simulation
        self._random = simulation.random
        self._loop = simulation.loop

    def start(self) -> list[asyncio.Task[None]]:
        """Begin; done when all have had their answers."""
        return [asyncio.create_task(self._client(f"client-{number}")) for number in range(_CLIENTS)]

    async def _client(self, name: str) -> None:
        chance = self._random
        for number in range(chance.randint(_LEAST, _MOST)):
            await asyncio.sleep(chance.expovariate(1.5))
            drawn = chance.random()
            if drawn < 0.25:
                await self._read(name, chance.choice(ACCOUNTS))
            elif drawn < 0.35 and self.acknowledged:
                await self._read_own(self.acknowledged[chance.randrange(len(self.acknowledged))])
            elif drawn < 0.6:
                await self._book_many(name, f"{name}.{number}")
            else:
                await self.book(name, f"{name}.{number}")

    def _process(self) -> Process | None:
        serving = [process for process in self._simulation.processes if process.serving]
        return self._random.choice(serving) if serving else None

    async def _asked(self, process: Process, work: Any) -> Any:
        """The answer of a process; None if it does not come."""
        self.requests += 1
        task = process.spawn(work)
        await asyncio.wait({task}, timeout=_PATIENCE)
        return task.result() if task.done() and not task.cancelled() else None

    # Writing

    async def _book_many(self, name: str, id_: str) -> None:
        """Several bookings on one account at the same moment, most of them on one process: they are stored in a row."""
        chance = self._random
        account, process = chance.choice(ACCOUNTS), self._process()
        await asyncio.gather(
            *(
                self.book(f"{name}.{id_}.{number}", f"{id_}-{number}", account, process if chance.random() < 0.8 else None)
                for number in range(chance.randint(2, _MOST_AT_ONCE))
            )
        )

    async def book(self, name: str, id_: str, account: str | None = None, process: Process | None = None) -> None:
        """Book, or transfer; with a key as often as it takes, sometimes on two processes at once.

        A given `account` excludes a transfer. `process` gets the first try.
        """
        chance = self._random
        given, account = account, account or chance.choice(ACCOUNTS)
        to = chance.choice([other for other in ACCOUNTS if other != account]) if chance.random() < 0.25 and not given else None
        amount = chance.randint(1, 9) if to is not None or chance.random() < 0.6 else -chance.randint(1, 9)
        key = f"key-{id_}" if chance.random() < 0.6 else None
        request = Request(id=id_, account=account, amount=amount, to=to, key=key)
        began = self._loop.time()
        unknown: list[float] = []
        for number in range(_TRIES if key is not None else 1):
            process = process if number == 0 else None
            tries = [attrs.evolve(request, id=f"{id_}.{number}{letter}") for letter in ("", "b")]
            twice = key is not None and chance.random() < 0.2
            called = self._loop.time()
            answers = await asyncio.gather(*(self._try(one, process) for one in tries[: 1 + twice]))
            done = [answer for answer in answers if answer.kind == "done"]
            if len({answer.accounts for answer in done}) > 1 and self._simulation.damaged is None:
                self._simulation.violated(f"{id_}: two answers for one key: {done}")
            if done:
                self._note_done(name, request, began, done[0])
                return
            if any(answer.kind == "unknown" for answer in answers):
                unknown.append(called)
            elif any(answer.kind == REFUSED for answer in answers):
                if to is None:
                    self._note(name, request, called, REFUSED)
                break
            await asyncio.sleep(chance.uniform(0.1, 1))
        if unknown:
            self._note(name, request, unknown[0], UNANSWERED)

    async def _try(self, request: Request, process: Process | None = None) -> Answer:
        process = process if process is not None and process.serving else self._process()
        if process is None:
            return Answer(kind="not stored", reason="no process serves")
        self.begun[request.id] = self._loop.time()
        answer: Answer | None = await self._asked(process, process.write(request))
        if answer is None:
            answer = Answer(kind="unknown", reason="no answer")
        self.note(request, process, answer)
        return answer

    def note(self, request: Request, process: Process, answer: Answer) -> None:
        """Keep an answer, to be judged at the end."""
        if answer.kind == "not stored":
            self.not_stored.add(request.id)
        self._simulation.trace(
            f"{request.id} {request.account} {request.amount} on {process.name}: {answer.kind} {answer.reason}"
        )
        for account, sequence, balance in answer.accounts:
            self.acknowledged.append(Acknowledged(request.id, account, sequence, balance, self._loop.time()))

    def _note_done(self, name: str, request: Request, called: float, answer: Answer) -> None:
        amounts = {request.account: request.amount} if request.to is None else _both(request)
        for account, _, balance in answer.accounts:
            self._add(name, account, amounts[account], balance, called)

    def _note(self, name: str, request: Request, called: float, answer: Any) -> None:
        amounts = {request.account: request.amount} if request.to is None else _both(request)
        for account, amount in amounts.items():
            self._add(name, account, amount, answer, called)

    def _add(self, name: str, account: str, call: int | None, answer: Any, called: float) -> None:
        now = self._loop.time()
        self.history.append(
            RecordedOperation(client=name, aggregate=account, call=call, answer=answer, called=called, answered=now)
        )

    # Reading

    async def _read(self, name: str, account: str) -> None:
        """Read what is stored now."""
        called, process = self._loop.time(), self._process()
        if process is not None and (found := await self._asked(process, process.read(account))) is not None:
            self._add(name, account, None, found[:2], called)

    async def _read_own(self, written: Acknowledged) -> None:
        """Read an acknowledged booking on any process."""
        process = self._process()
        if process is None:
            return
        found = await self._asked(process, process.read(written.account, written.sequence))
        if found is None or written.account in self._simulation.oracle.unchained:
            return
        _, movements, sequence = found
        older = sequence < written.sequence or movements < written.balance[1]
        other = movements == written.balance[1] and found[:2] != written.balance
        # The tables of a process that has stopped may have the records that the log has lost, up to the same sequence.
        if (older or other) and not self._simulation.excused(written.sequence):
            self._simulation.violated(f"{process.name} shows {found} for {written}")


def _both(request: Request) -> dict[str, int]:
    assert request.to is not None
    return {request.account: -request.amount, request.to: request.amount}


__all__ = ["ACCOUNTS", "REFUSED", "Acknowledged", "Clients"]
