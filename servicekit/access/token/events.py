"""The events of a token. An event has digests of secrets, and no secret."""

from __future__ import annotations

from datetime import datetime

import attrs


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
