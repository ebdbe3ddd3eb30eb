"""Idempotency keys: the commit of a key's effect, and whether a repetition has the same request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from eventlog.commit import Commit, Context
from eventlog.errors import KeyReused, Unavailable


class KeyUse(Protocol):
    """The place of a key's effect in the log."""

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
    """Finds the uses of idempotency keys: a read model of the same log (`projections.keys.CommandKeys`)."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        """The uses of keys, looked up when everything up to sequence `reached` is in the read model. A new key is left out.

        An error is in the place of a use that cannot be known. `subject` is the aggregate that they are asked for. Raises
        Unavailable if none can be known.
        """


@attrs.frozen
class UseInLog:
    """The use of a key as its commit says it."""

    fingerprint: str | None
    subject: str
    sequence: int


def use_in(commit: Commit, key: str) -> KeyUse | None:
    """The use of a key in one commit; None if the commit does not bear it. Raises UndecodableCommit."""
    for event in commit.body.events:
        if event.key == key:
            return UseInLog(event.fingerprint, commit.subject, commit.sequence)
    return None


def check_request(context: Context, fingerprint: str | None) -> None:
    """Raise KeyReused unless the key was first used with this very request."""
    if context.fingerprint != fingerprint:
        raise KeyReused(f"the idempotency key {context.key!r} was used for another request")
