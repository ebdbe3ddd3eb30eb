"""A simulated process of a service: the real log, store, projector and commands, put together as `servicekit.read_side` does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import attrs

from eventlog import Commands, CommandStep, Context, EventLogError, LogDamaged, OutcomeUnknown, Unavailable
from eventlog.admin.scrub import LogScrubber
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.fence import WriteHealth
from eventlog.jetstream.log import JetStreamLog
from projections.errors import Behind, ProjectionError, ProjectorStopped, StoreUnavailable
from projections.keys import CommandKeys
from projections.projector.projector import Projector
from projections.stores.postgres.store import PostgresStore
from tests.simulator.accounts import ACCOUNT, BALANCES, MODEL, REGISTRY, STREAM, Insufficient, Move
from tests.simulator.broker import Broker
from tests.support.log.virtual_time import VirtualTimeLoop

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
READ_BALANCE = f"SELECT * FROM {BALANCES.name} WHERE id = $1"
_WAIT = 5.0
_DEADLINE = 6.0


@attrs.frozen(kw_only=True)
class Answer:
    """The answer to a request.

    `kind` is `done`, `refused` (by the rules of the account), `not stored` or `unknown`. Of what was done there are the sequence
    and the balance after it, per account.
    """

    kind: str
    accounts: tuple[tuple[str, int, tuple[int, int]], ...] = ()
    reason: str = ""


@attrs.frozen(kw_only=True)
class Request:
    """A booking on one account, or a transfer `to` another one. `id` is unique for each try."""

    id: str
    account: str
    amount: int
    to: str | None = None
    key: str | None = None


class Process:
    """One process, from its start to its end. `ahead`: by how much its clock is ahead, in seconds."""

    def __init__(self, loop: VirtualTimeLoop, broker: Broker, name: str) -> None:
        self.name = name
        self.ahead = 0.0
        self.alive = self.serving = False
        self.served_since = float("inf")
        self.stopped: ProjectorStopped | None = None
        """The error that its projector has stopped for."""
        self.link = broker.connect(name)
        self.context = loop.context_of(name)
        self._loop = loop
        self._ids = count(1)
        self.log: JetStreamLog
        self.store: PostgresStore
        self.projector: Projector
        self.commands: Commands

    def start(self) -> None:
        """Begin."""
        self.alive = True
        running = self.spawn(self._run())
        running.add_done_callback(lambda _: None)

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run something in this process."""
        return self._loop.create_task(work, context=self.context)

    def now(self) -> datetime:
        """Its clock."""
        return EPOCH + timedelta(seconds=self._loop.time() + self.ahead)

    async def _run(self) -> None:
        connection = await self.link.connection()
        self.log = JetStreamLog(connection, STREAM, REGISTRY)
        self.log.writes = WriteHealth(self._loop.time)
        self.store = PostgresStore("postgresql://simulated/bank")
        self.projector = Projector(self.log, self.store, MODEL, now=self.now)
        self.commands = Commands(
            self.log,
            keys=CommandKeys(self.projector, self.store),
            check_writable=self.projector.check_running,
            now=self.now,
            new_id=lambda: f"{self.name}-{next(self._ids)}",
        )
        while not await self._begin():  # noqa: ASYNC110 - it asks again
            await asyncio.sleep(0.5)
        self.serving, self.served_since = True, self._loop.time()
        try:
            await self.projector.run()
        except ProjectorStopped as error:
            self.stopped = error

    async def _begin(self) -> bool:
        """Whether the position of the tables is known; not if log or database is away."""
        try:
            await self.store.open()
            head = await self.log.head()
            self.projector.show_after(head.last)
            await self.projector.load_shown()
        except (StoreUnavailable, Unavailable):
            return False
        return True

    # Requests

    async def write(self, request: Request) -> Answer:
        """Book, and wait until the read model shows it."""
        context = Context(key=request.key, fingerprint=f"{request.account} {request.amount}", correlation=request.id)
        try:
            if request.to is None:
                move = Move(amount=request.amount)
                outcomes = [await self.commands.execute(ACCOUNT, request.account, move, context, deadline=_DEADLINE)]
            else:
                steps = [
                    CommandStep(ACCOUNT, request.account, Move(amount=-request.amount)),
                    CommandStep(ACCOUNT, request.to, Move(amount=request.amount)),
                ]
                outcomes = list(await self.commands.execute_together(steps, context, deadline=_DEADLINE))
        except Insufficient:
            return Answer(kind="refused")
        except (OutcomeUnknown, LogDamaged) as error:
            return Answer(kind="unknown", reason=f"{type(error).__name__}: {error}")
        except (EventLogError, ProjectionError) as error:
            return Answer(kind="not stored", reason=f"{type(error).__name__}: {error}")
        accounts = tuple((o.aggregate.id, o.sequence, (o.state.balance, o.state.movements)) for o in outcomes)
        try:
            await self.projector.wait_for(max(sequence for _, sequence, _ in accounts), _WAIT)
        except (Behind, ProjectorStopped) as error:
            return Answer(kind="done", accounts=accounts, reason=str(error))
        return Answer(kind="done", accounts=accounts)

    async def read(self, account: str, at_least: int | None = None) -> tuple[int, int, int] | None:
        """Balance, movements and sequence of an account, true for a sequence, or without one for all that is stored now.

        None: there is no true answer now.
        """
        try:
            if at_least is None:
                at_least = (await self.log.head()).last
            await self.projector.wait_for(at_least, _WAIT)
            row = await self.store.fetch_one(READ_BALANCE, account)
        except (EventLogError, ProjectionError):
            return None
        return (0, 0, 0) if row is None else (row["balance"], row["movements"], row["sequence"])

    async def scrub(self) -> set[int]:
        """The sequences that a pass over the log names."""
        reader = MessageReader(self.log.connection, STREAM)
        done = await LogScrubber(reader, REGISTRY, self.log.head).scrub()
        return {damage.sequence for damage in done.found}


__all__ = ["Answer", "Process", "Request"]
