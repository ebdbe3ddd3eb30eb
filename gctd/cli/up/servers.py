"""The embedded nats-server and Postgres, among the supervised processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Generic, TypeVar

from eventlog.embedded import ChildServer, EmbeddedServer
from projections.stores import PostgresServer

S = TypeVar("S", bound=ChildServer)


class _Embedded(Generic[S]):
    """An embedded server, among the services."""

    def __init__(self, name: str, server: S) -> None:
        self.name = name
        self.server = server
        self.why = ""

    @property
    def pid(self) -> int | None:
        """Its process id, None if it does not run."""
        with contextlib.suppress(self.server.failed):
            return self.server.pid
        return None

    async def start(self) -> None:
        """Start it, or start it again on the same port. Raises the errors of the server."""
        await self.server.start()

    async def wait(self) -> int:
        """Wait until it has ended."""
        return await self.server.wait()

    async def stop(self) -> None:
        """End it in good order and release its data directory."""
        await self.server.stop()

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(self.server.failed):
            os.kill(self.server.pid, number)


class NatsServer(_Embedded[EmbeddedServer]):
    """The embedded nats-server."""


class Postgres(_Embedded[PostgresServer]):
    """The embedded Postgres, with the databases that the services use."""

    def __init__(self, server: PostgresServer, databases: Sequence[str]) -> None:
        super().__init__(server.name, server)
        self._databases = databases

    async def start(self) -> None:
        """Start it, and make the databases that are missing. Raises PostgresFailed."""
        await super().start()
        await self.server.create(*self._databases)
