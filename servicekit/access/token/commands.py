"""The commands on a token, and its rules. The category belongs to the service: `bank.token`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

import attrs

from eventlog import Decider, Registry
from eventlog.errors import EventLogError
from httpkit.server.callers import Scope
from servicekit.access.token.events import (
    PairingOffered,
    SessionClosed,
    SessionOpened,
    TokenEvent,
    TokenIssued,
    TokenRevoked,
    TokenUsed,
)
from servicekit.access.token.state import MOST_PAIRINGS, MOST_SESSIONS, Token, evolve

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
    return Decider(category, decide, evolve)


def register(registry: Registry, category: str) -> None:
    """Register the events and the state of tokens with the types of a service."""
    for event in (TokenIssued, TokenUsed, TokenRevoked, PairingOffered, SessionClosed):
        registry.event(event.__name__)(event)
    registry.event(SessionOpened.__name__, version=2, reads=[1])(SessionOpened)
    registry.state(category, version=2, reads=[1])(Token)
