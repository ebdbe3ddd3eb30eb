"""A service that runs: its parts, and commands whose answers are readable when they are given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from aiohttp import web
from prometheus_client.registry import Collector

from eventlog import Decider, Head
from eventlog.commands import CommandStep, Outcome
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.privacy.encryption import PersonalDataCipher
from httpkit.routes import Answer, Call
from httpkit.server.guard import Guard
from projections.projector.writer import OnApplied
from projections.queries.snapshots import SnapshotQueries
from projections.store import Argument, Row, Store
from servicekit.access.service_access import ServiceAccess
from servicekit.command_context import context, replayed
from servicekit.readside import ReadSide
from servicekit.serving.background import Start

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Running:
    """The parts of a service that runs; handlers of a small service get it as `call.services`.

    `head` are the ends of the log when it started. `people` encrypts personal fields, if the service has a keyring. `guard` are
    the checks of its requests. `access` are its tokens and sessions; None without tokens. `snapshots` are the tables as
    the handler of a read sees them: at one moment, whose sequence its answer names.
    """

    connection: Connection
    log: JetStreamLog
    store: Store
    side: ReadSide
    head: Head
    guard: Guard
    snapshots: SnapshotQueries
    access: ServiceAccess | None = None
    people: PersonalDataCipher | None = None

    async def execute(self, decider: Decider[S, C, E], id_: str, command: C, call: Call[Any]) -> Outcome[S, E]:
        """Execute the command of a request on one aggregate, and wait until the tables show its events.

        The request's idempotency key and trace go with it. Raises the errors of `eventlog.commands.Commands.execute`.
        """
        outcome = await self.side.commands.execute(decider, id_, command, context(call))
        await self.side.wait_visible(outcome.sequence)
        return outcome

    async def execute_together(self, steps: Sequence[CommandStep[Any, Any, Any]], call: Call[Any]) -> Sequence[Outcome[Any, Any]]:
        """Execute a request's commands on several aggregates, all or none, and wait until the tables show their events.

        The request's idempotency key belongs to the first step, which needs an event. A repetition has the outcomes of the steps
        that had events. Raises the errors of `eventlog.commands.Commands.execute_together`.
        """
        outcomes = await self.side.commands.execute_together(steps, context(call))
        await self.side.wait_visible(max(outcome.sequence for outcome in outcomes))
        return outcomes

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query; parameters are written `$1`, `$2`. Raises StoreUnavailable."""
        return await self.snapshots.fetch(sql, *arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""
        return await self.snapshots.fetch_one(sql, *arguments)

    async def follow(self, call: Call[Any], *, only: frozenset[str] | None = None) -> web.StreamResponse:
        """Answer with the event stream: all events, or the ones with these names; `Last-Event-ID` resumes after an event."""
        return await self.side.hub.stream(call.http, only=only)


def answer(outcome: Outcome[Any, Any], value: T) -> Answer[T]:
    """The answer to a command: `value`, with the sequence of its events and whether it is a repetition."""
    return Answer(value, sequence=outcome.sequence, headers=replayed(outcome))


@attrs.frozen(kw_only=True)
class Parts:
    """The parts that a larger service adds to a running one.

    `services` reach the handlers as `call.services`. `background` are coroutines that run while this process leads, by the names
    that the log has for them. `on_applied` are called with the commits of each transaction once they are visible. `collectors`
    give metrics, and `measure` is awaited before they are read. `closing` are called when the server stops, to end streams.
    """

    services: Any
    background: Mapping[str, Start] = attrs.field(factory=dict)
    on_applied: Sequence[OnApplied] = ()
    collectors: Sequence[Collector] = ()
    measure: Callable[[], Awaitable[None]] | None = None
    closing: Sequence[Callable[[web.Application], Awaitable[None]]] = ()
