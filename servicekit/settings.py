"""The settings that every service has, and the class of them for a service without more."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

from httpkit.server.guard import Guard, allowed_hosts
from httpkit.server.serving import ServerLimits
from terminalkit.config.loading import setting, settings

_SIZE = "^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$"


class Listening(Protocol):
    """The settings of a process that answers requests."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def allowed_hosts(self) -> tuple[str, ...]: ...
    @property
    def auth_token(self) -> str | None: ...


@runtime_checkable
class Timeouts(Protocol):
    """The settings that bound connections, in seconds; a service without them has the defaults of `ServerLimits`."""

    @property
    def idle_timeout(self) -> float: ...
    @property
    def read_timeout(self) -> float: ...
    @property
    def write_timeout(self) -> float: ...
    @property
    def shutdown_timeout(self) -> float: ...


class Serving(Listening, Protocol):
    """The settings of a process with a log and a read model."""

    @property
    def nats_url(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def event_store_max_bytes(self) -> str | None: ...
    @property
    def max_lag(self) -> float: ...
    @property
    def monitoring_url(self) -> str | None: ...


@settings
class ServiceSettings:
    """The settings of a service that has no others. Durations are in seconds, and written as in `90s`, `10m`, `1h30m`."""

    host: str = setting(default="127.0.0.1", min_length=1, help="Address to listen on.")
    port: int = setting(default=8080, ge=0, le=65_535, help="Port to listen on; 0 for a free one.")
    allowed_hosts: tuple[str, ...] = setting(default=(), help="Host names of the server besides loopback.")
    auth_token: str | None = setting(default=None, secret=True, min_length=8, help="Bearer token that requests must have.")
    idle_timeout: float = setting(default=60.0, duration=True, ge=0.1, le=86_400, help="End of a connection without requests.")
    read_timeout: float = setting(default=15.0, duration=True, ge=0.1, le=3600, help="Longest time for a request to arrive.")
    write_timeout: float = setting(default=15.0, duration=True, ge=0.1, le=3600, help="Longest time for a client to take data.")
    shutdown_timeout: float = setting(default=30.0, duration=True, ge=0, le=3600, help="Time for open requests at the end.")
    database_url: str | None = setting(
        default=None,
        help="Database of the read model: sqlite:PATH or postgresql://; without it a file in the user's data directory.",
    )
    max_lag: float = setting(default=30.0, duration=True, ge=1, help="Lag of the read model above which it is not ready.")
    nats_url: str = setting(default="nats://127.0.0.1:4222", help="Address of the broker.")
    monitoring_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ,]+(, *https?://[^ ,]+)*$",
        help="Address of nats-server's monitoring port, or several with commas between: there it shows its health.",
    )
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold the stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(default=None, pattern=_SIZE, help="Size limit of the event stream, as in 20GiB.")
    log_level: Literal["debug", "info", "warning", "error"] = setting(default="info", help="Least level that is logged.")
    log_format: Literal["auto", "json", "text"] = setting(default="auto", help="Form of the log; auto: text on a terminal.")


def limits_of(values: Any) -> ServerLimits:
    """The limits of connections, of settings that may have timeouts."""
    if not isinstance(values, Timeouts):
        return ServerLimits()
    return ServerLimits(
        idle=values.idle_timeout, read=values.read_timeout, write=values.write_timeout, shutdown=values.shutdown_timeout
    )


def guard_of(values: Listening) -> Guard:
    """The checks of requests, of the settings for hosts and the token."""
    return Guard(hosts=allowed_hosts(values.host, values.allowed_hosts), token=values.auth_token)
