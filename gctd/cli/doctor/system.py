"""Checks of the system: server, broker, streams, queue, workers, tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from eventlog.admin import reconcile as streams
from eventlog.broker.presence import Presence
from eventlog.broker.queue import WorkQueue
from eventlog.embedded.nats import OLDEST_VERSION
from eventlog.errors import Unavailable
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from gctd.cli.doctor.finding import Check, Finding, fail, ok, warn
from gctd.client.api import Client
from gctd.control.heartbeat import WorkerStatus, decoded
from gctd.control.jobs import CONSUMER
from gctd.domain.registry import REGISTRY
from gctd.settings import Settings
from gctd.wiring.broker import EVENTS, JOBS, WORKERS, declarations
from projections.errors import ProjectionError, StoreUnavailable
from projections.stores.databases import reader_at
from terminalkit.client.errors import ClientError
from terminalkit.client.errors import Unavailable as ServerUnavailable

_CONNECT = 3.0
_ASKED = 0.5
_BEHIND = 1000
"""Events that the tables may be behind while all is well."""


@asynccontextmanager
async def broker_at(settings: Settings) -> AsyncIterator[Connection | Unavailable]:
    """A connection to the broker, or why there is none."""
    async with AsyncExitStack() as stack:
        found: Connection | Unavailable
        try:
            opening = Connection.open(settings.nats_url, name="gctd-doctor", timeout=_CONNECT)
            found = await stack.enter_async_context(opening)
        except Unavailable as error:
            found = error
        yield found


def system_checks(settings: Settings, broker: Connection | Unavailable) -> Mapping[str, Check]:
    """The checks by name; those that need the broker are left out where it is away, which the one of the broker says."""
    checks: dict[str, Check] = {
        "server": lambda: _server(settings),
        "broker": lambda: _broker(broker),
        "database": lambda: _database(settings),
    }
    if isinstance(broker, Connection):
        checks |= {
            "sync interval": lambda: _sync_interval(broker),
            "streams": lambda: _streams(broker, settings),
            "queue": lambda: _queue(broker),
            "workers": lambda: _workers(broker),
            "read model": lambda: _read_model(broker, settings),
        }
    return checks


async def _server(settings: Settings) -> Finding:
    start = "start it with: gctd serve; or say where it is with --url or GCTD_URL"
    try:
        async with Client(settings.url, token=settings.auth_token) as client:
            await client.ready()
    except ServerUnavailable as error:
        return fail(str(error), "see `gctd serve`'s log and the other checks here" if error.status else start)
    except ClientError as error:
        return fail(str(error), start)
    return ok(f"{settings.url} is ready")


async def _broker(broker: Connection | Unavailable) -> Finding:
    if isinstance(broker, Unavailable):
        return fail(str(broker), "start nats-server (./scripts/up does), or say where it is with --nats-url or GCTD_NATS_URL")
    version = broker.client.connected_server_version
    detail = f"nats-server {version.major}.{version.minor}.{version.patch}"
    if (version.major, version.minor) < OLDEST_VERSION:
        return fail(detail, f"install {'.'.join(map(str, OLDEST_VERSION))} or newer")
    return ok(detail)


async def _sync_interval(broker: Connection) -> Finding | None:
    """Only a user of the system account is told."""
    try:
        reply = await broker.request("$SYS.REQ.SERVER.PING.VARZ", timeout=_ASKED)
        figures = msgspec.json.decode(reply.data)["data"]["jetstream"]["config"]
    except (Unavailable, msgspec.DecodeError, KeyError, TypeError):
        return None
    if figures.get("sync_always"):
        return ok("every message is synced before it is acknowledged")
    interval = figures.get("sync_interval", 0) / 1e9
    return warn(
        f"{interval:.0f} s: a host that loses power may lose that much", "set `sync_interval: always` in its configuration"
    )


async def _streams(broker: Connection, settings: Settings) -> Finding:
    drifts = await streams.plan(broker, declarations(settings))
    if not drifts:
        return ok("as streams.yaml declares them")
    detail = "; ".join(map(str, drifts))
    if any(not drift.field for drift in drifts):
        return fail(detail, "projections streams apply; gctd serve does it when it starts")
    return warn(detail, "projections streams apply; what is `by hand` could lose messages: see streams.yaml")


async def _queue(broker: Connection) -> Finding:
    depth = await WorkQueue(broker, JOBS, CONSUMER).depth()
    detail = f"{depth.pending} jobs wait, {depth.in_flight} are held, {depth.exhausted} were delivered too often"
    if depth.exhausted:
        return warn(detail, "nothing: the server gives their tasks new jobs; see its log where the number stays")
    if depth.pending and not await _taking(broker):
        return warn(detail, "start a worker with: gctd worker; or unpause one with: gctd worker unpause ID")
    return ok(detail)


async def _workers(broker: Connection) -> Finding:
    present = await Presence(broker, WORKERS).present()
    taking = await _taking(broker)
    detail = f"{len(present)} present, {taking} of them take jobs"
    fix = "gctd worker unpause ID" if present else "start one with: gctd worker"
    return ok(detail) if taking else warn(detail, fix)


async def _taking(broker: Connection) -> int:
    """How many workers take jobs."""
    present = await Presence(broker, WORKERS).present()
    return sum(decoded(payload).state in {WorkerStatus.IDLE, WorkerStatus.BUSY} for payload in present.values())


async def _database(settings: Settings) -> Finding:
    try:
        async with reader_at(settings.database_url) as reader:
            schema = await reader.schema()
            problems = await reader.problems()
    except StoreUnavailable as error:
        return fail(str(error), "start gctd serve, which makes it; or say where it is with GCTD_DATABASE_URL")
    if problems:
        again = "stop gctd serve, move the file away or empty the database, start it: the tables are made again from the events"
        return fail("; ".join(problems), again)
    if schema.dirty:
        return fail(f"migration {schema.version} was left half done", "projections migrate force, after a look at the schema")
    return ok(f"whole, at migration {schema.version}")


async def _read_model(broker: Connection, settings: Settings) -> Finding | None:
    """None where there is no database, which the check of that says."""
    head = await JetStreamLog(broker, EVENTS, REGISTRY).head()
    try:
        async with reader_at(settings.database_url) as reader:
            checkpoints = await reader.checkpoints()
    except ProjectionError:
        return None
    if any(checkpoint.incarnation != head.incarnation for checkpoint in checkpoints.values()):
        again = "was the broker's data lost? restore it; else move the file away or empty the database, and start gctd serve"
        return fail("the tables are made from another event stream", again)
    behind = head.last - min((checkpoint.sequence for checkpoint in checkpoints.values()), default=0)
    detail = f"{behind} events behind"
    if behind < 0:
        return fail(f"{-behind} events ahead: the end of the stream was lost", "restore the broker's data; see docs/operation.md")
    if behind > _BEHIND:
        return warn(detail, "is gctd serve running? `projections status` says why one stands still")
    return ok(detail)
