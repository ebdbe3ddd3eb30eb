"""The function `hello`: one type with one field, which returns a greeting."""

from __future__ import annotations

from typing import Any

from graphql import GraphQLField, GraphQLObjectType, GraphQLResolveInfo, GraphQLSchema, GraphQLString

from graphql_fn.core.function import Function

GREETING = "Hello world! from OpenFaaS"


def _hello(_root: Any, _info: GraphQLResolveInfo[None]) -> str:
    return GREETING


SCHEMA = GraphQLSchema(
    GraphQLObjectType(
        "Query",
        {"hello": GraphQLField(GraphQLString, resolve=_hello, description="A greeting, always the same.")},
        description="The queries of the function.",
    )
)

HELLO = Function(name="graphql", schema=SCHEMA)
"""The function, under the name that it is deployed with."""
