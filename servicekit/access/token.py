"""The aggregate of a personal token: issued, used, revoked; and the sessions that browsers opened with it.

An event has digests of secrets, and no secret. The category belongs to the service: `gctd.token`, `pantry.token`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

import attrs

from eventlog import Decider, Registry
from eventlog.errors import EventLogError

SHARED = "auth_token"
"""The id of the aggregate with the sessions that were opened with the token of the setting `auth_token`."""
COARSE = timedelta(hours=1)
"""The use of a token is noted if the last noted one is this old."""
MOST_SESSIONS = 20
"""Open sessions of a token; a further one ends the oldest."""


class TokenRefused(EventLogError):
    """A command on a token is not possible in its present state."""

    status = HTTPStatus.CONFLICT


class NoSuchToken(EventLogError):
    """There is no token with this id."""

    status = HTTPStatus.NOT_FOUND


# Events


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
class SessionOpened:
    """A browser signed in. `digest` is the digest of the secret in its cookie."""

    session: str
    digest: str
    expires_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class SessionClosed:
    """A browser signed out."""

    session: str
    at: datetime


TokenEvent = TokenIssued | TokenUsed | TokenRevoked | SessionOpened | SessionClosed


# State


@attrs.frozen(kw_only=True)
class Session:
    """An open session of a browser."""

    id: str
    digest: str
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

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def session(self, id_: str, now: datetime) -> Session | None:
        """Return an open session."""
        return next((one for one in self.sessions if one.id == id_ and now < one.expires_at), None)


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
            return attrs.evolve(state, revoked_at=event.at, sessions=())
        case SessionOpened():
            opened = Session(id=event.session, digest=event.digest, expires_at=event.expires_at)
            still = [one for one in state.sessions if event.at < one.expires_at]
            return attrs.evolve(state, sessions=(*still[-(MOST_SESSIONS - 1) :], opened))
        case SessionClosed():
            return attrs.evolve(state, sessions=tuple(one for one in state.sessions if one.id != event.session))


# Commands


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
class CloseSession:
    """End a session."""

    session: str
    at: datetime


TokenCommand = IssueToken | UseToken | RevokeToken | OpenSession | CloseSession


def decide(command: TokenCommand, state: Token | None) -> Sequence[TokenEvent]:
    """Return the events of a command. Raises NoSuchToken, TokenRefused."""
    match command:
        case IssueToken():
            if state is not None:
                raise TokenRefused(f"there is a token with the id {command.id}")
            return [TokenIssued(**attrs.asdict(command))]
        case OpenSession():
            if state is not None and not state.is_valid(command.at):
                raise TokenRefused(f"the token {state.name!r} is revoked or expired")
            return [SessionOpened(**attrs.asdict(command))]
    if state is None:
        raise NoSuchToken("there is no such token: `token list` shows the tokens")
    match command:
        case UseToken():
            is_new = state.used_at is None or command.at - state.used_at >= COARSE
            return [TokenUsed(at=command.at)] if is_new and state.is_valid(command.at) else []
        case RevokeToken():
            return [] if state.revoked_at is not None else [TokenRevoked(at=command.at)]
        case CloseSession():
            is_open = any(one.id == command.session for one in state.sessions)
            return [SessionClosed(session=command.session, at=command.at)] if is_open else []


TokenDecider = Decider[Token, TokenCommand, TokenEvent]


def token_decider(category: str) -> TokenDecider:
    """Return the rules of the tokens of a service: `category` is `<service>.token`."""
    return Decider(category, decide, evolve)


def register(registry: Registry, category: str) -> None:
    """Register the events and the state of tokens with the types of a service."""
    for event in (TokenIssued, TokenUsed, TokenRevoked, SessionOpened, SessionClosed):
        registry.event(event.__name__)(event)
    registry.state(category)(Token)
