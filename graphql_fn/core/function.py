"""A function: a schema under a name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
from graphql import GraphQLSchema

from graphql_fn.core.preparing.cost import Scans
from graphql_fn.core.request import GraphQLRequest


def _no_context(_: GraphQLRequest) -> None:
    return None


async def _no_rows() -> Mapping[str, int]:
    return {}


@attrs.frozen(kw_only=True)
class Function:
    """A function that is served under a name.

    `root` is the value whose methods resolve the fields of `Query`. `context` makes `info.context` of resolvers for each request:
    connections, loaders, and other objects that must not outlive the request.

    `scans` names the tables of which a field (`Type.field`) reads more rows than its result has, and `rows` gives about how many
    rows these tables have: both are for the cost of a query.
    """

    name: str
    schema: GraphQLSchema
    root: Any = None
    context: Callable[[GraphQLRequest], Any] = _no_context
    scans: Scans = attrs.field(factory=dict)
    rows: Callable[[], Awaitable[Mapping[str, int]]] = _no_rows
