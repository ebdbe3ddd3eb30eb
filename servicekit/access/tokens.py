"""The domain of personal tokens and sessions, their texts and how they are issued, and the projection that has them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, TypeVar

import attrs
import msgspec

from eventlog import Commit, Context, Decider, Registry
from eventlog.commands import Commands
from eventlog.errors import EventLogError
from eventlog.jetstream.log import JetStreamLog
from httpkit.errors import HttpkitError
from httpkit.routes import Scope
from projections.model import Change, Column, Projection, Put, ReadModel, Table
from projections.store import Row


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
        return _find(self.sessions, id_, now)

    def pairing(self, id_: str, now: datetime) -> PairingCode | None:
        """Return a pairing code that can be used."""
        return _find(self.pairings, id_, now)


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


def _find(entries: tuple[T, ...], id_: str, now: datetime) -> T | None:
    return next((each for each in entries if each.id == id_ and now < each.expires_at), None)


def _with(entries: tuple[T, ...], new: T, at: datetime, most: int) -> tuple[T, ...]:
    """Add one. Expired ones are dropped, and the oldest ones if there are too many: a commit may have no event of their end."""
    still = [each for each in entries if at < each.expires_at]
    return (*still[-(most - 1) :], new)


def _without(entries: tuple[T, ...], id_: str) -> tuple[T, ...]:
    return tuple(each for each in entries if each.id != id_)


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
class ClaimPairing:
    """Open the session of a pairing code, which is used up then. `digest` is the digest of the secret in the cookie."""

    pairing: str
    digest: str
    expires_at: datetime
    at: datetime


TokenCommand = TokenEvent | ClaimPairing
"""A command is the event that is to happen, or the claim of a pairing code, which the state completes."""


def decide(command: TokenCommand, state: Token | None) -> Sequence[TokenEvent]:
    """Return the events of a command. Raises NoSuchToken, TokenRefused, TokenFull."""
    match command:
        case TokenIssued():
            if state is not None:
                raise TokenRefused(f"there is a token with the id {command.id}")
            return [command]
        case SessionOpened() | PairingOffered():
            _check_valid(state, command.at)
            return [*_ended_for(command, state), command]
    if state is None:
        raise NoSuchToken("there is no such token: `token list` shows the tokens")
    match command:
        case TokenUsed():
            is_new = state.used_at is None or command.at - state.used_at >= COARSE
            return [command] if is_new and state.is_valid(command.at) else []
        case TokenRevoked():
            return [] if state.revoked_at is not None else [command]
        case SessionClosed():
            is_there = command.session in {each.id for each in state.sessions} | {each.id for each in state.pairings}
            return [command] if is_there else []
        case ClaimPairing():
            claimed = _claimed(command, state)
            return [*_ended_for(claimed, state), claimed]


def _check_valid(state: Token | None, at: datetime) -> None:
    if state is not None and not state.is_valid(at):
        raise TokenRefused(f"the token {state.name!r} is revoked or expired")


def _ended_for(new: SessionOpened | PairingOffered, state: Token | None) -> Sequence[SessionClosed]:
    """Return the end of the oldest one with at most the rights of a new one, if the new one has no room. Raises TokenFull."""
    if state is None:
        return []
    sessions = state.sessions, MOST_SESSIONS, "open sessions"
    entries, most, kind = sessions if isinstance(new, SessionOpened) else (state.pairings, MOST_PAIRINGS, "unused codes")
    still = [each for each in entries if new.at < each.expires_at]
    if len(still) < most:
        return []
    scope = Scope(new.scope or state.scope)
    for each in still:
        if scope.covers(Scope(each.scope or state.scope)):
            return [SessionClosed(session=each.id, at=new.at)]
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


TOKENS = Table(
    "tokens",
    (
        Column("id"),
        Column("name"),
        Column("scope"),
        Column("digest"),
        Column("created_at", "timestamp"),
        Column("expires_at", "timestamp"),
        Column("used_at", "timestamp"),
        Column("revoked_at", "timestamp"),
        Column("sessions", "json"),
        Column("sequence", "integer", given=True),
    ),
    key=("id",),
)
FIND = "SELECT id, name, scope, digest, created_at, expires_at, used_at, revoked_at, sessions FROM tokens WHERE id = $1"
"""The query of one token, by its id."""


@attrs.frozen
class TokenModel:
    """The tokens of a service: its rules, and the service's name, with which its tokens begin."""

    service: str
    decider: TokenDecider

    @classmethod
    def of(cls, service: str) -> TokenModel:
        """Return the tokens of a service; their category is `<service>.token`."""
        return cls(service, token_decider(f"{service}.token"))


def with_tokens(model: ReadModel, tokens: TokenModel) -> ReadModel:
    """Return the read model with the table of tokens; their types are registered with its registry.

    A model with a package of migrations needs a migration that makes the table.
    """
    category = tokens.decider.category
    register(model.registry, category)
    projection = Projection("tokens", 1, (TOKENS,), {category: _rows}, latest=frozenset({category}))
    fold: Callable[[Iterable[Any], Any], Any] = tokens.decider.fold
    return attrs.evolve(model, projections=(*model.projections, projection), folds={**model.folds, category: fold})


def token_of(row: Row) -> Token:
    """Return the token of a row."""
    return Token(
        id=row["id"],
        name=row["name"],
        scope=row["scope"],
        digest=row["digest"],
        created_at=datetime.fromisoformat(row["created_at"]),
        expires_at=_time(row["expires_at"]),
        used_at=_time(row["used_at"]),
        revoked_at=_time(row["revoked_at"]),
        sessions=msgspec.json.decode(row["sessions"], type=tuple[Session, ...]),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _rows(commit: Commit) -> Iterable[Change]:
    return (Put(TOKENS, TOKENS.row(commit.state, sequence=commit.sequence)),)


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BYTES, _LENGTH, _CHECK = 32, 43, 6
_TOKEN = re.compile(r"([a-z][a-z0-9]{0,31})_([0-9a-f]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})")
_COOKIE = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9a-f]{12})\.([0-9A-Za-z]{43})")


@attrs.frozen
class TokenText:
    """The parts of a token. `service` is the service that issued it."""

    service: str
    id: str
    secret: str = attrs.field(repr=False)

    @classmethod
    def make(cls, service: str) -> TokenText:
        """Make a new token."""
        return cls(service, new_id(), new_secret())

    @classmethod
    def parse(cls, text: str) -> TokenText | None:
        """Return the parts of a token; None for a text of another form, or with a wrong checksum."""
        found = _TOKEN.fullmatch(text)
        if found is None:
            return None
        token = cls(found[1], found[2], found[3])
        return token if token._check() == found[4] else None

    def reveal(self) -> str:
        """Return the token as its holder writes it. It is for no log."""
        return f"{self._head()}{self._check()}"

    @property
    def digest(self) -> str:
        """The digest that is stored in its place."""
        return digest(self.secret)

    def _head(self) -> str:
        return f"{self.service}_{self.id}_{self.secret}"

    def _check(self) -> str:
        return _base62(zlib.crc32(self._head().encode()), _CHECK)


@attrs.frozen
class SessionText:
    """The parts of a session's cookie or of a pairing code: the token that it was opened with, its id, its secret."""

    token: str
    id: str
    secret: str = attrs.field(repr=False)

    @classmethod
    def make(cls, token: str) -> SessionText:
        """Make the cookie of a new session."""
        return cls(token, new_id(), new_secret())

    @classmethod
    def parse(cls, text: str) -> SessionText | None:
        """Return the parts of a cookie; None for a text of another form."""
        found = _COOKIE.fullmatch(text)
        return None if found is None else cls(found[1], found[2], found[3])

    def reveal(self) -> str:
        """Return the value of the cookie. It is for no log."""
        return f"{self.token}.{self.id}.{self.secret}"


def new_id() -> str:
    """Return a random id: 12 hexadecimal digits."""
    return secrets.token_hex(6)


def new_secret() -> str:
    """Return 256 random bits as 43 letters and digits."""
    return _base62(int.from_bytes(secrets.token_bytes(_BYTES)), _LENGTH)


def digest(secret: str, key: str = "") -> str:
    """Return the SHA-256 of a secret in hexadecimal; with a `key` the HMAC, which another key makes invalid."""
    if key:
        return hmac.new(key.encode(), secret.encode(), hashlib.sha256).hexdigest()
    return hashlib.sha256(secret.encode()).hexdigest()


def _base62(number: int, length: int) -> str:
    found = ""
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        found = _DIGITS[digit] + found
    return found


NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
LONGEST = timedelta(days=366)
"""The longest time for which a token is valid."""


class TokenInvalid(HttpkitError):
    """A token cannot have this name or this time."""

    status = HTTPStatus.BAD_REQUEST


@attrs.frozen
class NewToken:
    """A token that was issued, and its text, which is shown once."""

    token: Token
    text: str = attrs.field(repr=False)


def _now() -> datetime:
    return datetime.now(UTC)


class TokenOffice:
    """Issues and revokes the tokens of a service on its log. `actor` is the name of the operator in events."""

    def __init__(self, tokens: TokenModel, log: JetStreamLog, *, actor: str) -> None:
        self._tokens = tokens
        self._log = log
        self._commands = Commands(log)
        self._context = Context(actor=actor)

    async def issue(self, name: str, scope: Scope, valid_for: timedelta) -> NewToken:
        """Issue a token. Raises TokenInvalid, and the errors of `Commands.execute`."""
        if not re.fullmatch(NAME, name):
            raise TokenInvalid(f"{name!r} cannot be the name of a token: 1 to 64 letters, digits, dots, @, _ and - are possible")
        if not timedelta(0) < valid_for <= LONGEST:
            raise TokenInvalid(f"a token is valid for at most {LONGEST.days} days")
        made, at = TokenText.make(self._tokens.service), _now()
        command = TokenIssued(id=made.id, name=name, scope=scope.value, digest=made.digest, expires_at=at + valid_for, at=at)
        outcome = await self._commands.execute(self._tokens.decider, made.id, command, self._context)
        return NewToken(outcome.state, made.reveal())

    async def revoke(self, id_: str) -> Token:
        """Revoke a token. Raises NoSuchToken, TokenInvalid, and the errors of `Commands.execute`."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id_):
            raise TokenInvalid(f"{id_!r} is not the id of a token: `token list` shows the ids")
        if id_ == SHARED:
            raise TokenInvalid(f"{SHARED} is a setting of the service: change it there, which also ends its sessions")
        outcome = await self._commands.execute(self._tokens.decider, id_, TokenRevoked(at=_now()), self._context)
        return outcome.state

    async def tokens(self) -> Sequence[Token]:
        """Return all tokens, the newest first. Raises Unavailable."""
        found = await all_tokens(self._tokens, self._log)
        return sorted(found, key=lambda token: token.created_at, reverse=True)


async def all_tokens(tokens: TokenModel, log: JetStreamLog) -> Sequence[Token]:
    """Return every token of a service, valid or not. Raises Unavailable.

    The setting `auth_token` is left out: the log has its sessions, and does not have whether it is set.
    """
    decider = tokens.decider
    ids = [id_ for id_ in await log.ids(decider.category) if id_ != SHARED]
    commits = [await log.last(decider.aggregate(id_), consistent=True) for id_ in ids]
    return [commit.state for commit in commits if commit is not None]


async def has_tokens(tokens: TokenModel, log: JetStreamLog) -> bool:
    """Return whether a token is valid now. Raises Unavailable."""
    now = _now()
    return any(token.is_valid(now) for token in await all_tokens(tokens, log))
