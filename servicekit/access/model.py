"""The read model of tokens: one table, which any read model gets by `with_tokens`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import attrs
import msgspec

from eventlog import Commit
from projections.model import Change, Column, Projection, Put, ReadModel, Table
from projections.store import Row
from servicekit.access.tokens import Session, Token, TokenDecider, register, token_decider

TOKENS = Table(
    "tokens",
    (
        Column("id"),
        Column("name", fixed=True),
        Column("scope", fixed=True),
        Column("digest", fixed=True),
        Column("created_at", "timestamp", fixed=True),
        Column("expires_at", "timestamp", fixed=True),
        Column("used_at", "timestamp"),
        Column("revoked_at", "timestamp"),
        Column("sessions", "json"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)
FIND = "SELECT id, name, scope, digest, created_at, expires_at, used_at, revoked_at, sessions FROM tokens WHERE id = $1"
"""The query of one token, by its id."""
_encode = msgspec.json.Encoder().encode


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
    state: Token = commit.state
    row = (
        state.id,
        state.name,
        state.scope,
        state.digest,
        state.created_at,
        state.expires_at,
        state.used_at,
        state.revoked_at,
        _encode(state.sessions).decode(),
        commit.sequence,
    )
    return (Put(TOKENS, row),)
