"""`graphql-fn serve`: the gateway as one process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO
from graphql_fn.http.access import GatewayAccess
from graphql_fn.http.gateway import Gateway
from graphql_fn.http.routes import TABLE, pages
from graphql_fn.settings import Settings
from httpkit import Edge, ListenAddress, Streams, build_application
from servicekit import (
    Application,
    Part,
    ProcessParts,
    ReadReplica,
    check_reachable,
    connected,
    guard_of,
    serve_application,
    shared_token,
)
from servicekit.access import TokenModel

_PIECE = 0.0005
"""Seconds for which another thread may keep the event loop waiting: threads prepare queries, and read rows."""


async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Run the gateway until SIGINT or SIGTERM; `on_ready` gets the address when requests are answered.

    Raises EventLogError if the broker is not there.
    """
    sys.setswitchinterval(_PIECE)
    await serve_application(settings, opened(settings), on_ready=on_ready)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Application]:
    """The gateway, with its read models open during a block. Raises EventLogError if the broker is not there."""
    edge = Edge(
        title="graphql-fn",
        version=version("gctd"),
        description="GraphQL functions: a query in, its result out.",
        max_body=settings.max_body,
        body_deadline=settings.read_timeout,
        time_limit=settings.query_timeout + settings.read_timeout,
    )
    async with _read_models(settings) as models:
        # The services issue the tokens: if they have issued none, every request is refused.
        check_reachable(settings, has_tokens=bool(models), program=None)
        directories = {model.tokens.service: model.replica.directory(model.tokens) for model in models}
        access = GatewayAccess(directories, shared=shared_token(settings))
        guard = attrs.evolve(guard_of(settings, access, name="graphql"), origins=frozenset(settings.allowed_origins))
        edge = attrs.evolve(edge, guard=guard)
        functions = (HELLO, *(model.function for model in models))
        evaluators = [
            Evaluator(each, settings.limits, introspection=settings.introspection, suggestions=settings.suggestions)
            for each in functions
        ]
        page = pages()
        gateway = Gateway(
            evaluators,
            edge.metrics.registry,
            check_origin=guard.check_origin,
            page=page.by_path["/"],
            streams=Streams(most=settings.max_subscribers),
            owners={model.function.name: model.tokens.service for model in models},
        )
        figures = Part("read models", collect=partial(read_model_figures, models))
        parts = ProcessParts(*(part for model in models for part in model.replica.parts), figures)
        edge.metrics.registry.register(parts)
        app = build_application(TABLE, gateway, edge, health=parts.health(), pages=page)
        app.on_shutdown.append(gateway.streams.close)
        async with parts.running():
            yield app, edge


@attrs.frozen
class _Model:
    """A read model that is looked at, and the function over it."""

    replica: ReadReplica
    function: Function
    tokens: TokenModel


@asynccontextmanager
async def _read_models(settings: Settings) -> AsyncIterator[Sequence[_Model]]:
    """The functions that the settings name."""
    models: list[_Model] = []
    async with AsyncExitStack() as stack:
        broker = None
        if settings.nats_url is not None and (settings.pantry_database or settings.tracker_database):
            broker = await stack.enter_async_context(connected(settings.nats_url, name="graphql-fn"))
        # Each brings its service's domain with it: only what is served is loaded.
        if settings.pantry_database is not None:
            from graphql_fn.readmodels.pantry import function as pantry  # noqa: PLC0415 - see above
            from pantry.readmodel.model import ACCESS as PANTRY_ACCESS  # noqa: PLC0415 - likewise

            found = pantry.replica(settings.pantry_database, broker, max_lag=settings.max_lag)
            models.append(_Model(found, pantry.function(found), PANTRY_ACCESS))
        if settings.tracker_database is not None:
            from gctd.readmodel.model import ACCESS as TRACKER_ACCESS  # noqa: PLC0415 - see above
            from graphql_fn.readmodels.tracker import function as tracker  # noqa: PLC0415 - likewise

            found = tracker.replica(settings.tracker_database, broker, max_lag=settings.max_lag)
            models.append(_Model(found, tracker.function(found), TRACKER_ACCESS))
        yield models


def read_model_figures(models: Sequence[_Model]) -> Sequence[Metric]:
    """The figures of the queries of the read models, and of their state."""
    statements = CounterMetricFamily("graphql_statements", "SQL statements on read models.", labels=["function"])
    text = "How long the oldest event has waited for the tables to have it."
    behind = GaugeMetricFamily("graphql_events_waiting_seconds", text, labels=["function"])
    for model in models:
        model.replica.figures(statements, behind)
    return [statements, behind]
