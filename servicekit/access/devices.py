"""Devices that sign in by a code: a holder of a token offers one, and the device that claims it gets a session.

The code is valid once and for a few minutes. It is offered and claimed by events of the token's aggregate, whose appends are
guarded: of two devices with one code, on any two processes, one gets the session. The log has digests only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

import attrs

from eventlog import Context
from httpkit.errors import HttpkitError
from httpkit.problems import NotPermitted
from httpkit.server.callers import Caller, Scope
from httpkit.server.guard import same_secret
from servicekit.access.issuing import SessionText
from servicekit.access.service_access import ServiceAccess, end_of
from servicekit.access.tokens import ClaimPairing, OfferPairing, Session, TokenFull, TokenRefused

CODE = timedelta(minutes=5)
"""The time for which a code can be used."""
DEVICE = timedelta(days=90)
"""The longest time of a device's session, which also ends with the token."""


class PairingRefused(HttpkitError):
    """A code signs no device in."""

    status = HTTPStatus.FORBIDDEN


class NoSuchSession(HttpkitError):
    """The token has no open session with this id."""

    status = HTTPStatus.NOT_FOUND


@attrs.frozen(kw_only=True)
class Offer:
    """A code for one device. `id` is the id of the session that it opens; the code is for no log."""

    id: str
    code: str = attrs.field(repr=False)
    scope: Scope
    expires_at: datetime


@attrs.frozen(kw_only=True)
class SignedIn:
    """A device that was signed in: its session, the value of its cookie, and the longest time of that in seconds."""

    session: Session
    cookie: str = attrs.field(repr=False)
    seconds: int


class Devices:
    """The devices of the holders of tokens. Each method raises the errors of `Commands.execute` and of `TokenDirectory.find`."""

    def __init__(self, access: ServiceAccess) -> None:
        self._access = access
        self._decider = access.directory.tokens.decider

    async def offer(self, caller: Caller, name: str, scope: Scope | None = None) -> Offer:
        """Return a code for a device. Without a scope the device may write, if the caller may.

        Raises NotPermitted for a scope beyond the caller's, TokenRefused for a token that is not valid any more, and
        TokenFull for one with too many codes with more rights.
        """
        assert caller.token is not None, "a code is offered by the holder of a token"
        wanted = scope or min(caller.scope, Scope.WRITE, key=list(Scope).index)
        if not caller.scope.covers(wanted):
            raise NotPermitted(f"a device cannot get the scope {wanted}: {caller.name!r} has the scope {caller.scope}")
        now, made = self._access.now(), SessionText.make(caller.token)
        end = now + CODE
        command = OfferPairing(
            pairing=made.id, digest=self._access.digest_of(made), name=name, scope=wanted.value, expires_at=end, at=now
        )
        await self._access.commands.execute(self._decider, caller.token, command, Context(actor=caller.actor))
        return Offer(id=made.id, code=made.reveal(), scope=wanted, expires_at=end)

    async def claim(self, code: str) -> SignedIn:
        """Sign a device in by a code, which is used up then. Raises PairingRefused, TokenFull, which leaves the code unused."""
        refused = PairingRefused("this code is unknown, was used already or has expired: ask for a new one")
        given, now, access = self._access.parse(code), self._access.now(), self._access
        if given is None:
            raise refused
        token = await access.directory.find_newest(given.token)
        offered = None if token is None or not token.is_valid(now) else token.pairing(given.id, now)
        if token is None or offered is None or not same_secret(access.digest_of(given), offered.digest):
            raise refused
        made = attrs.evolve(SessionText.make(given.token), id=offered.id)
        end = end_of(token, now + DEVICE)
        command = ClaimPairing(pairing=offered.id, digest=access.digest_of(made), expires_at=end, at=now)
        try:
            outcome = await access.commands.execute(self._decider, token.id, command, Context(actor=access.caller(token).actor))
        except TokenFull:
            raise
        except TokenRefused as error:
            raise refused from error
        session = outcome.state.session(offered.id, now)
        assert session is not None, "the command opened it"
        return SignedIn(session=session, cookie=made.reveal(), seconds=int((end - now).total_seconds()))

    async def sessions(self, caller: Caller) -> Sequence[Session]:
        """Return the open sessions of the caller's token, the newest last."""
        token = None if caller.token is None else await self._access.directory.find_newest(caller.token)
        now = self._access.now()
        return [] if token is None else [one for one in token.sessions if now < one.expires_at]

    async def end(self, caller: Caller, id_: str) -> None:
        """End a session of the caller's token, or withdraw a code. Raises NoSuchSession, NotPermitted."""
        token = None if caller.token is None else await self._access.directory.find_newest(caller.token)
        now = self._access.now()
        found = None if token is None else token.session(id_, now) or token.pairing(id_, now)
        if token is None or found is None:
            raise NoSuchSession("there is no open session with this id")
        scope = Scope(found.scope or token.scope)
        if not caller.scope.covers(scope):
            raise NotPermitted(f"a session with the scope {scope} is not ended by one with the scope {caller.scope}")
        await self._access.end_session(id_, caller)
