"""Globally unique ids, and fields that the schemas of all read models have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from graphql import GraphQLResolveInfo

from graphql_fn.readmodels.asking import Asking


def node_id(kind: str, *parts: str) -> str:
    """The id of an object whose key is not globally unique by itself: `Product:4006381333931`."""
    return ":".join((kind, *parts))


def split_id(text: str, *, parts: int = 1) -> Sequence[str] | None:
    """The key in such an id, in this number of parts; None for another id. The last part may have colons."""
    found = text.split(":", parts)[1:]
    return found if len(found) == parts else None


@attrs.frozen
class ProjectionState:
    """A projection and its checkpoint."""

    name: str
    version: int
    sequence: int
    applied: int


async def projections(_: Any, info: GraphQLResolveInfo[Asking[Any]]) -> Sequence[ProjectionState]:
    """The projections that fill the tables, by name."""
    found = (await info.context.reading()).checkpoints
    return [ProjectionState(name, at.version, at.sequence, at.applied) for name, at in sorted(found.items())]
