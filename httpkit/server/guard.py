"""Admission of a request: the Host header against DNS rebinding, the origin of changes against forged requests, the caller."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import attrs
from aiohttp import web

from httpkit.messages.fields import member, message
from httpkit.problems import Forbidden, Malformed, Misdirected, NotPermitted, Unauthorized
from httpkit.routes import SAFE, Answer, Call, Nothing, Route
from httpkit.server.callers import LOCAL, OPEN, Access, Caller, Scope
from httpkit.server.proxies import TrustedProxies

_SAME_SITE = frozenset({"same-origin", "none"})
_COOKIE_SECONDS = 30 * 24 * 3600
_ASKED = "this service asks for a token: Authorization: Bearer <token>"


def is_loopback(host: str) -> bool:
    """Whether an address to bind to can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(bind: str, extra: Iterable[str] = ()) -> frozenset[str] | None:
    """Return the hosts that a Host header may name, without ports, or None for any host.

    For an address of loopback these are loopback and `extra`, so a page that rebinds its own name to 127.0.0.1 is refused. For
    another address only `extra` restricts, since the names of the service are known to its operator alone.
    """
    named = frozenset(host.lower() for host in extra)
    if is_loopback(bind):
        return named | {"localhost", "127.0.0.1", "::1", bind.lower()}
    return named or None


@message
class CallerBody:
    """The caller of this request."""

    actor: str = member(description="its name in events: `token:<id>:<name>`, `local`")
    scope: Scope = member(description="the rights of its token")
    name: str = member(description="the name of its token; empty without one")
    session: bool = member(description="whether a browser's session names the caller, which can be ended")


@attrs.frozen(kw_only=True)
class Guard:
    """The checks that a request passes before a handler sees it.

    `hosts` is the result of `allowed_hosts`. `origins` are foreign origins (`https://host`) that may make changes. A token is
    taken from `Authorization: Bearer`, or from the cookie that the session route sets, since an EventSource has no headers.

    `access` knows the tokens and sessions of a service. `token` is one shared token, for an application without `access`.
    `required`: a request without a token is refused; otherwise its caller is `nobody`. `proxies` may forward requests.
    `recheck`: seconds between two looks at the token of an open event stream, which ends with it.
    """

    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    token: str | None = attrs.field(default=None, repr=False)
    cookie: str = "httpkit_session"
    access: Access | None = attrs.field(default=None, repr=False)
    required: bool = True
    nobody: Caller = LOCAL
    proxies: TrustedProxies = attrs.field(factory=TrustedProxies)
    recheck: float = 0.5

    @property
    def knows_tokens(self) -> bool:
        """Whether there are tokens that a request may have."""
        return self.access is not None or self.token is not None

    @property
    def asks(self) -> bool:
        """Whether a request without a token is refused."""
        return self.knows_tokens and self.required

    def check(self, request: web.Request, *, same_origin: bool = False) -> None:
        """Check the host, and the origin of a change. Raises Misdirected, Malformed, Forbidden.

        `same_origin`: check the origin of a request that changes nothing as well, because it causes work.
        """
        if self.hosts is not None:
            self._check_host(request)
        if request.method not in SAFE:
            self._check_origin(request, "changes")
        elif same_origin:
            self._check_origin(request, "queries")

    async def identify(self, request: web.Request, scope: Scope, *, is_open: bool) -> Caller:
        """Return the caller. Raises Unauthorized, NotPermitted, and the errors of `access`. `is_open`: no token is asked for."""
        if not self.knows_tokens:
            return self.nobody
        if is_open:
            return OPEN
        caller = await self.known(request)
        if caller is None:
            if self.required:
                raise Unauthorized(_ASKED)
            return self.nobody
        if not caller.scope.covers(scope):
            holder = "the token" if caller.session is None else "this session of the token"
            raise NotPermitted(f"{holder} {caller.name!r} has the scope {caller.scope}; this needs {scope}")
        return caller

    async def known(self, request: web.Request) -> Caller | None:
        """Return the caller that the token or the session of a request names; None without one. Raises Unauthorized."""
        headers = request.headers
        if "Authorization" not in headers and "Cookie" not in headers:
            return None  # parsing cookies would double the time
        access = self.access or SharedToken(self.token or "", self.cookie)
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            caller = await access.by_token(given.strip())
            if caller is not None:
                return caller
            if self.required or access.is_token(given.strip()):
                raise Unauthorized("this token is unknown, revoked or expired")
        if (cookie := request.cookies.get(self.cookie)) is not None:
            return await access.by_session(cookie)
        return None

    def _check_host(self, request: web.Request) -> None:
        given = request.headers.getall("Host", [])
        if len(given) != 1:
            raise Malformed("the request needs exactly one Host header")
        assert self.hosts is not None
        host = request.host  # of an absolute target, if there is one: then the header does not count (RFC 9112, section 3.2.2)
        if _without_port(host) not in self.hosts:
            raise Misdirected(f"this service is not {host!r}; allow that host in its configuration if it should be")

    def _check_origin(self, request: web.Request, refused: str) -> None:
        headers = request.headers
        origin = headers.get("Origin")
        if origin in self.origins:
            return
        if headers.get("Sec-Fetch-Site", "none") not in _SAME_SITE:
            raise Forbidden(f"{refused} are not taken from pages of another origin")
        if origin is not None and origin.partition("://")[2] != headers.get("Host"):
            raise Forbidden(f"{refused} are not taken from pages of the origin {origin!r}")

    def routes(self, path: str) -> tuple[Route[Any], ...]:
        """Sign in and out for a page: POST with a token opens a session, DELETE ends it, GET names the caller."""
        access = self.access or SharedToken(self.token or "", self.cookie)

        async def caller(_request: Nothing, call: Call[Any]) -> CallerBody:
            """The caller of this request, as events name it."""
            found = call.caller
            return CallerBody(actor=found.actor, scope=found.scope, name=found.name, session=found.session is not None)

        async def sign_in(_request: Nothing, call: Call[Any]) -> Answer[None]:
            """Trade the token for a cookie, which is what an EventSource can send."""
            if call.caller.token is None or call.caller.session is not None:
                raise Unauthorized(_ASKED)
            value, seconds = await access.open_session(call.caller)
            return Answer(None, headers={"Set-Cookie": self.cookie_for(call.http, value, seconds)})

        async def sign_out(_request: Nothing, call: Call[Any]) -> Answer[None]:
            """End the session, and remove the cookie."""
            if (cookie := call.http.cookies.get(self.cookie)) is not None:
                await access.close_session(cookie)
            return Answer(None, headers={"Set-Cookie": self.cookie_for(call.http, "", 0)})

        return (
            Route("GET", path, caller, summary="The caller", tags=("session",)),
            Route("POST", path, sign_in, summary="Sign in with a token", tags=("session",), scope=Scope.READ),
            Route("DELETE", path, sign_out, summary="Sign out", tags=("session",), open=True),
        )

    def cookie_for(self, request: web.Request, value: str, seconds: int) -> str:
        """Return the header `Set-Cookie` of a session that was opened by a request; 0 seconds remove the cookie."""
        words = f"{self.cookie}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        return f"{words}; Secure" if self.proxies.is_secure(request) else words


@attrs.frozen
class SharedToken:
    """One token for all clients of an application without a log. A session lasts until the token changes."""

    token: str = attrs.field(repr=False)
    cookie: str = "httpkit_session"

    async def by_token(self, text: str) -> Caller | None:
        """See `Access.by_token`."""
        return SHARED if same(text, self.token) else None

    async def by_session(self, cookie: str) -> Caller | None:
        """See `Access.by_session`."""
        return attrs.evolve(SHARED, session="shared") if same(cookie, self._session()) else None

    async def open_session(self, caller: Caller) -> tuple[str, int]:  # noqa: ARG002 - all clients have one token
        """See `Access.open_session`."""
        return self._session(), _COOKIE_SECONDS

    async def close_session(self, cookie: str) -> None:
        """The browser forgets the cookie; there is nothing else to end."""

    def is_token(self, text: str) -> bool:  # noqa: ARG002 - the operator chose its form
        """See `Access.is_token`."""
        return False

    def _session(self) -> str:
        return hmac.new(self.token.encode(), self.cookie.encode(), hashlib.sha256).hexdigest()


SHARED = Caller(actor="token:auth_token", scope=Scope.ADMIN, name="auth_token", token="auth_token")  # noqa: S106 - a name
"""A client with the token of the setting `auth_token`."""


def same(given: str, wanted: str) -> bool:
    """Return whether two secrets are the same, in a time that does not depend on the place of a difference."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode())


@lru_cache(maxsize=64)
def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    if host.count(":") > 1:  # of an absolute target, whose address of IPv6 comes without brackets
        return host.lower()
    return host.partition(":")[0].rstrip(".").lower()
