"""Tokens: their events, their state, and the commands on a token. The category belongs to the service, as in `bank.token`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeVar

import attrs

from eventlog import Decider, Registry
from eventlog.errors import EventLogError
from httpkit.server.callers import Scope


@attrs.frozen(kw_only=True)
class TokenIssued:
    """A token was issued. `digest` is the SHA-256 of its secret, in hexadecimal."""

    id: str
    name: str
    scope: str
    digest: str
    expires_at: datetime | None
    at: datetime


@attrs.frozen(kw_only=True)
class TokenUsed:
    """A request had the token, for the first time in about an hour."""

    at: datetime


@attrs.frozen(kw_only=True)
class TokenRevoked:
    """The token and its sessions are not valid any more."""

    at: datetime


@attrs.frozen(kw_only=True)
class PairingOffered:
    """The holder asked for a code that signs in one device. `digest` is the digest of the code's secret.

    `pairing` is also the id of the session that the code opens. `name` is the name of the device, `scope` its rights.
    """

    pairing: str
    digest: str
    name: str
    scope: str
    expires_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class SessionOpened:
    """A browser signed in. `digest` is the digest of the secret in its cookie.

    `name` and `scope` are empty, or the name and the rights of a device that signed in by the pairing code with this id.
    """

    session: str
    digest: str
    expires_at: datetime
    at: datetime
    name: str = ""
    scope: str = ""


@attrs.frozen(kw_only=True)
class SessionClosed:
    """A browser signed out, a holder ended the session of a device, or withdrew its pairing code.

    It is also the end of the oldest session or code of a token that has no room for a new one.
    """

    session: str
    at: datetime


TokenEvent = TokenIssued | TokenUsed | TokenRevoked | PairingOffered | SessionOpened | SessionClosed


T = TypeVar("T", bound="Session | PairingCode")

SHARED = "auth_token"
"""The id of the aggregate with the sessions that were opened with the token of the setting `auth_token`."""
MOST_SESSIONS = 20
"""Open sessions of a token; a further one ends the oldest with at most its rights."""
MOST_PAIRINGS = 5
"""Unused pairing codes of a token; a further one withdraws the oldest with at most its rights."""


@attrs.frozen(kw_only=True)
class Session:
    """An open session of a browser. `name` and `scope` as in `SessionOpened`."""

    id: str
    digest: str
    expires_at: datetime
    opened_at: datetime
    name: str = ""
    scope: str = ""


@attrs.frozen(kw_only=True)
class PairingCode:
    """A pairing code that no device has used."""

    id: str
    digest: str
    name: str
    scope: str
    expires_at: datetime


@attrs.frozen(kw_only=True)
class Token:
    """A token. `digest` is empty for the shared token, which is a setting and not in the log."""

    id: str
    name: str
    scope: str
    digest: str
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    sessions: tuple[Session, ...] = ()
    pairings: tuple[PairingCode, ...] = ()

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def session(self, id_: str, now: datetime) -> Session | None:
        """Return an open session."""
        return _found(self.sessions, id_, now)

    def pairing(self, id_: str, now: datetime) -> PairingCode | None:
        """Return a pairing code that can be used."""
        return _found(self.pairings, id_, now)


def evolve(state: Token | None, event: TokenEvent) -> Token:
    """Return the token after an event."""
    if isinstance(event, TokenIssued):
        return Token(
            id=event.id,
            name=event.name,
            scope=event.scope,
            digest=event.digest,
            created_at=event.at,
            expires_at=event.expires_at,
        )
    if state is None:
        state = Token(id=SHARED, name=SHARED, scope="admin", digest="", created_at=event.at)
    match event:
        case TokenUsed():
            return attrs.evolve(state, used_at=event.at)
        case TokenRevoked():
            return attrs.evolve(state, revoked_at=event.at, sessions=(), pairings=())
        case PairingOffered():
            return attrs.evolve(state, pairings=_with(state.pairings, _pairing(event), event.at, MOST_PAIRINGS))
        case SessionOpened():
            sessions = _with(state.sessions, _session(event), event.at, MOST_SESSIONS)
            return attrs.evolve(state, sessions=sessions, pairings=_without(state.pairings, event.session))
        case SessionClosed():
            remaining = _without(state.sessions, event.session), _without(state.pairings, event.session)
            return attrs.evolve(state, sessions=remaining[0], pairings=remaining[1])


def _session(event: SessionOpened) -> Session:
    return Session(
        id=event.session,
        digest=event.digest,
        expires_at=event.expires_at,
        name=event.name,
        scope=event.scope,
        opened_at=event.at,
    )


def _pairing(event: PairingOffered) -> PairingCode:
    return PairingCode(id=event.pairing, digest=event.digest, name=event.name, scope=event.scope, expires_at=event.expires_at)


def _found(some: tuple[T, ...], id_: str, now: datetime) -> T | None:
    return next((one for one in some if one.id == id_ and now < one.expires_at), None)


def _with(some: tuple[T, ...], new: T, at: datetime, most: int) -> tuple[T, ...]:
    """Add one. Expired ones are dropped, and the oldest ones if there are too many: a commit may have no event of their end."""
    still = [one for one in some if at < one.expires_at]
    return (*still[-(most - 1) :], new)


def _without(some: tuple[T, ...], id_: str) -> tuple[T, ...]:
    return tuple(one for one in some if one.id != id_)


COARSE = timedelta(hours=1)
"""The use of a token is noted if the last noted one is this old."""


class TokenRefused(EventLogError):
    """A command on a token is not possible in its present state."""

    status = HTTPStatus.CONFLICT


class TokenFull(TokenRefused):
    """The token has the largest number of sessions or codes, and each has more rights than the new one."""


class NoSuchToken(EventLogError):
    """There is no token with this id."""

    status = HTTPStatus.NOT_FOUND


@attrs.frozen(kw_only=True)
class IssueToken:
    """Issue a token; fields as in `TokenIssued`."""

    id: str
    name: str
    scope: str
    digest: str
    expires_at: datetime | None
    at: datetime


@attrs.frozen(kw_only=True)
class UseToken:
    """Note that a request had the token."""

    at: datetime


@attrs.frozen(kw_only=True)
class RevokeToken:
    """Revoke the token and end its sessions."""

    at: datetime


@attrs.frozen(kw_only=True)
class OpenSession:
    """Open a session; fields as in `SessionOpened`."""

    session: str
    digest: str
    expires_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class OfferPairing:
    """Offer a code that signs in one device; fields as in `PairingOffered`."""

    pairing: str
    digest: str
    name: str
    scope: str
    expires_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class ClaimPairing:
    """Open the session of a pairing code, which is used up then. `digest` is the digest of the secret in the cookie."""

    pairing: str
    digest: str
    expires_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class CloseSession:
    """End a session, or withdraw a pairing code."""

    session: str
    at: datetime


TokenCommand = IssueToken | UseToken | RevokeToken | OpenSession | OfferPairing | ClaimPairing | CloseSession


def decide(command: TokenCommand, state: Token | None) -> Sequence[TokenEvent]:
    """Return the events of a command. Raises NoSuchToken, TokenRefused, TokenFull."""
    match command:
        case IssueToken():
            if state is not None:
                raise TokenRefused(f"there is a token with the id {command.id}")
            return [TokenIssued(**attrs.asdict(command))]
        case OpenSession():
            _check_valid(state, command.at)
            opened = SessionOpened(**attrs.asdict(command))
            return [*_ended_for(opened, state), opened]
        case OfferPairing():
            _check_valid(state, command.at)
            offered = PairingOffered(**attrs.asdict(command))
            return [*_ended_for(offered, state), offered]
    if state is None:
        raise NoSuchToken("there is no such token: `token list` shows the tokens")
    match command:
        case UseToken():
            is_new = state.used_at is None or command.at - state.used_at >= COARSE
            return [TokenUsed(at=command.at)] if is_new and state.is_valid(command.at) else []
        case RevokeToken():
            return [] if state.revoked_at is not None else [TokenRevoked(at=command.at)]
        case ClaimPairing():
            claimed = _claimed(command, state)
            return [*_ended_for(claimed, state), claimed]
        case CloseSession():
            is_there = command.session in {one.id for one in state.sessions} | {one.id for one in state.pairings}
            return [SessionClosed(session=command.session, at=command.at)] if is_there else []


def _check_valid(state: Token | None, at: datetime) -> None:
    if state is not None and not state.is_valid(at):
        raise TokenRefused(f"the token {state.name!r} is revoked or expired")


def _ended_for(new: SessionOpened | PairingOffered, state: Token | None) -> Sequence[SessionClosed]:
    """Return the end of the oldest one with at most the rights of a new one, if the new one has no room. Raises TokenFull."""
    if state is None:
        return []
    sessions = state.sessions, MOST_SESSIONS, "open sessions"
    some, most, kind = sessions if isinstance(new, SessionOpened) else (state.pairings, MOST_PAIRINGS, "unused codes")
    still = [one for one in some if new.at < one.expires_at]
    if len(still) < most:
        return []
    rights = Scope(new.scope or state.scope)
    for one in still:
        if rights.covers(Scope(one.scope or state.scope)):
            return [SessionClosed(session=one.id, at=new.at)]
    raise TokenFull(f"the token has {most} {kind} with more rights than the new one: end one of them")


def _claimed(command: ClaimPairing, state: Token) -> SessionOpened:
    _check_valid(state, command.at)
    offered = state.pairing(command.pairing, command.at)
    if offered is None:
        raise TokenRefused("the pairing code was used already, was withdrawn or has expired")
    return SessionOpened(
        session=offered.id,
        digest=command.digest,
        expires_at=command.expires_at,
        at=command.at,
        name=offered.name,
        scope=offered.scope,
    )


TokenDecider = Decider[Token, TokenCommand, TokenEvent]


def token_decider(category: str) -> TokenDecider:
    """Return the rules of the tokens of a service: `category` is `<service>.token`."""
    return Decider(category, decide, evolve, initial=None)


def register(registry: Registry, category: str) -> None:
    """Register the events and the state of tokens with the types of a service."""
    for event in (TokenIssued, TokenUsed, TokenRevoked, PairingOffered, SessionOpened, SessionClosed):
        registry.event(event.__name__)(event)
    registry.state(category)(Token)
