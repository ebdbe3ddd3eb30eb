"""The embedded nats-server and Postgres, among the supervised processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from typing import Generic, TypeVar

from eventlog.embedded.child import ChildServer
from eventlog.embedded.nats import EmbeddedServer
from projections.stores.postgres.server import PostgresServer
from servicekit.broker.monitoring import look_at

S = TypeVar("S", bound=ChildServer)

_ROOM_TO_RESTART, _PART_TO_RESTART = 64 * 1024**2, 20
"""Bytes, or the part of a small disk, that have to be free for nats-server to be restarted after a write error."""


class _Embedded(Generic[S]):
    """An embedded server, among the services."""

    def __init__(self, name: str, server: S) -> None:
        self.name = name
        self._server = server

    @property
    def pid(self) -> int | None:
        """Its process id, None if it does not run."""
        with contextlib.suppress(self._server.failed):
            return self._server.pid
        return None

    async def start(self) -> None:
        """Start it, or start it again on the same port. Raises the errors of the server."""
        await self._server.start()

    async def wait(self) -> int:
        """Wait until it has ended."""
        return await self._server.wait()

    async def stop(self) -> None:
        """End it in good order and release its data directory."""
        await self._server.stop()

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(self._server.failed):
            os.kill(self._server.pid, number)


class NatsServer(_Embedded[EmbeddedServer]):
    """The embedded nats-server."""

    async def see(self) -> str | None:
        """Why only a restart lets it store again, if that is so and there is room again; else None. Raises NotSeen."""
        seen = await look_at(self._server.monitoring_url)
        free = shutil.disk_usage(self._server.data_dir)
        if free.free < min(_ROOM_TO_RESTART, free.total // _PART_TO_RESTART):
            return None
        if seen.closed:
            return "has closed a stream after a write error, and there is room on its disk again"
        if seen.used >= seen.limit and self._server.storage_limit() > seen.limit + _ROOM_TO_RESTART:
            return "had little room on its disk when it was started, and has more now"
        return None

    def end(self) -> None:
        """Tell it to end (SIGTERM): the supervisor starts it again."""
        self._signal(signal.SIGTERM)


class Postgres(_Embedded[PostgresServer]):
    """The embedded Postgres, with the databases that the services use."""

    def __init__(self, server: PostgresServer, databases: Sequence[str]) -> None:
        super().__init__(server.name, server)
        self._databases = databases

    async def start(self) -> None:
        """Start it, and make the databases that are missing. Raises PostgresFailed."""
        await super().start()
        await self._server.create(*self._databases)
