"""Checks of the broker's store: its health, its limits, how it syncs, and the leader of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from eventlog import Unavailable
from eventlog.admin import load_declarations
from eventlog.jetstream import WARN_AT, Connection, Refused, Room, ask
from gctd.cli.doctor.finding import Check, DoctorFinding, fail, ok, unknown, warn
from gctd.settings import Settings
from projections import ProjectionError
from projections.stores import leader_at
from servicekit import BrokerState, NotSeen, look_at_brokers, monitoring_addresses

_ASKED = 0.5
_LEAST = 1024
_SET = "set monitoring_url (GCTD_MONITORING_URL) to the address of nats-server's monitoring port"


def store_checks(settings: Settings, broker: Connection | Unavailable) -> Mapping[str, Check]:
    """The checks by name."""
    return {
        "broker health": lambda: _health(settings),
        "limits": lambda: _limits(settings, broker),
        "sync interval": lambda: _sync_interval(settings, broker),
        "leader": lambda: _leader(settings),
    }


async def _seen(settings: Settings) -> Sequence[BrokerState | NotSeen]:
    return await look_at_brokers(monitoring_addresses(settings.monitoring_url))


async def _health(settings: Settings) -> DoctorFinding:
    servers = await _seen(settings)
    faults = [f"{each.url}: {each.fault}" for each in servers if isinstance(each, BrokerState) and each.fault is not None]
    if faults:
        return fail(
            "; ".join(faults), "make room on its disk, then restart that nats-server; see docs/guides/operation.md, Writes"
        )
    away = [str(each) for each in servers if isinstance(each, NotSeen)]
    if away or not servers:
        return unknown("; ".join(away) or "no address of a monitoring port is set", _SET)
    return ok(f"{len(servers)} nats-server {'says' if len(servers) == 1 else 'say'} that all is well")


async def _limits(settings: Settings, broker: Connection | Unavailable) -> DoctorFinding:
    rooms = [room for each in await _seen(settings) if isinstance(each, BrokerState) for room in each.rooms()]
    seen_store = bool(rooms)
    if not isinstance(broker, Unavailable):
        rooms += await _streams(broker)
    full = [str(room) for room in rooms if room.full]
    if full:
        return fail("; ".join(full), "make room or raise the limit: appends are refused")
    near = [f"{room.share:.0%}: {room}" for room in rooms if room.share >= WARN_AT]
    if near:
        return warn("; ".join(near), "make room or raise the limit before appends are refused")
    if isinstance(broker, Unavailable):
        return unknown("the broker is away: how full its streams are is not known", "see the check of the broker")
    if not seen_store:
        return unknown("the streams have room; the room of the server's store and disk is not seen", _SET)
    most = max(rooms, key=lambda room: room.share)
    return ok(f"{most.share:.0%} at most is used, of {most.name}")


async def _streams(broker: Connection) -> Sequence[Room]:
    """The limits of the streams of all services that refuse what is over them; others let the oldest go."""
    rooms = []
    for stream in load_declarations().streams:
        try:
            info = await ask(broker, f"STREAM.INFO.{stream.name}")
        except Refused:
            continue  # the check of the streams reports it
        config, limit = info["config"], info["config"].get("max_bytes", -1)
        if limit > 0 and config.get("discard") == "new":
            used = info["state"]["bytes"]
            rooms.append(
                Room("stream", f"the stream {stream.name}", used, limit, _LEAST, None, "raise its max_bytes in streams.yaml")
            )
    return rooms


async def _sync_interval(settings: Settings, broker: Connection | Unavailable) -> DoctorFinding:
    """The monitoring port tells it, or the broker, if this is a user of its system account."""
    servers = [each for each in await _seen(settings) if isinstance(each, BrokerState)]
    intervals = [0.0 if each.synced else each.sync_interval for each in servers]
    if not intervals and isinstance(broker, Connection):
        try:
            reply = await broker.request("$SYS.REQ.SERVER.PING.VARZ", timeout=_ASKED)
            figures = msgspec.json.decode(reply.data)["data"]["jetstream"]["config"]
            intervals = [0.0 if figures.get("sync_always") else figures.get("sync_interval", 0) / 1e9]
        except (Unavailable, msgspec.DecodeError, KeyError, TypeError):
            intervals = []
    if not intervals:
        return unknown("how often nats-server syncs is not shown to this user", _SET)
    if not max(intervals):
        return ok("every message is synced before it is acknowledged")
    return warn(
        f"{max(intervals):.0f} s: a host that loses power may lose that much", "set `sync_interval: always` in its configuration"
    )


async def _leader(settings: Settings) -> DoctorFinding:
    try:
        leader = await leader_at(settings.database_url)
    except ProjectionError as error:
        return unknown(str(error), "see the check of the database")
    if leader is None:
        return unknown("no process has a lease on the tables", "start gctd serve, which applies events")
    if leader.hangs:
        fix = "start another gctd serve, which takes over; or look at that process: it was stopped, or is overloaded"
        return fail(f"{leader.holder} applies events, and was not heard of for {leader.silent:.0f} s", fix)
    return ok(f"{leader.holder} applies events")
