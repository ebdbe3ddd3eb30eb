"""Devices of the household: a QR code signs a phone in, and the sessions of a token can be seen and ended.

The code is behind the `#` of the address: a browser sends that part to no server, so it is in no log and no `Referer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address

import segno
from yarl import URL

from httpkit import UNSET, Answer, Call, Nothing, Route, Scope, Unset, is_loopback, member, message, path
from pantry.http.services import Services
from pantry.http.values import text_without
from servicekit.access import Session

NAME_LENGTH = 64
"""Characters of the name of a device."""
FRAGMENT = "pair"
"""The name of the code behind the `#` of the address."""
_ID = {"type": "string", "pattern": "^[0-9a-f]{12}$"}
_ADDRESS = {"type": "string", "format": "page-address", "maxLength": 2000}
_REMEDY = (
    "a phone cannot reach {host}: let the service listen on an address of the network (host), with a certificate "
    "(tls_certificate, tls_key), and set the address of the page (public_url)"
)


def _problem(text: str) -> str | None:
    """Return the fault of the address of a page, or None."""
    with suppress(ValueError):
        found = URL(text)
        if found.scheme in {"http", "https"} and found.host:
            return None
    return "must be an http:// or https:// address"


@message
class Pair:
    """The device that is to be signed in."""

    name: str = member(min_length=1, max_length=NAME_LENGTH, example="kitchen phone", description="the name of the device")
    scope: Scope | Unset = member(
        default=UNSET, description="the rights of the device, at most the caller's; without it `write`, or `read` of a reader"
    )
    address: str | Unset = member(
        default=UNSET,
        parse=text_without(_problem),
        schema=_ADDRESS,
        max_length=2000,
        description="the address of the page for the device; without it the setting public_url, else the address of this request",
    )


@message
class PairingBody:
    """A code for a device. Without tokens it is the address of the page, and `id`, `scope` and `expires_at` are left out."""

    link: str = member(description="the content of the QR code: it signs one device in")
    qr: Sequence[str] = member(description="the rows of the QR code, `1` for a dark module, without the margin of 4 modules")
    id: str | Unset = member(default=UNSET, description="the id of the session that the code opens")
    scope: Scope | Unset = member(default=UNSET)
    expires_at: datetime | Unset = member(default=UNSET)
    warning: str | Unset = member(default=UNSET, description="why no phone can use the address, and the remedy")


@message
class Claim:
    """The code that a device was given."""

    code: str = member(min_length=1, max_length=200)


@message
class SessionBody:
    """An open session of a browser or of a device."""

    id: str = member()
    name: str = member(description="the name of the device; empty for a browser that signed in with the token itself")
    scope: Scope | Unset = member(default=UNSET, description="the rights of the device; without it the rights of the token")
    opened_at: datetime = member()
    expires_at: datetime = member()
    current: bool = member(description="whether it is the session of this request")

    @classmethod
    def of(cls, session: Session, *, current: bool) -> SessionBody:
        """The body of a session."""
        scope: Scope | Unset = Scope(session.scope) if session.scope else UNSET
        return cls(
            id=session.id,
            name=session.name,
            scope=scope,
            opened_at=session.opened_at,
            expires_at=session.expires_at,
            current=current,
        )


@message
class OneSession:
    """Names a session, or a code that no device has used."""

    id: str = path(pattern=_ID["pattern"], schema=_ID, form="the id of a session")


async def pair(request: Pair, call: Call[Services]) -> PairingBody:
    """Make a code that signs in one device, once and within five minutes, and the QR code of its address.

    The session of the device belongs to the caller's token, and ends with it. If the service asks for no token, the code is the
    address.
    """
    page = _page(request, call)
    warning = _REMEDY.format(host=page.host) if _is_of_this_machine(page.host or "") else UNSET
    services = call.services
    if not services.guard.required or call.caller.token is None:
        return PairingBody(link=str(page), qr=_rows(str(page)), warning=warning)
    offer = await services.devices.offer(call.caller, request.name, None if request.scope is UNSET else request.scope)
    link = str(page.with_fragment(f"{FRAGMENT}={offer.code}"))
    return PairingBody(link=link, qr=_rows(link), id=offer.id, scope=offer.scope, expires_at=offer.expires_at, warning=warning)


async def claim_pairing(request: Claim, call: Call[Services]) -> Answer[SessionBody]:
    """Sign this browser in by a code, which is used up then. The answer sets the cookie of the session."""
    found = await call.services.devices.claim(request.code)
    cookie = call.services.guard.cookie_for(call.http, found.cookie, found.seconds)
    return Answer(SessionBody.of(found.session, current=True), headers={"Set-Cookie": cookie})


async def list_sessions(_request: Nothing, call: Call[Services]) -> Sequence[SessionBody]:
    """The open sessions of the caller's token, the newest last. Without tokens there are none."""
    sessions = await call.services.devices.sessions(call.caller)
    return [SessionBody.of(session, current=session.id == call.caller.session) for session in sessions]


async def end_session(request: OneSession, call: Call[Services]) -> Answer[None]:
    """End a session of the caller's token, or withdraw a code that no device has used."""
    await call.services.devices.end(call.caller, request.id)
    return Answer(None)


def _page(request: Pair, call: Call[Services]) -> URL:
    given = call.services.public_url if request.address is UNSET else request.address
    if given is None:
        scheme = "https" if call.services.guard.proxies.is_secure(call.http) else "http"
        given = f"{scheme}://{call.http.host}/"
    found = URL(given).with_query(None).with_fragment(None)
    return found.with_path("/") if found.path == "/" else found  # without it a bare host would have no path as text


def _is_of_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified or is_loopback(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _rows(text: str) -> Sequence[str]:
    return ["".join(map(str, row)) for row in segno.make(text, error="m", micro=False).matrix]


_TAGS = ("session",)

ROUTES = (
    Route(
        "POST",
        "/api/v1/pairings",
        pair,
        summary="Make a code for a device",
        tags=_TAGS,
        status=201,
        scope=Scope.READ,
        errors=(409,),
    ),
    Route("POST", "/api/v1/pairings:claim", claim_pairing, summary="Sign a device in", tags=_TAGS, open=True, errors=(403, 409)),
    Route("GET", "/api/v1/sessions", list_sessions, summary="List sessions", tags=_TAGS, immediate=True),
    Route("DELETE", "/api/v1/sessions/{id}", end_session, summary="End a session", tags=_TAGS, scope=Scope.READ, errors=(404,)),
)
