"""The caller of a request: its name in events, its scope, and the port by which a service knows tokens and sessions."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import attrs
from aiohttp import web


class Scope(StrEnum):
    """The rights of a token; each scope includes the scopes before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def covers(self, other: Scope) -> bool:
        """Return whether this scope includes another."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@attrs.frozen(kw_only=True)
class Caller:
    """The caller of a request.

    `actor` is its name in events. `realm` is the service that issued its token; None has no such limit. `session` is the id of
    a browser's session.
    """

    actor: str
    scope: Scope
    name: str = ""
    realm: str | None = None
    token: str | None = None
    session: str | None = None


LOCAL = Caller(actor="local", scope=Scope.ADMIN)
"""A program or a browser on this machine, which no token is asked of."""
ANYBODY = Caller(actor="anonymous", scope=Scope.ADMIN)
"""A client of a service that answers without tokens on an address other than loopback."""
OPEN = Caller(actor="anonymous", scope=Scope.READ)
"""A client of a route that asks for no token."""

CALLER: web.RequestKey[Caller] = web.RequestKey("caller", Caller)
"""The caller of a request, once it is admitted."""


class Access(Protocol):
    """Knows tokens and sessions. Each method may raise an error with status 503 if it cannot look them up."""

    async def by_token(self, text: str) -> Caller | None:
        """Return the holder of a token; None if the token is unknown, revoked or expired."""

    async def by_session(self, cookie: str) -> Caller | None:
        """Return the owner of a session's cookie; None if the session has ended, or its token."""

    async def open_session(self, caller: Caller) -> tuple[str, int]:
        """Open a session for the holder of a token. Return the value of its cookie, and its longest time in seconds."""

    async def close_session(self, cookie: str) -> None:
        """End the session of a cookie, if it is one."""

    def is_token(self, text: str) -> bool:
        """Return whether a text has the form of a token of this service."""
