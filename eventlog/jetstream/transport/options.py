"""How a connection to NATS is made: where to, as whom, and with which of nats-py's many settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import attrs

from eventlog.jetstream.transport.reply_router import MOST_PENDING

CHECK_EVERY = 5.0
CHECK_TIMEOUT = 2.0


def _listed(servers: str | Sequence[str]) -> Sequence[str]:
    listed = servers.split(",") if isinstance(servers, str) else servers
    return tuple(server.strip() for server in listed)


@attrs.frozen(kw_only=True)
class ConnectionOptions:
    """How to connect: names and addresses, intervals in seconds, and credentials.

    `servers` are addresses: one, several, or several with commas between. `credentials` is a file as `nsc` writes it; user and
    password or a token are in the address (`nats://user:secret@host`).
    """

    servers: Sequence[str] = attrs.field(converter=_listed, validator=attrs.validators.min_len(1))
    name: str
    credentials: Path | None = None
    tls: SSLContext | None = None
    check_every: float = CHECK_EVERY
    check_timeout: float = CHECK_TIMEOUT

    @property
    def addresses(self) -> str:
        """The addresses for people and logs: without user and password."""
        return ", ".join(_without_secret(server) for server in self.servers)

    def for_nats(self) -> dict[str, Any]:
        """The arguments of nats-py's `connect`, without callbacks."""
        given: dict[str, Any] = {
            "servers": list(self.servers),
            "name": self.name,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.25,
            "connect_timeout": 2,
            "ping_interval": 2,
            "max_outstanding_pings": 2,
            "pending_size": 2 * MOST_PENDING,
            "flush_timeout": 2,
        }
        if self.credentials is not None:
            given["user_credentials"] = str(self.credentials)
        if self.tls is not None:
            given["tls"] = self.tls
        return given


def _without_secret(server: str) -> str:
    return urlsplit(server).netloc.rpartition("@")[2] or server.rpartition("@")[2]
