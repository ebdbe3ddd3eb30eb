"""`gctd serve`: the control plane as one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog

from gctd.control.dispatcher import Dispatcher
from gctd.control.reaper import Reaper, Timeouts
from gctd.control.rescoring import Rescoring
from gctd.control.tracker import Policy, Tracker
from gctd.control.updates import Updates
from gctd.domain.config import ProjectConfig
from gctd.domain.options import format_duration
from gctd.engines.registry import NAMES, known
from gctd.exports.coverage import Coverages
from gctd.http.api import pages, table
from gctd.http.examples import EXAMPLES
from gctd.http.figures import Figures
from gctd.http.frames import frames
from gctd.http.services import Services
from gctd.http.tasks.attempt_logs import AttemptLogs
from gctd.http.tasks.log_reader import LogReader
from gctd.http.tasks.outcomes import Outcomes
from gctd.readmodel import MODEL
from gctd.readmodel.queries import TrackerQueries
from gctd.scan.git.commands import Git
from gctd.scan.hosts.links import Links
from gctd.settings import Settings
from gctd.wiring.broker import Broker, open_broker
from gctd.wiring.policy import git_settings, repo_policy
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.server.guard import Guard, allowed_hosts
from httpkit.server.serving import ListenAddress, serving, termination
from httpkit.sse.single import Streams
from projections.store import Store
from servicekit.readside import ReadSide, migrated

_log = structlog.get_logger(__name__)


async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Run the control plane until SIGINT or SIGTERM; `on_ready` is told the address when requests are answered.

    Raises EventLogError, ProjectionError where it cannot start.
    """
    async with AsyncExitStack() as stack:
        signalled = stack.enter_context(termination())
        store = await stack.enter_async_context(migrated(settings.database_url, MODEL))
        broker = await stack.enter_async_context(open_broker(settings, name="gctd-serve"))
        plane = _Plane(settings, broker, store)
        await stack.enter_async_context(plane.running())
        app = plane.application()
        address = await stack.enter_async_context(serving(app, plane.edge, host=settings.host, port=settings.port))
        on_ready(address)
        received = await signalled
        _log.info("ending", signal=received.name)


class _Plane:
    """The parts of one control plane, wired."""

    def __init__(self, settings: Settings, broker: Broker, store: Store) -> None:
        self._broker = broker
        queries = TrackerQueries(store)
        self._outcomes = Outcomes()
        self._logs = AttemptLogs(broker.logs, broker.blobs, queries)
        self._streams = Streams()
        self._side = ReadSide(
            connection=broker.connection,
            log=broker.log,
            store=store,
            model=MODEL,
            frames=frames(broker.log),
            max_lag=settings.max_lag,
            on_applied=(self._logs.applied, self._outcomes.applied),
        )
        commands = self._side.commands
        self._dispatcher = Dispatcher(broker.log, broker.queue, store, queries)
        patience = Timeouts(queue=settings.queue_timeout, absence=settings.presence_ttl / 3, job=settings.presence_ttl)
        self._reaper = Reaper(broker.log, commands, queries, broker.queue, broker.presence, patience)
        policy = Policy(
            repos=repo_policy(settings),
            engine=known(settings.worker_engine),
            engines=frozenset(NAMES),
            max_attempts=settings.max_attempts,
        )
        tracker = Tracker(broker.log, commands, policy)
        self._services = Services(
            tracker=tracker,
            updates=Updates(
                broker.log,
                queries,
                tracker,
                Git(git_settings(settings)),
                caught_up=self._side.wait_for_head,
                git_timeout=settings.git_timeout,
            ),
            rescoring=Rescoring(broker.log, queries, tracker, caught_up=self._side.wait_for_head),
            defaults=_project_defaults(settings),
            queries=queries,
            blobs=broker.blobs,
            reader=LogReader(broker.log),
            coverages=Coverages(broker.blobs),
            links=Links.of(settings.git_hosts),
            presence=broker.presence,
            side=self._side,
            logs=self._logs,
            streams=self._streams,
        )
        self._public_badges = settings.public_badges
        guard = Guard(hosts=allowed_hosts(settings.host, settings.allowed_hosts), token=settings.auth_token)
        self.edge = Edge(
            title="gctd",
            version=version("gctd"),
            description="A scan tracker for Go repositories: registers, tests, and scores every function by its risk of change.",
            guard=guard,
            examples=EXAMPLES,
            position=lambda: self._side.projector.position,
            wait_for=self._side.wait_for,
        )
        figures = Figures(broker, self._dispatcher, queries)
        for collector in (self._side.hub, self._side, figures, self._outcomes):
            self.edge.metrics.registry.register(collector)
        self.edge.metrics.ask(figures.ask)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run projector, event stream, dispatcher and reaper for as long as the block lasts."""
        head = await self._broker.log.head()
        self._outcomes.start(head.last)
        async with self._side.running({"dispatcher": self._dispatcher.run, "reaper": self._reaper.run}):
            yield

    def application(self) -> Any:
        """The HTTP application."""
        routes = table(public_badges=self._public_badges)
        app = build_application(routes, self._services, self.edge, health=self._side.health(), pages=pages())
        app.on_shutdown.extend((self._side.hub.close, self._streams.close))
        return app


def _project_defaults(settings: Settings) -> ProjectConfig:
    return ProjectConfig(
        test_args="",
        crap_args=(),
        submodules=False,
        timeout=format_duration(settings.task_timeout),
        git_timeout=format_duration(settings.git_timeout),
        go_flags="",
    )
