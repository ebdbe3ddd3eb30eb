"""The health and the store of a nats-server, as its monitoring port reports them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import attrs
import msgspec

from eventlog.jetstream.write_health import STORE_FULL, Room
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
        found = []
        if self.limit > 0:
            advice = "raise its max_file_store, or remove streams that are not needed"
            found.append(Room("store", "the store of nats-server", self.used, self.limit, _LEAST_STORE, STORE_FULL, advice))
        if self.is_here and self.directory is not None:
            found.append(disk_room(self.directory, self.used))
        return found


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
