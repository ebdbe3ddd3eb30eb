"""The state of a token: its sessions, its pairing codes, and the effect of each event."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import attrs

from servicekit.access.token.events import (
    PairingOffered,
    SessionClosed,
    SessionOpened,
    TokenEvent,
    TokenIssued,
    TokenRevoked,
    TokenUsed,
)

T = TypeVar("T", bound="Session | PairingCode")

SHARED = "auth_token"
"""The id of the aggregate with the sessions that were opened with the token of the setting `auth_token`."""
MOST_SESSIONS = 20
"""Open sessions of a token; a further one ends the oldest with at most its rights."""
MOST_PAIRINGS = 5
"""Unused pairing codes of a token; a further one withdraws the oldest with at most its rights."""


@attrs.frozen(kw_only=True)
class Session:
    """An open session of a browser. `name` and `scope` as in `SessionOpened`; `opened_at` is None in old states."""

    id: str
    digest: str
    expires_at: datetime
    name: str = ""
    scope: str = ""
    opened_at: datetime | None = None


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
