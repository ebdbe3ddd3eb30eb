"""`graphql-fn serve`: the gateway as one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version

import attrs
import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO
from graphql_fn.http.gateway import TABLE, Gateway, pages
from graphql_fn.settings import Settings
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.ops.health import Health
from httpkit.server.guard import Guard, allowed_hosts
from httpkit.server.serving import ListenAddress, ServerLimits, serving, termination
from httpkit.sse.single import Streams
from servicekit.replica import ReadReplica, connected

_log = structlog.get_logger(__name__)

_PROBES = {"/livez": "live", "/health": "live", "/readyz": "ready", "/_/health": "live", "/_/ready": "ready"}
"""The last two are the function platform's."""


async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Run the gateway until SIGINT or SIGTERM; `on_ready` is told the address when requests are answered.

    Raises EventLogError where the broker is not there.
    """
    edge = Edge(
        title="graphql-fn",
        version=version("gctd"),
        description="GraphQL functions: a query in, its result out.",
        guard=Guard(hosts=allowed_hosts(settings.host, settings.allowed_hosts), token=settings.auth_token),
        max_body=settings.max_body,
        body_deadline=settings.read_timeout,
        time_limit=settings.query_timeout + settings.read_timeout,
    )
    limits = ServerLimits(
        idle=settings.idle_timeout, read=settings.read_timeout, write=settings.write_timeout, shutdown=settings.shutdown_timeout
    )
    async with AsyncExitStack() as stack:
        signalled = stack.enter_context(termination())
        models = await stack.enter_async_context(_read_models(settings))
        functions = (HELLO, *(model.function for model in models))
        evaluators = [
            Evaluator(each, settings.limits, introspection=settings.introspection, suggestions=settings.suggestions)
            for each in functions
        ]
        page = pages()
        gateway = Gateway(
            evaluators, edge.metrics.registry, page=page.by_path["/"], streams=Streams(most=settings.max_subscribers)
        )
        edge.metrics.registry.register(ReadModelFigures(models))
        checks = {name: check for model in models for name, check in model.onlooker.checks().items()}
        app = build_application(TABLE, gateway, edge, health=Health(checks), probes=_PROBES, pages=page)
        app.on_shutdown.append(gateway.streams.close)
        address = await stack.enter_async_context(serving(app, edge, host=settings.host, port=settings.port, limits=limits))
        on_ready(address)
        received = await signalled
        _log.info("ending", signal=received.name)


@attrs.frozen
class _Model:
    """A read model that is looked at, and the function over it."""

    onlooker: ReadReplica
    function: Function


@asynccontextmanager
async def _read_models(settings: Settings) -> AsyncIterator[Sequence[_Model]]:
    """Those that the settings name, their events followed."""
    models: list[_Model] = []
    async with AsyncExitStack() as stack:
        broker = None
        if settings.nats_url is not None and (settings.pantry_database or settings.tracker_database):
            broker = await stack.enter_async_context(connected(settings.nats_url, name="graphql-fn"))
        # Each brings its service's domain with it: only what is served is loaded.
        if settings.pantry_database is not None:
            from graphql_fn.readmodels import pantry  # noqa: PLC0415 - see above

            found = pantry.onlooker(settings.pantry_database, broker, max_lag=settings.max_lag)
            models.append(_Model(found, pantry.function(found)))
        if settings.tracker_database is not None:
            from graphql_fn.readmodels import tracker  # noqa: PLC0415 - see above

            found = tracker.onlooker(settings.tracker_database, broker, max_lag=settings.max_lag)
            models.append(_Model(found, tracker.function(found)))
        for model in models:
            await stack.enter_async_context(model.onlooker.running())
        yield models


@attrs.frozen(eq=False)
class ReadModelFigures(Collector):
    """What the read models were asked, and how they are."""

    _models: Sequence[_Model]

    def collect(self) -> Sequence[Metric]:
        statements = CounterMetricFamily("graphql_statements", "SQL statements on read models.", labels=["function"])
        behind = GaugeMetricFamily(
            "graphql_events_waiting_seconds",
            "How long the oldest event has waited for the tables to have it.",
            labels=["function"],
        )
        for model in self._models:
            model.onlooker.figures(statements, behind)
        return [statements, behind]
