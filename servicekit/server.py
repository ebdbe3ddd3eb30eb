"""A process that answers requests until a signal ends it in order: its address, its limits, its access."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import TypeAlias

import structlog
from aiohttp import web

from httpkit.edge import Edge
from httpkit.errors import HttpkitError
from httpkit.routes import ANYBODY, LOCAL, Access
from httpkit.server.guard import Guard, TrustedProxies, allowed_hosts, is_loopback
from httpkit.server.serving import ListenAddress, ServerLimits, server_context, serving, termination
from servicekit.access.tokens import TokenText
from servicekit.settings import ServerSettings
from terminalkit.config.loading import SettingsError

_log = structlog.get_logger(__name__)


class OpenToAll(HttpkitError):
    """Other machines reach the service, and it has no token."""

    status = HTTPStatus.BAD_REQUEST


Application: TypeAlias = tuple[web.Application, Edge]
"""An application and its edge."""
Opened: TypeAlias = AbstractAsyncContextManager[Application]
"""An application with all that it needs, while a block runs."""


@asynccontextmanager
async def listening(settings: ServerSettings, opened: Opened) -> AsyncIterator[ListenAddress]:
    """Answer requests while the block runs, which gets the address. Raises OSError for one that is taken."""
    async with (
        opened as (app, edge),
        serving(app, edge, host=settings.host, port=settings.port, limits=limits_of(settings), tls=tls_of(settings)) as address,
    ):
        yield address


async def serve_application(settings: ServerSettings, opened: Opened, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; `on_ready` gets the address when requests are answered."""
    with termination() as signalled:
        async with listening(settings, opened) as address:
            on_ready(address)
            received = await signalled
            _log.info("ending", signal=received.name)


def limits_of(settings: ServerSettings) -> ServerLimits:
    """The limits of connections."""
    return ServerLimits(
        idle=settings.idle_timeout, read=settings.read_timeout, write=settings.write_timeout, shutdown=settings.shutdown_timeout
    )


def tls_of(values: ServerSettings) -> ssl.SSLContext | None:
    """Return the TLS of a service; None if the settings name no certificate. Raises SettingsError, TlsUnusable."""
    certificate, key = values.tls_certificate, values.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise SettingsError("tls_certificate and tls_key: set both, or neither")
    return server_context(certificate, key)


def shared_token(values: ServerSettings) -> str | None:
    """Return the token that all clients may have: `auth_token`, unless that is a personal token, which commands send."""
    given = values.auth_token
    return None if given is None or TokenText.parse(given) is not None else given


def guard_of(values: ServerSettings, access: Access | None = None, *, name: str = "httpkit") -> Guard:
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


def check_reachable(values: ServerSettings, *, has_tokens: bool, program: str | None) -> None:
    """Raise OpenToAll for a service that other machines reach and that has no token. `program` creates one."""
    if _is_local(values) or values.insecure or has_tokens or shared_token(values) is not None:
        return
    create = f"create one with `{program}`" if program is not None else "set auth_token"
    where = f"it listens on {values.host}" if not is_loopback(values.host) else "trusted_proxies bring requests from elsewhere"
    raise OpenToAll(
        f"{where}, and there is no valid token, so that every client could do everything: {create}, "
        "or set insecure (--insecure) to serve every client"
    )


def _is_local(values: ServerSettings) -> bool:
    return is_loopback(values.host) and not values.trusted_proxies


def _proxies(values: ServerSettings) -> TrustedProxies:
    try:
        return TrustedProxies.of(values.trusted_proxies)
    except ValueError as error:
        raise SettingsError(f"trusted_proxies: {error}") from error
