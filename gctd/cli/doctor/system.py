"""Checks of the system: server, broker, streams, queue, workers, tables."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from eventlog import OutcomeUnknown, Unavailable
from eventlog.admin import plan_changes
from eventlog.embedded import OLDEST_VERSION
from eventlog.jetstream import Connection, JetStreamLog, Refused, call
from gctd.broker.broker import EVENTS, JOBS, WORKERS, declarations
from gctd.broker.presence import Presence
from gctd.broker.queue import WorkQueue
from gctd.cli.doctor.finding import Check, DoctorFinding, fail, ok, unknown, warn
from gctd.cli.doctor.server import server_checks
from gctd.cli.doctor.store import store_checks
from gctd.client.api import Client
from gctd.control.heartbeat import Heartbeat, WorkerStatus, decoded
from gctd.control.lanes.queues import SCAN_CONSUMER as CONSUMER
from gctd.domain.registry import REGISTRY
from gctd.readmodel import MODEL
from gctd.settings import Settings
from projections import KEYS, ProjectionError, StoreUnavailable
from projections.stores import reader_at
from terminalkit.client import ClientError, NotAllowed

_CONNECT = 3.0
_CLOCKS = 5.0
"""Seconds that two clocks may differ."""
_REBUILD = "stop gctd serve, move the file away or empty the database, start it: the tables are rebuilt from the events"
_ANOTHER = "set database_url (GCTD_DATABASE_URL) to a database that only gctd uses"
_BEHIND = 1000
"""Events that the tables may be behind while all is well."""


@asynccontextmanager
async def broker_at(settings: Settings) -> AsyncIterator[Connection | Unavailable]:
    """Provide a connection to the broker, or the error of connecting."""
    async with AsyncExitStack() as stack:
        found: Connection | Unavailable
        try:
            opening = Connection.open(settings.nats_url, name="gctd-doctor", timeout=_CONNECT)
            found = await stack.enter_async_context(opening)
        except Unavailable as error:
            found = error
        yield found


def system_checks(settings: Settings, broker: Connection | Unavailable) -> Mapping[str, Check]:
    """The checks by name; checks that need the broker are unknown if it is away."""
    return {
        **server_checks(settings, broker),
        "port": lambda: _port(settings),
        "broker": lambda: _broker(broker),
        "clock": lambda: _clock(broker),
        **store_checks(settings, broker),
        "database": lambda: _database(settings),
        "streams": _with(broker, lambda connection: _streams(connection, settings)),
        "queue": _with(broker, _queue),
        "workers": _with(broker, _workers),
        "read model": _with(broker, lambda connection: _read_model(connection, settings)),
    }


def _with(broker: Connection | Unavailable, check: Callable[[Connection], Awaitable[DoctorFinding]]) -> Check:
    async def run() -> DoctorFinding:
        if isinstance(broker, Unavailable):
            return unknown("the broker is away", "see the check of the broker")
        return await check(broker)

    return run


async def _broker(broker: Connection | Unavailable) -> DoctorFinding:
    if isinstance(broker, Unavailable):
        if "authorization" in str(broker).lower():
            return fail(str(broker), "put a user and a password of the broker into nats_url: nats://user:password@host:4222")
        return fail(str(broker), "start nats-server (gctd up does), or set its address with --nats-url or GCTD_NATS_URL")
    version = broker.client.connected_server_version
    detail = f"nats-server {version.major}.{version.minor}.{version.patch}"
    if (version.major, version.minor) < OLDEST_VERSION:
        return fail(detail, f"install {'.'.join(map(str, OLDEST_VERSION))} or newer")
    try:
        await call(broker, "INFO", timeout=_CONNECT)
    except OutcomeUnknown:
        return ok(detail)  # this user may not ask for it; the check of the streams does not need it
    except (Refused, Unavailable) as error:
        return fail(f"{detail} without JetStream: {error}", "start nats-server with --jetstream and --store_dir DIRECTORY")
    return ok(detail)


async def _clock(broker: Connection | Unavailable) -> DoctorFinding | None:
    """Compare the clock with the broker's, which is in its answers about streams; None if it has no stream to ask about."""
    if isinstance(broker, Unavailable):
        return None
    try:
        answer = await call(broker, f"STREAM.INFO.{EVENTS}", timeout=_CONNECT)
    except (Refused, Unavailable):
        return None  # the checks of the broker and of the streams report it
    ahead = (now() - datetime.fromisoformat(answer["ts"])).total_seconds()
    if abs(ahead) > _CLOCKS:
        detail = f"the clock of this host is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the broker's"
        return fail(detail, "let both hosts take their time from one source (NTP): heartbeats and times of events depend on it")
    return ok(f"within {_CLOCKS:.0f} s of the broker's")


def now() -> datetime:
    """Return the time of this host."""
    return datetime.now(UTC)


async def _port(settings: Settings) -> DoctorFinding | None:
    """Look for another program on the port of the server; None if a tracker answers at `url` or at the port."""
    for url, token in ((settings.url, settings.auth_token), (f"http://{settings.host}:{settings.port}", None)):
        try:
            async with Client(url, token=token, timeout=_CONNECT) as client:
                if (await client.standing()).get("stream") == EVENTS:
                    return None
        except NotAllowed:
            return None  # it asks for a token as a tracker does: the check of the server reports that
        except ClientError:
            continue
    try:
        with socket.create_server((settings.host, settings.port)):
            return ok(f"gctd serve can listen on {settings.host}:{settings.port}")
    except OSError as error:
        detail = f"gctd serve cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno or 0)}"
        return fail(detail, "stop the program that has the port (ss -ltnp shows it), or set another one: --port or GCTD_PORT")


async def _streams(broker: Connection, settings: Settings) -> DoctorFinding:
    drifts = await plan_changes(broker, declarations(settings))
    if not drifts:
        return ok("as streams.yaml declares them")
    detail = "; ".join(map(str, drifts))
    if any(not drift.field for drift in drifts):
        return fail(detail, "projections streams apply; gctd serve does it when it starts")
    fix = "projections streams apply, or start gctd serve again if its settings differ from the defaults"
    return warn(detail, f"{fix}; what is `by hand` could lose messages: see streams.yaml")


async def _queue(broker: Connection) -> DoctorFinding:
    depth = await WorkQueue(broker, JOBS, CONSUMER).depth()
    detail = f"{depth.pending} jobs wait, {depth.in_flight} are held, {depth.exhausted} were delivered too often"
    if depth.exhausted:
        return warn(detail, "nothing: the server gives their tasks new jobs; see its log where the number stays")
    if depth.pending and not any(beat.takes_jobs for beat in (await _heard(broker)).values()):
        return warn(detail, "see the check of the workers")
    return ok(detail)


async def _workers(broker: Connection) -> DoctorFinding:
    beats = await _heard(broker)
    taking = sum(beat.takes_jobs for beat in beats.values())
    full = [f"{id_}: {beat.reason}" for id_, beat in sorted(beats.items()) if beat.state is WorkerStatus.FULL]
    detail = "; ".join([f"{len(beats)} present, {taking} of them take jobs", *full])
    if full:
        return warn(detail, "make room on their disks; then they take jobs again")
    fix = "gctd worker unpause ID" if beats else "start one with: gctd worker"
    return ok(detail) if taking else warn(detail, fix)


async def _heard(broker: Connection) -> Mapping[str, Heartbeat]:
    """Return the announcements of the present workers, by id."""
    return {id_: decoded(payload) for id_, payload in (await Presence(broker, WORKERS).present()).items()}


async def _database(settings: Settings) -> DoctorFinding:
    try:
        async with reader_at(settings.database_url) as reader:
            schema = await reader.schema()
            problems = await reader.problems()
            names = {*await reader.checkpoints()} - {KEYS.name} if not problems else set()
    except StoreUnavailable as error:
        return fail(str(error), "start gctd serve, which makes it; or set its address with GCTD_DATABASE_URL")
    except ProjectionError as error:
        return fail(str(error), _REBUILD)
    if problems:
        return fail("; ".join(problems), _REBUILD)
    if names and names.isdisjoint(projection.name for projection in MODEL.projections):
        return fail(f"the tables belong to another service: {', '.join(sorted(names))}", _ANOTHER)
    if schema.dirty:
        return fail(f"migration {schema.version} was left half done", "projections migrate force, after a look at the schema")
    return ok(f"whole, at migration {schema.version}")


async def _read_model(broker: Connection, settings: Settings) -> DoctorFinding:
    head = await JetStreamLog(broker, EVENTS, REGISTRY).head()
    try:
        async with reader_at(settings.database_url) as reader:
            checkpoints = await reader.checkpoints()
    except ProjectionError as error:
        return unknown(f"the tables cannot be read: {error}", "see the check of the database")
    if any(checkpoint.incarnation != head.incarnation for checkpoint in checkpoints.values()):
        again = "was the broker's data lost? restore it; else move the file away or empty the database, and start gctd serve"
        return fail("the tables are made from another event stream", again)
    behind = head.last - min((checkpoint.sequence for checkpoint in checkpoints.values()), default=0)
    detail = f"{behind} events behind"
    if behind < 0:
        return fail(
            f"{-behind} events ahead: the end of the stream was lost", "restore the broker's data; see docs/guides/operation.md"
        )
    if behind > _BEHIND:
        return warn(detail, "is gctd serve running? `projections status` reports why one does not progress")
    return ok(detail)
