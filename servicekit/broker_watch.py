"""Looks at the nats-server of a service every few seconds: its health, its limits, its clock, the settings of the streams."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import attrs
import msgspec
import structlog

from eventlog import Unavailable
from eventlog.admin.declarations import Stream
from eventlog.admin.reconcile import AIM, danger_of, lacking_replicas
from eventlog.errors import EventLogError
from eventlog.jetstream.api import STREAM_MISSING, Refused, call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.fence import STORE_FULL, STREAM_FULL, Look, Room, WriteHealth, Writes, WriteState
from eventlog.support.timers import tick
from httpkit.errors import HttpkitError
from httpkit.server.guard import is_loopback

TIMEOUT = 0.8
"""Seconds that one nats-server may take for its answers."""

_PAUSES = (0.0, 0.05, 0.1)
"""Seconds before each question for the health of a nats-server; the later ones follow a fault."""

_LEAST_STORE, _LEAST_DISK = 1024, 64 * 1024
_WRITE_ERROR = "write error"


class NotSeen(HttpkitError):
    """The monitoring port of a nats-server does not answer as one does."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class _Healthz(msgspec.Struct):
    status: str
    error: str = ""


class _Config(msgspec.Struct):
    max_storage: int = 0
    store_dir: str = ""
    sync_interval: int = 0
    sync_always: bool = False


class _Jsz(msgspec.Struct):
    server_id: str
    storage: int = 0
    config: _Config | None = None


@attrs.frozen(kw_only=True)
class BrokerState:
    """A nats-server as its monitoring port shows it.

    `fault` is what it says against itself, None if it is healthy; `closed`: that is a write error, after which it stores nothing
    until it is started again. `directory` is its store, `used` and `limit` what that has and may have, in bytes. `synced`: it
    syncs each message before it acknowledges the message, else every `sync_interval` seconds.
    """

    url: str
    server: str
    fault: str | None
    used: int
    limit: int
    directory: Path | None
    synced: bool
    sync_interval: float

    @property
    def closed(self) -> bool:
        """Whether it has closed a stream after a write error."""
        return self.fault is not None and _WRITE_ERROR in self.fault

    @property
    def is_here(self) -> bool:
        """Whether its store is a directory of this machine."""
        return self.directory is not None and is_loopback(urlsplit(self.url).hostname or "") and self.directory.is_dir()

    def rooms(self) -> Sequence[Room]:
        """Return the room in its store, and the room on the disk if the store is on this machine."""
        rooms = []
        if self.limit > 0:
            advice = "raise its max_file_store, or remove streams that are not needed"
            rooms.append(Room("store", "the store of nats-server", self.used, self.limit, _LEAST_STORE, STORE_FULL, advice))
        if self.is_here and self.directory is not None:
            rooms.append(disk_room(self.directory, self.used))
        return rooms


def disk_room(directory: Path, used: int) -> Room:
    """Return the room that the disk leaves to a store, which uses `used` bytes of it."""
    free = shutil.disk_usage(directory).free
    return Room("disk", f"the disk of {directory}", used, used + free, _LEAST_DISK, None, "make room on that disk")


def monitoring_addresses(setting: str | None) -> tuple[str, ...]:
    """The monitoring addresses in a setting: none, one, or several with commas between."""
    return tuple(part.strip().rstrip("/") for part in (setting or "").split(",") if part.strip())


async def look_at(url: str) -> BrokerState:
    """Ask the nats-server whose monitoring port is at `url` (`http://127.0.0.1:8222`). Raises NotSeen."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
            fault = await _confirmed_fault(session, url)
            async with session.get(f"{url}/jsz") as answer:
                store = msgspec.json.decode(await answer.read(), type=_Jsz)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:  # msgspec's are ValueErrors
        raise NotSeen(f"no nats-server shows its health at {url}: {str(error) or type(error).__name__}") from error
    config = store.config or _Config()
    return BrokerState(
        url=url,
        server=store.server_id,
        fault=None if fault is None else explained(fault),
        used=store.storage,
        limit=config.max_storage,
        directory=Path(config.store_dir) if config.store_dir else None,
        synced=config.sync_always,
        sync_interval=config.sync_interval / 1e9,
    )


async def _confirmed_fault(session: aiohttp.ClientSession, url: str) -> str | None:
    """Return the fault that a nats-server reports of itself each time that it is asked, None if it once reports none.

    One report proves nothing: nats-server gives itself one millisecond to look at its listeners, which a busy machine may take
    away, and a stream that is being removed is reported as not recovered.
    """
    fault = None
    for pause in _PAUSES:
        await asyncio.sleep(pause)
        async with session.get(f"{url}/healthz") as answer:
            health = msgspec.json.decode(await answer.read(), type=_Healthz)
            if answer.status == HTTPStatus.OK:
                return None
            fault = health.error or health.status
    return fault


def explained(fault: str) -> str:
    """Return a fault in nats-server's words, with the remedy if it is a write error."""
    if _WRITE_ERROR not in fault:
        return f"nats-server says: {fault}"
    return (
        f"nats-server has closed a stream after a write error: {fault}. Make room on its disk, then restart that nats-server: it "
        "does not open the stream again by itself"
    )


async def look_at_brokers(urls: Sequence[str]) -> Sequence[BrokerState | NotSeen]:
    """As `look_at`, each of several at the same time; in place of one that cannot be seen is the reason."""

    async def one(url: str) -> BrokerState | NotSeen:
        try:
            return await look_at(url)
        except NotSeen as error:
            return error

    return await asyncio.gather(*map(one, urls))


MOST = timedelta(seconds=2)
"""The difference between two clocks that is taken for none: a look at the broker takes up to a second."""
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts also while the machine sleeps, and cannot be set."""


def _elapsed() -> float:
    return time.clock_gettime(_ELAPSED)


def wall_time() -> datetime:
    """The clock of this machine, which may be wrong: aware, UTC."""
    return datetime.now(UTC)


@attrs.frozen
class _Seen:
    at: float
    time: datetime
    last: datetime | None


class BrokerClock:
    """Tells the time by this machine's clock, or by the broker's if the two do not agree.

    So an event has the same time whichever process writes it. `elapsed` counts seconds and cannot be set.
    """

    def __init__(self, wall: Callable[[], datetime] | None = None, elapsed: Callable[[], float] = _elapsed) -> None:
        self._wall = wall or wall_time
        self._elapsed = elapsed
        self._seen: _Seen | None = None

    def elapsed(self) -> float:
        """The moment of a request, for `saw`."""
        return self._elapsed()

    def saw(self, began: float, info: Mapping[str, Any]) -> None:
        """Take the answer to a request for the state of a stream into account, which was sent at `began`."""
        if (told := _time(info.get("ts"))) is not None:
            middle = (began + self._elapsed()) / 2
            state = info.get("state", {})
            self._seen = _Seen(middle, told, _time(state.get("last_ts")) if state.get("messages") else None)

    def now(self) -> datetime:
        """The time: aware, UTC. Before the first look at the broker it is the time of this machine."""
        wall = self._wall()
        if self._seen is None:
            return wall
        told = self._seen.time + timedelta(seconds=self._elapsed() - self._seen.at)
        return wall if abs(wall - told) <= MOST else told

    def note(self) -> str | None:
        """Return which clock is wrong, or None: this machine's, or the broker's when it stored the last message."""
        if self._seen is None:
            return None
        told = self._seen.time + timedelta(seconds=self._elapsed() - self._seen.at)
        ahead = self._wall() - told
        if abs(ahead) > MOST:
            way = "ahead of" if ahead > timedelta() else "behind"
            length = timedelta(seconds=round(abs(ahead).total_seconds()))
            return f"the clock of this server is {length} {way} the broker's: events get the broker's time. Set it right"
        if self._seen.last is not None and self._seen.last - told > MOST:
            length = timedelta(seconds=round((self._seen.last - told).total_seconds()))
            return (
                f"the last message was stored {length} ahead of now: the broker's clock was ahead, or is behind. Events of that "
                "time have false times; their order is right"
            )
        return None


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


EVERY = 4.0
"""Seconds between two looks."""

_EVERY_IF_CLOSED = 1.0
_TIMEOUT = 0.8
_FRESH = 0.5
"""Seconds for which a look is taken for now."""
_LEAST_STREAM = 1024

_log = structlog.get_logger(__name__)


class BrokerWatch:
    """Keeps `writes` up to date with the state of the broker and of a stream.

    `monitoring`: addresses of the monitoring ports of all its servers. Without them only the limit of the stream is seen.
    `declared`: the streams that are stored to. If one of them is not as declared so that records could be lost, or are lost,
    writes are closed.
    """

    def __init__(
        self, connection: Connection, stream: str, writes: WriteHealth, monitoring: Sequence[str], declared: Sequence[Stream] = ()
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._declared = {each.name: each for each in declared}
        self._writes = writes
        self._monitoring = monitoring
        self.clock = BrokerClock()
        """The time of the system."""
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._unseen: tuple[str, ...] = ()
        self._lacking: tuple[str, ...] = ()
        self._error: Exception | None = None
        self._said = ""

    @property
    def monitored(self) -> bool:
        """Whether it has addresses of monitoring ports."""
        return bool(self._monitoring)

    async def run(self) -> None:
        """Look at the broker for ever, and at once if an append fails."""
        while True:
            self._writes.failed.clear()
            await self.look()
            closed = self._writes.now().state is WriteState.CLOSED
            await tick(_EVERY_IF_CLOSED if closed else EVERY, self._writes.failed, after=_FRESH)

    async def writes(self) -> Writes:
        """Return whether appends are taken now. The answer is at most half a second old."""
        await self._look_lately()
        return self._writes.now()

    async def check(self) -> None:
        """Check that the broker answers for the stream, at most half a second ago. Raises Unavailable."""
        await self._look_lately()
        if isinstance(self._error, Unavailable):
            raise self._error

    async def _look_lately(self) -> None:
        if time.monotonic() - self._looked > _FRESH:
            await self.look()

    def notes(self) -> Sequence[str]:
        """Return the nearly reached limits, problems of servers of a cluster, unseen and missing servers, and a wrong clock."""
        clock = self.clock.note()
        return [*self._writes.warnings(), *self._unseen, *self._lacking, *([] if clock is None else [clock])]

    async def look(self) -> None:
        """Look at the broker once. It raises no error: a server or a stream that does not answer is noted."""
        async with self._looking:
            if time.monotonic() - self._looked < _FRESH:
                return
            began = time.monotonic()
            others = [name for name in self._declared if name != self._stream]
            seen, *infos = await asyncio.gather(
                look_at_brokers(self._monitoring), *(self._stream_info(name) for name in (self._stream, *others))
            )
            self._looked = time.monotonic()
            self._writes.saw(self._look(began, dict(zip((self._stream, *others), infos, strict=True)), seen))
        self._say()

    async def _stream_info(self, stream: str) -> dict[str, Any] | EventLogError | None:
        """The server's information on a stream, None if there is no such stream, or the error."""
        began = self.clock.elapsed()
        try:
            info = await call(self._connection, f"STREAM.INFO.{stream}", timeout=_TIMEOUT)
        except Refused as error:
            return None if error.number == STREAM_MISSING else error
        except EventLogError as error:
            return error
        if stream == self._stream:
            self.clock.saw(began, info)
        return info

    def _dangers(self, infos: Mapping[str, dict[str, Any] | EventLogError | None]) -> str | None:
        """Why nothing may be stored, by the settings and the ends of the streams; None if something may."""
        known = {name: info for name, info in infos.items() if not isinstance(info, EventLogError)}
        pairs = [(self._declared[name], info) for name, info in known.items() if name in self._declared]
        self._lacking = tuple(note for stream, info in pairs if info is not None and (note := lacking_replicas(stream, info)))
        return "; ".join(reason for pair in pairs if (reason := danger_of(*pair)) is not None) or None

    def _look(
        self, began: float, infos: Mapping[str, dict[str, Any] | EventLogError | None], seen: Sequence[BrokerState | NotSeen]
    ) -> Look:
        info = infos[self._stream]
        servers = [each for each in seen if isinstance(each, BrokerState)]
        unseen = [str(each) for each in seen if isinstance(each, NotSeen)]
        faults = [each.fault for each in servers if each.fault is not None]
        alone = len(self._monitoring) == 1
        self._unseen = tuple(unseen if alone else [*unseen, *faults])  # in a cluster another server can lead
        danger = self._dangers(infos)
        self._error = info if isinstance(info, EventLogError) else None
        if isinstance(info, EventLogError):
            return Look(at=began, error=str(info))
        if info is None:
            return Look(at=began, fault=danger or f"there is no stream {self._stream}")
        leader = (info.get("cluster") or {}).get("leader", "")
        ids = ",".join(sorted(each.server for each in servers)) or self._connection.client.server_id
        return Look(
            at=began,
            server=f"{leader} {ids}",
            monitored=bool(self._monitoring) and not unseen,
            fault=danger or (faults[0] if alone and faults else None),
            rooms=[*_stream_room(self._stream, info), *(room for each in servers if alone for room in each.rooms())],
        )

    def _say(self) -> None:
        writes = self._writes.now()
        said = f"{writes.state} {writes.code or ''}" if writes.fail else ""
        if said != self._said:
            self._said = said
            if writes.fail:
                _log.error("appends fail", stream=self._stream, state=writes.state.value, code=writes.code, reason=writes.reason)
            else:
                _log.info("appends are taken again", stream=self._stream)


def _stream_room(stream: str, info: dict[str, Any]) -> Sequence[Room]:
    limit = info["config"].get("max_bytes", -1)
    if limit <= 0:
        return []
    aim = int(info["config"].get("metadata", {}).get(AIM, limit))
    advice = (
        f"its disk was too small for the declared {aim} bytes: make room there, and start the system again"
        if aim > limit
        else f"give it more with `event_store_max_bytes` or in streams.yaml (max_bytes of {stream}); it never removes an event"
    )
    return [Room("stream", f"the stream {stream}", info["state"]["bytes"], limit, _LEAST_STREAM, STREAM_FULL, advice)]


def raise_if_failing(writes: Writes) -> None:
    """Raise Unavailable with the reason if appends fail."""
    if writes.fail:
        number = f" ({writes.state} {writes.code})" if writes.code else f" ({writes.state})"
        raise Unavailable(f"{writes.reason}{number}, for {writes.since:.0f} s")
