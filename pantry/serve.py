"""`pantry serve`: the ledger as one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import structlog

from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load as load_declarations
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.privacy.encryption import PersonalDataCipher
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.server.guard import Guard, allowed_hosts
from httpkit.server.serving import ListenAddress, ServerLimits, serving, termination
from pantry.domain.registry import REGISTRY
from pantry.erasures import Erasures
from pantry.http.api import TABLE, pages
from pantry.http.events import frames
from pantry.http.services import Services
from pantry.pantry import Pantry
from pantry.readmodel import MODEL
from pantry.readmodel.queries import PantryQueries
from pantry.settings import Settings
from servicekit.readside import ReadSide, migrated

_log = structlog.get_logger(__name__)

EVENTS = MODEL.stream
KEYS, KEY_SUBJECTS = "PANTRY_KEYS", "pantry.key"
"""The stream with the keys of persons, and what its subjects begin with."""
_PROBES = {"/ping": "live", "/livez": "live", "/health": "live", "/readyz": "ready"}


async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Run the ledger until SIGINT or SIGTERM; `on_ready` is told the address when requests are answered.

    Raises EventLogError, ProjectionError where it cannot start.
    """
    async with AsyncExitStack() as stack:
        signalled = stack.enter_context(termination())
        store = await stack.enter_async_context(migrated(settings.database_url, MODEL))
        connection = await stack.enter_async_context(_connected(settings))
        people = PersonalDataCipher(JetStreamKeyring(connection, KEYS, KEY_SUBJECTS))
        log = JetStreamLog(connection, EVENTS, REGISTRY, people=people)
        queries = PantryQueries(store, people)
        erasures = Erasures(people, queries)
        side = ReadSide(
            connection=connection,
            log=log,
            store=store,
            model=MODEL,
            frames=frames(log),
            max_lag=settings.max_lag,
            on_applied=[erasures.applied],
        )
        erasures.serve(side)
        await stack.enter_async_context(side.running({"erasures": erasures.run}))
        edge = _edge(settings, side)
        app = _application(side, edge, log, queries, erasures)
        limits = ServerLimits(
            idle=settings.idle_timeout,
            read=settings.read_timeout,
            write=settings.write_timeout,
            shutdown=settings.shutdown_timeout,
        )
        address = await stack.enter_async_context(serving(app, edge, host=settings.host, port=settings.port, limits=limits))
        on_ready(address)
        received = await signalled
        _log.info("ending", signal=received.name)


@asynccontextmanager
async def _connected(settings: Settings) -> AsyncIterator[Connection]:
    """A connection to the broker on which the stream is there. Drift that is not mended is logged."""
    overrides: dict[str, dict[str, object]] = {}
    if settings.event_store_max_bytes is not None:
        overrides[EVENTS] = {"max_bytes": settings.event_store_max_bytes}
    declared = load_declarations(replicas=settings.replicas, overrides=overrides).only(EVENTS, KEYS)
    async with Connection.open(settings.nats_url, name="pantry") as connection:
        for drift in await streams.apply(connection, declared):
            _log.warning("stream differs from its declaration", drift=str(drift))
        yield connection


def _edge(settings: Settings, side: ReadSide) -> Edge:
    edge = Edge(
        title="pantry",
        version=version("gctd"),
        description="A stock ledger: products by EAN-13, movements in and out, never below zero.",
        error_key="error",
        invalid=HTTPStatus.UNPROCESSABLE_ENTITY,
        guard=Guard(hosts=allowed_hosts(settings.host, settings.allowed_hosts), token=settings.auth_token),
        body_deadline=settings.read_timeout,
        position=lambda: side.projector.position,
        wait_for=side.wait_for,
        session_path="/api/v1/session",
        openapi_path="/openapi.json",
    )
    edge.metrics.registry.register(side.hub)
    edge.metrics.registry.register(side)
    return edge


def _application(side: ReadSide, edge: Edge, log: JetStreamLog, queries: PantryQueries, erasures: Erasures) -> Any:
    pantry = Pantry(log, side.commands, queries, side.projector)
    services = Services(pantry=pantry, queries=queries, side=side, erasures=erasures)
    app = build_application(TABLE, services, edge, health=side.health(), probes=_PROBES, pages=pages())
    app.on_shutdown.append(side.hub.close)
    return app
