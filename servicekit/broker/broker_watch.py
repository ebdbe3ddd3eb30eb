"""Looks at the broker every few seconds, also without writes: its health, its limits, and the replicas of the stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import structlog

from eventlog import Unavailable
from eventlog.admin.sizes import AIM
from eventlog.errors import EventLogError
from eventlog.jetstream.api import call
from eventlog.jetstream.transport.connection import Connection
from eventlog.jetstream.write_health import STREAM_FULL, Look, Room, WriteHealth, Writes
from eventlog.support.ticks import tick
from servicekit.broker.broker_clock import BrokerClock
from servicekit.broker.monitoring import BrokerState, NotSeen, look_at_all

EVERY = 4.0
"""Seconds between two looks."""

_TIMEOUT = 0.8
_FRESH = 0.5
"""Seconds for which a look is taken for now."""
_LEAST_STREAM = 1024

_log = structlog.get_logger(__name__)


class BrokerWatch:
    """Keeps `writes` up to date with the state of the broker and of a stream.

    `monitoring`: addresses of the monitoring ports of all its servers. Without them only the limit of the stream is seen.
    """

    def __init__(self, connection: Connection, stream: str, writes: WriteHealth, monitoring: Sequence[str]) -> None:
        self._connection = connection
        self._stream = stream
        self._writes = writes
        self._monitoring = monitoring
        self.clock = BrokerClock()
        """The time of the system."""
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._unseen: tuple[str, ...] = ()
        self._said = ""

    @property
    def monitored(self) -> bool:
        """Whether it has addresses of monitoring ports."""
        return bool(self._monitoring)

    async def run(self) -> None:
        """Look, for ever; at once if an append has failed."""
        while True:
            self._writes.failed.clear()
            await self.look()
            await tick(EVERY, self._writes.failed, after=_FRESH)

    async def writes(self) -> Writes:
        """Return whether appends are taken now. The answer is at most half a second old."""
        if time.monotonic() - self._looked > _FRESH:
            await self.look()
        return self._writes.now()

    def notes(self) -> Sequence[str]:
        """Return the nearly reached limits, problems that servers of a cluster report, unseen servers, and a wrong clock."""
        clock = self.clock.note()
        return [*self._writes.warnings(), *self._unseen, *([] if clock is None else [clock])]

    async def look(self) -> None:
        """Look once. It raises no error: a server or a stream that cannot be seen is noted."""
        async with self._looking:
            if time.monotonic() - self._looked < _FRESH:
                return
            began = time.monotonic()
            found, seen = await asyncio.gather(self._stream_info(), look_at_all(self._monitoring))
            self._looked = time.monotonic()
            self._writes.saw(self._look(began, found, seen))
        self._say()

    async def _stream_info(self) -> dict[str, Any] | Exception:
        began = self.clock.elapsed()
        try:
            info = await call(self._connection, f"STREAM.INFO.{self._stream}", timeout=_TIMEOUT)
        except EventLogError as error:
            return error
        self.clock.saw(began, info)
        return info

    def _look(self, began: float, found: dict[str, Any] | Exception, seen: Sequence[BrokerState | NotSeen]) -> Look:
        servers = [each for each in seen if isinstance(each, BrokerState)]
        unseen = [str(each) for each in seen if isinstance(each, NotSeen)]
        faults = [each.fault for each in servers if each.fault is not None]
        alone = len(self._monitoring) == 1
        self._unseen = tuple(unseen if alone else [*unseen, *faults])  # in a cluster another server can lead
        if isinstance(found, Exception):
            return Look(at=began, error=str(found))
        leader = (found.get("cluster") or {}).get("leader", "")
        ids = ",".join(sorted(each.server for each in servers)) or self._connection.client.server_id
        return Look(
            at=began,
            server=f"{leader} {ids}",
            monitored=bool(self._monitoring) and not unseen,
            fault=faults[0] if alone and faults else None,
            rooms=[*_stream_room(self._stream, found), *(room for each in servers if alone for room in each.rooms())],
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
