"""Who may ask: the Host header against DNS rebinding, the origin of changes against forged requests, an optional token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import attrs
from aiohttp import web

from httpkit.problems import Forbidden, Malformed, Misdirected, Unauthorized
from httpkit.routes import SAFE, Answer, Call, Nothing, Route

_SAME_SITE = frozenset({"same-origin", "none"})
_COOKIE_SECONDS = 30 * 24 * 3600


def is_loopback(host: str) -> bool:
    """Whether an address to bind to can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(bind: str, extra: Iterable[str] = ()) -> frozenset[str] | None:
    """The hosts that a Host header may name, without ports; None: any.

    Bound to loopback, that is loopback and `extra`; a page that rebinds its own name to 127.0.0.1 gets nowhere. Bound to another
    address, only `extra` restricts, since nobody but the operator knows the names of the service.
    """
    named = frozenset(host.lower() for host in extra)
    if is_loopback(bind):
        return named | {"localhost", "127.0.0.1", "::1", bind.lower()}
    return named or None


@attrs.frozen(kw_only=True)
class Guard:
    """The checks that a request passes before a handler sees it.

    `hosts` as `allowed_hosts` gives them; `origins` are foreign origins (`https://host`) that may make changes; `token` is asked
    for as `Authorization: Bearer`, or as the cookie that the session route sets, since an EventSource has no headers.
    """

    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    token: str | None = attrs.field(default=None, repr=False)
    cookie: str = "httpkit_session"

    def check(self, request: web.Request, *, is_open: bool) -> None:
        """Raises Misdirected, Malformed, Forbidden, Unauthorized. `is_open`: no token is asked for."""
        if self.hosts is not None:
            self._check_host(request)
        if request.method not in SAFE:
            self._check_origin(request)
        if self.token is not None and not is_open:
            self._check_token(request, self.token)

    def _check_host(self, request: web.Request) -> None:
        given = request.headers.getall("Host", [])
        if len(given) != 1:
            raise Malformed("the request needs exactly one Host header")
        assert self.hosts is not None
        if _without_port(given[0]) not in self.hosts:
            raise Misdirected(f"this service is not {given[0]!r}; allow that host in its configuration if it should be")

    def _check_origin(self, request: web.Request) -> None:
        headers = request.headers
        origin = headers.get("Origin")
        if origin in self.origins:
            return
        if headers.get("Sec-Fetch-Site", "none") not in _SAME_SITE:
            raise Forbidden("changes are not taken from pages of another origin")
        if origin is not None and origin.partition("://")[2] != headers.get("Host"):
            raise Forbidden(f"changes are not taken from pages of the origin {origin!r}")

    def _check_token(self, request: web.Request, token: str) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), token):
            return
        if _same(request.cookies.get(self.cookie, ""), self._session(token)):
            return
        raise Unauthorized("this service asks for its token: Authorization: Bearer <token>")

    def _session(self, token: str) -> str:
        return hmac.new(token.encode(), self.cookie.encode(), hashlib.sha256).hexdigest()

    def routes(self, path: str) -> tuple[Route[Any], ...]:
        """Sign in and out for a page: POST with the token sets the cookie, DELETE removes it."""

        async def sign_in(_request: Nothing, call: Call[Any]) -> Answer[None]:
            """Trade the token for a cookie, which is what an EventSource can send."""
            value = self._session(self.token) if self.token is not None else ""
            return Answer(None, headers={"Set-Cookie": self._set_cookie(value, _COOKIE_SECONDS, secure=call.http.secure)})

        async def sign_out(_request: Nothing, call: Call[Any]) -> Answer[None]:
            """Remove the cookie."""
            return Answer(None, headers={"Set-Cookie": self._set_cookie("", 0, secure=call.http.secure)})

        return (
            Route("POST", path, sign_in, summary="Sign in with the token", tags=("session",)),
            Route("DELETE", path, sign_out, summary="Sign out", tags=("session",), open=True),
        )

    def _set_cookie(self, value: str, seconds: int, *, secure: bool) -> str:
        words = f"{self.cookie}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        return f"{words}; Secure" if secure else words


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode())


@lru_cache(maxsize=64)
def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()
