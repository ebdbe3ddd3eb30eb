"""One way to make a service: from an event stream, rules, a read model and routes to a process.

    BANK = Service(model=MODEL, deciders=[ACCOUNT], routes=ROUTES, summary="Accounts and transfers.")

    if __name__ == "__main__":
        sys.exit(BANK.main())

It has commands that read their own writes, an event stream that resumes, health, metrics, an OpenAPI document, migrations, the
commands of `projections`, and it ends in order. A larger service gives `parts`: the services for its handlers, and coroutines for
the background.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import structlog
from aiohttp import web
from platformdirs import user_data_path

from eventlog import Commit, Decider, Head
from eventlog.admin import reconcile
from eventlog.admin.declarations import Declarations, event_stream
from eventlog.commands import Commands, CommandStep, Outcome
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from eventlog.privacy import PersonalDataCipher
from httpkit.application import build_application
from httpkit.edge import Edge, KeptAnswers
from httpkit.monitoring import Metrics
from httpkit.pages import Pages
from httpkit.routes import Answer, Call, Nothing, Route
from httpkit.server.guard import Guard
from httpkit.server.serving import ListenAddress
from httpkit.sse.stream import OF_EVERY_STREAM, Frame
from projections.model import EVERY, ReadModel
from projections.queries import SnapshotQueries
from projections.store import Argument, Queryable, Row, Store
from servicekit.access.service_access import ServiceAccess, TokenDirectory
from servicekit.access.tokens import TokenModel, has_tokens
from servicekit.parts import Part
from servicekit.read_side import CommitFrames, EventChange, ReadSide, migrated
from servicekit.server import (
    Application,
    check_reachable,
    guard_of,
    limits_of,
    listening,
    serve_application,
    shared_token,
)
from servicekit.settings import ServiceSettings
from servicekit.status_route import projections_route, show_projections
from terminalkit.config.loading import SettingsSource

_log = structlog.get_logger(__name__)

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Running:
    """The parts of a service that runs. Handlers get it as `call.services`; a larger service adds its own parts in a subclass.

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
        """Execute the command of a request on one aggregate. An `answer` with its outcome waits until the tables show its events.

        The request's idempotency key and trace go with it. Raises the errors of `eventlog.commands.Commands.execute`.
        """
        return await self.side.commands.execute(decider, id_, command, call.context)

    async def execute_together(self, steps: Sequence[CommandStep[Any, Any, Any]], call: Call[Any]) -> Sequence[Outcome[Any, Any]]:
        """Execute a request's commands on several aggregates, all or none, and wait until the tables show their events.

        The request's idempotency key belongs to the first step, which needs an event. A repetition has the outcomes of the steps
        that had events. Raises the errors of `eventlog.commands.Commands.execute_together`.
        """
        outcomes = await self.side.commands.execute_together(steps, call.context)
        await self.side.acknowledge(max(outcome.sequence for outcome in outcomes), immediate=False)
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


def answer(outcome: Outcome[Any, Any], value: T, *, location: str | None = None, etag: str | None = None) -> Answer[T]:
    """The answer to a command: `value`, with the sequence of its events and whether it is a repetition.

    `location` is the path of a new resource, `etag` the version of the resource after the command.
    """
    headers = {} if location is None else {"Location": location}
    if outcome.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Answer(value, sequence=outcome.sequence, headers=headers, etag=etag)


@attrs.frozen(kw_only=True)
class Parts:
    """The parts that a larger service adds to a running one.

    `services` reach the handlers as `call.services`. `parts` run while this process leads. `measure` is awaited before figures
    are read. `closing` are called when the server stops, to end streams.
    """

    services: Any
    parts: Sequence[Part] = ()
    measure: Callable[[], Awaitable[None]] | None = None
    closing: Sequence[Callable[[web.Application], Awaitable[None]]] = ()


def _only_itself(running: Running, settings: Any) -> Parts:  # noqa: ARG001 - one of many forms
    return Parts(services=running)


def _nothing(change: EventChange) -> Iterable[Frame]:  # noqa: ARG001 - likewise
    return ()


async def follow_events(request: Nothing, call: Call[Running]) -> web.StreamResponse:  # noqa: ARG001 - it has no parameters
    """Follow the events. `Last-Event-ID` resumes after an event: each one once, in order."""
    return await call.services.follow(call)


@attrs.frozen(kw_only=True)
class Service:
    """A service over one read model and the stream that it is made from.

    `deciders` are the rules of all its aggregates, `routes` its API. `show` gives the frames of an event for the event
    stream, any number of them; `events` are their names and data classes. With `events` there is a route at `/api/events`.
    `show` gets the state before the events of a commit that `needs_previous_state`, which may cost a read of the log.
    `pages` are served besides the API. `tokens` are its personal tokens, which its read model has by
    `servicekit.access.tokens.with_tokens`; without them there is one token, the setting `auth_token`.

    `settings` is its settings class. `edge` is the form of the API's answers; guard, position and limits come from settings and
    read model. `declared` gives the streams that have to be on the broker: by default the model's stream, as `streams_file`
    declares it, else with the categories of the registry. `people` makes the cipher for personal fields. `parts` puts a larger
    service together.
    """

    model: ReadModel
    deciders: Sequence[Decider[Any, Any, Any]]
    routes: Sequence[Route[Any]]
    name: str = attrs.field(default=attrs.Factory(lambda self: self.model.name, takes_self=True))
    version: str = "0"
    summary: str = ""
    show: Callable[[EventChange], Iterable[Frame]] = _nothing
    needs_previous_state: Callable[[Commit], bool] = lambda _: False
    events: Mapping[str, Any] = attrs.field(factory=dict)
    pages: Pages | None = None
    tokens: TokenModel | None = None
    settings: type[ServiceSettings] = ServiceSettings
    edge: Edge = attrs.field(
        default=attrs.Factory(
            lambda self: Edge(title=self.name, version=self.version, description=self.summary or None), takes_self=True
        )
    )
    streams_file: Path | None = None
    declared: Callable[[Any], Declarations] | None = None
    people: Callable[[Connection], PersonalDataCipher] | None = None
    parts: Callable[[Running, Any], Parts] = _only_itself

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a category without a registered state, or without a decider.

        Its commits could be neither stored nor read, or would never reach the event stream.
        """
        registered = set(self.model.registry.categories)
        decided = {decider.category for decider in self.deciders}
        read = {category for projection in self.model.projections for category in projection.handlers} - {EVERY}
        if stateless := (decided | read) - registered:
            raise ValueError(
                f"{self.name}: no state is registered for {', '.join(sorted(stateless))}: put `@REGISTRY.state(CATEGORY)` above "
                "the class of the state, with the registry of the read model"
            )
        if self.tokens is not None:
            decided.add(self.tokens.decider.category)
        if undecided := registered - decided:
            raise ValueError(
                f"{self.name}: `deciders` has no decider of {', '.join(sorted(undecided))}, so its events would never reach the "
                "event stream: add it"
            )

    @property
    def source(self) -> SettingsSource[Any]:
        """Where its settings come from: variables and a file with the names that the read model has for them."""
        return SettingsSource(self.settings, self.model.settings.prefix, self.model.settings.file)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run its program with these arguments (None: the arguments of the process), and give the exit code."""
        from servicekit.program import service_program  # noqa: PLC0415 - a service that is only served needs no commands

        program = service_program(
            name=self.name,
            version=self.version,
            summary=self.summary or f"The service {self.name}.",
            source=self.source,
            model=self.model,
            serve=self.serve,
            database=self.database,
        )
        return program.run(argv)

    async def serve(self, settings: ServiceSettings, *, on_ready: Callable[[ListenAddress], None]) -> None:
        """Serve until SIGINT or SIGTERM; `on_ready` gets the address when requests are answered.

        Raises EventLogError, ProjectionError if it cannot start.
        """
        await serve_application(settings, self._opened(settings), on_ready=on_ready)

    def listening(self, settings: ServiceSettings) -> AbstractAsyncContextManager[ListenAddress]:
        """Serve while a block runs, which gets the address: for tests."""
        return listening(settings, self._opened(settings))

    def declarations(self, settings: ServiceSettings) -> Declarations:
        """The streams that have to be on the broker. Raises DeclarationInvalid."""
        if self.declared is not None:
            return self.declared(settings)
        return event_stream(
            self.model.stream,
            self.model.registry.categories,
            file=self.streams_file,
            replicas=settings.replicas,
            max_bytes=settings.event_store_max_bytes,
        )

    def database(self, settings: Any) -> str:
        """The address of its database: from the settings, else a file in the user's data directory."""
        return settings.database_url or f"sqlite:{user_data_path(self.name) / self.name}.db"

    @asynccontextmanager
    async def connected(self, settings: ServiceSettings) -> AsyncIterator[Connection]:
        """A connection to the broker, on which its streams are. Differences that are left to a person are logged."""
        async with Connection.open(settings.nats_url, name=self.name) as connection:
            for drift in await reconcile.apply_declarations(connection, self.declarations(settings)):
                _log.warning("stream differs from its declaration", drift=str(drift))
            yield connection

    @asynccontextmanager
    async def _opened(self, settings: ServiceSettings) -> AsyncIterator[Application]:
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(migrated(self.database(settings), self.model))
            connection = await stack.enter_async_context(self.connected(settings))
            people = None if self.people is None else self.people(connection)
            log = JetStreamLog(connection, self.model.stream, self.model.registry, people=people)
            await self._check_reachable(settings, log)
            deciders = {decider.category: decider for decider in self.deciders}
            frames = CommitFrames(log, deciders, self.show, needs_previous_state=self.needs_previous_state)
            side = ReadSide(
                connection=connection,
                log=log,
                store=store,
                model=self.model,
                frames=frames,
                max_lag=settings.max_lag,
                monitoring_url=settings.monitoring_url,
                declared=self.declarations(settings).irreplaceable,
            )
            access = self._access(settings, log, store, side.commands)
            running = Running(
                connection=connection,
                log=log,
                store=store,
                side=side,
                head=await log.head(),
                guard=guard_of(settings, access, name=self.model.settings.prefix.lower()),
                snapshots=side.snapshots,
                access=access,
                people=people,
            )
            parts = self.parts(running, settings)
            side.add_leading(*parts.parts)
            await stack.enter_async_context(side.running())
            edge = self._edge(settings, running)
            yield self._application(edge, side, parts), edge

    async def _check_reachable(self, settings: ServiceSettings, log: JetStreamLog) -> None:
        program = f"{self.model.settings.prefix.lower()} token create NAME" if self.tokens is not None else None
        issued = self.tokens is not None and await has_tokens(self.tokens, log)
        check_reachable(settings, has_tokens=issued, program=program)

    def _access(self, settings: ServiceSettings, log: JetStreamLog, store: Store, commands: Commands) -> ServiceAccess | None:
        if self.tokens is None:
            return None

        async def reader() -> Queryable:
            return store

        directory = TokenDirectory(self.tokens, log, reader, is_connected=lambda: log.connection.connected)
        return ServiceAccess(directory, commands, shared=shared_token(settings))

    def _edge(self, settings: ServiceSettings, running: Running) -> Edge:
        side, people = running.side, running.people

        def state() -> object:
            return None if people is not None and people.missing else side.state()  # keys can come back, and no row changes

        return attrs.evolve(
            self.edge,
            guard=running.guard,
            metrics=Metrics(),
            body_deadline=limits_of(settings).read,
            tables=side,
            kept=KeptAnswers(state, lambda: side.projector.position),
        )

    def _application(self, edge: Edge, side: ReadSide, parts: Parts) -> web.Application:
        edge.metrics.registry.register(side.parts)
        if parts.measure is not None:
            edge.metrics.ask(parts.measure)
        app = build_application(self.table, parts.services, edge, health=side.parts.health(), pages=self.pages)
        app.on_shutdown.extend((side.hub.close, *parts.closing))
        return app

    @property
    def table(self) -> Sequence[Route[Any]]:
        """Its routes, with the routes of the event stream and of the read model's state."""
        more: list[Route[Any]] = []
        if self.events:
            summary = "Follow the events"
            events = {**self.events, **OF_EVERY_STREAM}
            more.append(Route("GET", "/api/events", follow_events, summary=summary, tags=("events",), events=events))
        if all(route.handler is not show_projections for route in self.routes):
            more.append(projections_route("/api/projections"))
        return (*self.routes, *more)
