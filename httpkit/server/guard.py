"""Admission of a request: Host header, origin of changes, the caller behind trusted proxies, and tokens that are revoked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self

import attrs
import structlog
from aiohttp import web

from httpkit.errors import HttpkitError
from httpkit.messages.fields import member, message
from httpkit.problems import Forbidden, Malformed, Misdirected, NotPermitted, Unauthorized, status_of
from httpkit.routes import LOCAL, OPEN, SAFE, Access, Answer, Call, Caller, Nothing, Route, Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED_FOR, FORWARDED_PROTO = "X-Forwarded-For", "X-Forwarded-Proto"


@attrs.frozen
class TrustedProxies:
    """The addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Return the proxies of these addresses and networks.

        Raises ValueError for another text, and for a network of all addresses: any client could then take any address.
        """
        networks = tuple(ipaddress.ip_network(entry) for entry in entries)
        if any(network.prefixlen == 0 for network in networks):
            raise ValueError("a network of all addresses lets every client write forwarded headers: name the proxies")
        return cls(networks)

    def client(self, request: web.Request) -> str | None:
        """Return the address of the client: the last one in `X-Forwarded-For` that is not a trusted proxy."""
        address = request.remote
        if not self._trusts(address):
            return address
        for given in reversed(_entries(request)):
            if _parsed(given) is None:
                return address
            address = given
            if not self._trusts(given):
                break
        return address

    def is_secure(self, request: web.Request) -> bool:
        """Return whether the client's connection has TLS, to this server or to a trusted proxy."""
        if request.secure:
            return True
        given = request.headers.getall(FORWARDED_PROTO, [])
        return len(given) == 1 and given[0].strip().lower() == "https" and self._trusts(request.remote)

    def _trusts(self, text: str | None) -> bool:
        address = _parsed(text)
        return address is not None and any(address in network for network in self.networks)


def _entries(request: web.Request) -> list[str]:
    lines = request.headers.getall(FORWARDED_FOR, [])
    return [entry for line in lines for part in line.split(",") if (entry := part.strip())]


def _parsed(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


_REQUEST_HEADERS = (
    "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Min-Seq, "
    "X-GraphQL-Event-Stream-Token, X-Request-Id"
)
_ANSWER_HEADERS = "ETag, Event-Sequence, Link, Location, Retry-After, X-Request-Id"
_KNOWN_FOR = "600"
"""Seconds for which a browser need not ask again."""


async def add_cross_origin_headers(origins: AbstractSet[str], request: web.Request, response: web.StreamResponse) -> None:
    """Signal on_response_prepare: let pages of these origins read an answer. Cookies are not taken from them."""
    headers = response.headers
    varies, origin = headers.get("Vary"), request.headers.get("Origin")
    headers["Vary"] = "Origin" if varies is None else f"{varies}, Origin"
    if origin is None or origin not in origins:
        return
    headers["Access-Control-Allow-Origin"] = origin
    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        headers["Access-Control-Allow-Methods"] = headers.get("Allow", "GET")
        headers["Access-Control-Allow-Headers"] = _REQUEST_HEADERS
        headers["Access-Control-Max-Age"] = _KNOWN_FOR
    else:
        headers["Access-Control-Expose-Headers"] = _ANSWER_HEADERS


log = structlog.get_logger(__name__)


@contextmanager
def ends_with_its_token(request: web.Request, guard: Guard) -> Iterator[None]:
    """Close the connection of a request as soon as its token is not valid, while the block runs."""
    watching = asyncio.create_task(_watch(request, guard))
    try:
        yield
    finally:
        watching.cancel()


async def _watch(request: web.Request, guard: Guard) -> None:
    while True:
        await asyncio.sleep(guard.recheck)
        if not await _is_valid(request, guard):
            log.info("stream ended with its token", path=request.rel_url.raw_path)
            if request.transport is not None:
                request.transport.abort()
            return


async def _is_valid(request: web.Request, guard: Guard) -> bool:
    """Return whether the token is valid, as far as that is known. A stream that was admitted continues while it is not."""
    try:
        return await guard.known(request) is not None
    except Unauthorized:
        return False
    except HttpkitError:
        return True
    except Exception as error:
        if status_of(error) is not None:
            return True
        raise


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

    def check(self, request: web.Request) -> None:
        """Check the host, and the origin of a change. Raises Misdirected, Malformed, Forbidden."""
        if self.hosts is not None:
            self._check_host(request)
        if request.method not in SAFE:
            self.check_origin(request, "changes")

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

    def check_origin(self, request: web.Request, refused: str) -> None:
        """Raise Forbidden for a page of another origin; `refused` names what is not taken from it."""
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
        return SHARED_CALLER if same_secret(text, self.token) else None

    async def by_session(self, cookie: str) -> Caller | None:
        """See `Access.by_session`."""
        return attrs.evolve(SHARED_CALLER, session="shared") if same_secret(cookie, self._session()) else None

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


SHARED_CALLER = Caller(actor="token:auth_token", scope=Scope.ADMIN, name="auth_token", token="auth_token")  # noqa: S106 - a name
"""A client with the token of the setting `auth_token`."""


def same_secret(given: str, wanted: str) -> bool:
    """Return whether two secrets are the same, in a time that does not depend on the place of a difference."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode())


@lru_cache(maxsize=64)
def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    if host.count(":") > 1:  # of an absolute target, whose address of IPv6 comes without brackets
        return host.lower()
    return host.partition(":")[0].rstrip(".").lower()
