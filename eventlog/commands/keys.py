"""Idempotency keys: where one took effect, and whether it comes with the same request again."""

from __future__ import annotations

from typing import Protocol

from eventlog.commit import Context
from eventlog.errors import KeyReused


class KeyUse(Protocol):
    """Where an idempotency key took effect."""

    @property
    def fingerprint(self) -> str | None:
        """Digest of the request that it came with."""

    @property
    def subject(self) -> str:
        """Subject of the aggregate that it changed."""

    @property
    def sequence(self) -> int:
        """Sequence of the commit that bears it."""


class Keys(Protocol):
    """Finds the use of an idempotency key: a read model of the same log (`projections.keys.CommandKeys`)."""

    async def find(self, key: str, subject: str, reached: int) -> KeyUse | None:
        """The key's use, looked up when everything up to sequence `reached` is in the read model.

        `subject` is the aggregate that it is asked for.
        """


def check_request(context: Context, fingerprint: str | None) -> None:
    """Raise KeyReused unless the key was first used with this very request."""
    if context.fingerprint != fingerprint:
        raise KeyReused(f"the idempotency key {context.key!r} was used for another request")
