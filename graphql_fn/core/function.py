"""A function: a schema under a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from graphql import GraphQLSchema

from graphql_fn.core.request import GraphQLRequest


def _no_context(_: GraphQLRequest) -> None:
    return None


@attrs.frozen(kw_only=True)
class Function:
    """A function that is served under a name.

    `root` is the value whose methods resolve the fields of `Query`. `context` makes `info.context` of resolvers for each request:
    connections, loaders, and other objects that must not outlive the request.
    """

    name: str
    schema: GraphQLSchema
    root: Any = None
    context: Callable[[GraphQLRequest], Any] = _no_context
