"""`gctd serve`: the control plane as one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog

from eventlog import Unavailable
from eventlog.commands import Commands
from gctd.broker import Broker, open_broker
from gctd.control.dispatcher import Dispatcher
from gctd.control.reaper import Patience, Reaper
from gctd.control.tracker import Policy, Tracker
from gctd.engines.registry import engine_named, engines
from gctd.http.api import TABLE, pages
from gctd.http.feed import Feed
from gctd.http.figures import Figures
from gctd.http.frames import Frames
from gctd.http.services import READ_YOUR_WRITES, Services
from gctd.policy import repo_policy
from gctd.settings import Settings
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.guards import Guard, allowed_hosts
from httpkit.health import Health
from httpkit.server import Address, serving, termination
from httpkit.sse import Hub
from projections.databases import store_at
from projections.errors import ProjectorStopped
from projections.migrations import Migrations, check_tables
from projections.projector import CommandKeys, Projector
from projections.status import State
from projections.store import Store
from projections.tracker import MODEL
from projections.tracker.queries import TrackerQueries

_log = structlog.get_logger(__name__)


async def serve(settings: Settings, *, on_ready: Callable[[Address], None]) -> None:
    """Run the control plane until SIGINT or SIGTERM; `on_ready` is told the address when requests are answered.

    Raises EventLogError, ProjectionError where it cannot start.
    """
    async with AsyncExitStack() as stack:
        signalled = stack.enter_context(termination())
        store = await stack.enter_async_context(_opened(settings))
        broker = await stack.enter_async_context(open_broker(settings, name="gctd-serve"))
        plane = _Plane(settings, broker, store)
        await stack.enter_async_context(plane.running())
        app = plane.application()
        address = await stack.enter_async_context(serving(app, plane.edge, host=settings.host, port=settings.port))
        on_ready(address)
        received = await signalled
        _log.info("ending", signal=received.name)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Store]:
    async with store_at(settings.database_url) as store:
        for migration in await Migrations(store, MODEL).up():
            _log.info("migration applied", migration=str(migration))
        await check_tables(store, MODEL)
        yield store


class _Plane:
    """The parts of one control plane, wired."""

    def __init__(self, settings: Settings, broker: Broker, store: Store) -> None:
        self._broker = broker
        self._store = store
        self._settings = settings
        queries = TrackerQueries(store)
        frames = Frames(broker.log)
        self._hub = Hub(frames.replay)
        self._feed = Feed(frames, self._hub)
        self._projector = Projector(broker.log, store, MODEL, on_applied=self._feed.applied)
        commands = Commands(broker.log, keys=CommandKeys(self._projector, store))
        self._dispatcher = Dispatcher(broker.log, broker.queue, store, queries)
        patience = Patience(queue=settings.queue_timeout, absence=settings.presence_ttl / 3, job=settings.presence_ttl)
        self._reaper = Reaper(commands, queries, broker.queue, broker.presence, patience)
        policy = Policy(
            repos=repo_policy(settings),
            engine=engine_named(settings.worker_engine).name,
            engines=frozenset(engines()),
            max_attempts=settings.max_attempts,
        )
        self._services = Services(
            tracker=Tracker(broker.log, commands, policy),
            queries=queries,
            projector=self._projector,
            blobs=broker.blobs,
            presence=broker.presence,
            hub=self._hub,
        )
        guard = Guard(hosts=allowed_hosts(settings.host, settings.allowed_hosts), token=settings.auth_token)
        self.edge = Edge(
            title="gctd",
            version=version("gctd"),
            description="A scan tracker for Go repositories: registers, tests, and scores every function by its risk of change.",
            guard=guard,
            position=lambda: self._projector.position,
            wait_for=lambda sequence: self._projector.wait_for(sequence, READ_YOUR_WRITES),
        )
        self.edge.metrics.registry.register(self._hub)
        self.edge.metrics.registry.register(Figures(broker, self._projector, commands, self._dispatcher))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run projector, event stream, dispatcher and reaper for as long as the block lasts."""
        head = await self._broker.log.head()
        self._hub.start(head.last)
        tasks = [
            asyncio.create_task(_kept(name, work), name=name)
            for name, work in {
                "projector": self._projector.run(),
                "event stream": self._feed.run(),
                "dispatcher": self._dispatcher.run(),
                "reaper": self._reaper.run(),
            }.items()
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def application(self) -> Any:
        """The HTTP application."""
        health = Health({"broker": self._check_broker, "database": self._check_database, "read model": self._check_read_model})
        app = build_application(TABLE, self._services, self.edge, health=health, pages=pages())
        app.on_shutdown.append(self._hub.close)
        return app

    async def _check_broker(self) -> None:
        if not self._broker.connection.connected:
            raise Unavailable("the broker is not connected")
        await self._broker.log.head()

    async def _check_database(self) -> None:
        await self._store.fetch_one("SELECT 1 AS one")

    async def _check_read_model(self) -> None:
        status = self._projector.status()
        if status.state in {State.STOPPED, State.WAITING, State.STARTING}:
            raise ProjectorStopped(status.error or f"the projector is {status.state}")
        if status.lag_seconds is not None and status.lag_seconds > self._settings.max_lag:
            raise ProjectorStopped(f"{status.lag_events} events behind the log, {status.lag_seconds:.0f} s")


async def _kept(name: str, work: Coroutine[Any, Any, None]) -> None:
    """A part that fails is logged; the others go on, and readiness tells."""
    try:
        await work
    except Exception:  # noqa: BLE001 - whatever ended it, it is said
        _log.exception("part ended", part=name)
