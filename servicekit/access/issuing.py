"""Issue, list and revoke tokens: by commands on the log itself, so that the first token needs no service that runs."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import attrs

from eventlog import Context
from eventlog.commands import Commands
from eventlog.jetstream.log import JetStreamLog
from httpkit.errors import HttpkitError
from httpkit.server.callers import Scope
from servicekit.access.model import TokenModel
from servicekit.access.tokens import SHARED, IssueToken, RevokeToken, Token

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
        command = IssueToken(id=made.id, name=name, scope=scope.value, digest=made.digest, expires_at=at + valid_for, at=at)
        outcome = await self._commands.execute(self._tokens.decider, made.id, command, self._context)
        return NewToken(outcome.state, made.reveal())

    async def revoke(self, id_: str) -> Token:
        """Revoke a token. Raises NoSuchToken, TokenInvalid, and the errors of `Commands.execute`."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id_):
            raise TokenInvalid(f"{id_!r} is not the id of a token: `token list` shows the ids")
        if id_ == SHARED:
            raise TokenInvalid(f"{SHARED} is a setting of the service: change it there, which also ends its sessions")
        outcome = await self._commands.execute(self._tokens.decider, id_, RevokeToken(at=_now()), self._context)
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
