"""Idempotency keys: the commit of a key's effect, and whether a repetition has the same request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from eventlog.commit import Commit, Context
from eventlog.errors import KeyReused, Unavailable


@attrs.frozen
class KeyUse:
    """The use of an idempotency key: fingerprint of the request, aggregate's subject, sequence of the commit that bears it."""

    key: str
    fingerprint: str | None
    subject: str
    sequence: int


class Keys(Protocol):
    """Finds the uses of idempotency keys: a read model of the same log (`projections.keys.CommandKeys`)."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        """The uses of keys, looked up when everything up to sequence `reached` is in the read model. A new key is left out.

        An error is in the place of a use that cannot be known. `subject` is the aggregate that they are asked for. Raises
        Unavailable if none can be known.
        """


def uses_in(commit: Commit) -> Sequence[KeyUse]:
    """The keys that a commit bears. Raises UndecodableCommit."""
    return [
        KeyUse(event.key, event.fingerprint, commit.subject, commit.sequence)
        for event in commit.body.events
        if event.key is not None
    ]


def use_in(commit: Commit, key: str) -> KeyUse | None:
    """The use of a key in one commit; None if the commit does not bear it. Raises UndecodableCommit."""
    return next((use for use in uses_in(commit) if use.key == key), None)


def check_request(context: Context, fingerprint: str | None) -> None:
    """Raise KeyReused unless the key was first used with this very request."""
    if context.fingerprint != fingerprint:
        raise KeyReused(f"the idempotency key {context.key!r} was used for another request")
