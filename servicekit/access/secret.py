"""The text of tokens and of session cookies: random secrets, and their digests.

A token is `<service>_<id>_<secret><check>`: an id of 12 hexadecimal digits, 43 characters of 256 random bits, and 6 characters of
a checksum, so that a scanner for leaked secrets finds it and no typing error is looked up. A secret of 256 random bits needs no
slow hash: SHA-256 cannot be searched for it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib

import attrs

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
