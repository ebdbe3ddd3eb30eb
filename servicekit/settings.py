"""The settings that every service has, and the class of them for a service without more."""

from __future__ import annotations

import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from httpkit.errors import HttpkitError
from httpkit.server.callers import ANYBODY, LOCAL, Access
from httpkit.server.guard import Guard, TrustedProxies, allowed_hosts, is_loopback
from httpkit.server.serving import ServerLimits, server_context
from servicekit.access.issuing import TokenText
from terminalkit.config.fields import setting, settings
from terminalkit.config.loading import SettingsError

_SIZE = "^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$"


class OpenToAll(HttpkitError):
    """Other machines reach the service, and it has no token."""

    status = HTTPStatus.BAD_REQUEST


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
    @property
    def require_tokens(self) -> bool: ...
    @property
    def insecure(self) -> bool: ...
    @property
    def trusted_proxies(self) -> tuple[str, ...]: ...
    @property
    def tls_certificate(self) -> Path | None: ...
    @property
    def tls_key(self) -> Path | None: ...


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
    require_tokens: bool = setting(default=False, help="Ask for a token on loopback as well.")
    insecure: bool = setting(default=False, help="Serve every client without a token, on any address.")
    trusted_proxies: tuple[str, ...] = setting(default=(), help="Addresses and networks of proxies that may forward requests.")
    tls_certificate: Path | None = setting(default=None, help="Certificate for https, in PEM.")
    tls_key: Path | None = setting(default=None, help="Key of the certificate, in PEM.")
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
        form="an address like http://host:8222, or several with commas between",
        help="Address of nats-server's monitoring port, or several with commas between: there it shows its health.",
    )
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold the stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(
        default=None, pattern=_SIZE, form="a size like 512MiB or 20GiB", help="Size limit of the event stream, as in 20GiB."
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(default="info", help="Least level that is logged.")
    log_format: Literal["auto", "json", "text"] = setting(default="auto", help="Form of the log; auto: text on a terminal.")


def limits_of(values: Any) -> ServerLimits:
    """The limits of connections, of settings that may have timeouts."""
    if not isinstance(values, Timeouts):
        return ServerLimits()
    return ServerLimits(
        idle=values.idle_timeout, read=values.read_timeout, write=values.write_timeout, shutdown=values.shutdown_timeout
    )


def tls_of(values: Listening) -> ssl.SSLContext | None:
    """Return the TLS of a service; None if the settings name no certificate. Raises SettingsError, TlsUnusable."""
    certificate, key = values.tls_certificate, values.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise SettingsError("tls_certificate and tls_key: set both, or neither")
    return server_context(certificate, key)


def shared_token(values: Listening) -> str | None:
    """Return the token that all clients may have: `auth_token`, unless that is a personal token, which commands send."""
    given = values.auth_token
    return None if given is None or TokenText.parse(given) is not None else given


def guard_of(values: Listening, access: Access | None = None, *, name: str = "httpkit") -> Guard:
    """Return the checks of requests, of the settings for hosts, tokens and proxies.

    On loopback no token is asked for, unless `auth_token` or `require_tokens` is set, or a proxy brings requests from elsewhere.
    `name` of the service is in the name of its cookie. Raises SettingsError.
    """
    local = _is_local(values)
    shared = shared_token(values)
    asks = shared is not None or values.require_tokens or not (local or values.insecure)
    return Guard(
        hosts=allowed_hosts(values.host, values.allowed_hosts),
        token=shared,
        access=access,
        required=asks,
        cookie=f"{name}_session",
        nobody=LOCAL if local else ANYBODY,
        proxies=_proxies(values),
    )


def check_reachable(values: Listening, *, has_tokens: bool, program: str | None) -> None:
    """Raise OpenToAll for a service that other machines reach and that has no token. `program` creates one."""
    if _is_local(values) or values.insecure or has_tokens or shared_token(values) is not None:
        return
    create = f"create one with `{program}`" if program is not None else "set auth_token"
    where = f"it listens on {values.host}" if not is_loopback(values.host) else "trusted_proxies bring requests from elsewhere"
    raise OpenToAll(
        f"{where}, and there is no valid token, so that every client could do everything: {create}, "
        "or set insecure (--insecure) to serve every client"
    )


def _is_local(values: Listening) -> bool:
    return is_loopback(values.host) and not values.trusted_proxies


def _proxies(values: Listening) -> TrustedProxies:
    try:
        return TrustedProxies.of(values.trusted_proxies)
    except ValueError as error:
        raise SettingsError(f"trusted_proxies: {error}") from error
