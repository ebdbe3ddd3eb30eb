"""A schema in the schema language, and the functions that resolve its fields."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from importlib.resources import files
from operator import attrgetter
from typing import Any, cast

from graphql import (
    GraphQLError,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    StringValueNode,
    ValueNode,
    build_schema,
)

from graphql_fn.core.running.planning import SourceResolver
from graphql_fn.core.subscribing import SubscriptionEvent
from httpkit import parse_time

Resolver = Callable[..., Any]
Source = Callable[..., AsyncIterator[SubscriptionEvent]]

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def bound(
    file: str,
    resolvers: Mapping[str, Resolver],
    sources: Mapping[str, Source] | None = None,
    *,
    lists: Mapping[str, str],
    nodes: Mapping[type, str],
) -> GraphQLSchema:
    """The schema in a file of this package, with a resolver for each field that is named (`Type.field`).

    Any other field is the attribute of that name; resolvers get their arguments under the names that Python has for them.
    `sources` are the events of the fields of `Subscription`, each of which resolves to the value of its event. `lists` are the
    types of items by the names of their connections, and `nodes` the types that are a `Node`, by the class of their values.
    """
    texts = [_read(file), _read("common.graphql"), *(_CONNECTION.format(name=name, item=item) for name, item in lists.items())]
    schema = build_schema("\n".join(texts))
    left = dict(resolvers)
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
            for name, field in type_.fields.items():
                _bind(field, name, left.pop(f"{type_.name}.{name}", None))
        elif isinstance(type_, GraphQLInputObjectType):
            for name, member in type_.fields.items():
                member.out_name = _snake(name)
        elif isinstance(type_, GraphQLInterfaceType):
            type_.resolve_type = lambda value, _info, _type: nodes[type(value)]
    if left:
        raise LookupError(f"{file} has no {', '.join(left)}")
    for name, source in (sources or {}).items():
        assert schema.subscription_type is not None
        field = schema.subscription_type.fields[name]
        field.subscribe, field.resolve = source, _itself
    times = schema.type_map.get("DateTime")
    if isinstance(times, GraphQLScalarType):
        # The methods of the scalar are its own attributes, to be set (graphql-core, GraphQLScalarType).
        methods = cast("Any", times)
        methods.coerce_input_value, methods.coerce_input_literal = _time, _time_literal
    return schema


def _read(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


_CONNECTION = """
"A page of a list of {item} objects."
type {name}Connection {{
  "The items with their cursors."
  edges: [{name}Edge!]!
  "The items alone."
  nodes: [{item}!]!
  "Information about the page."
  pageInfo: PageInfo!
  "The number of items in the whole list."
  totalCount: Int!
}}

"An item of a list of {item} objects."
type {name}Edge {{
  "The position of the item in the list."
  cursor: String!
  "The item."
  node: {item}!
}}
"""
_ARGUMENTS = {
    "first": "The size of the page, from the beginning of the list; 20 by default, 1000 at most.",
    "after": "Only items after this cursor.",
    "last": "The size of the page, from the end of the list.",
    "before": "Only items before this cursor.",
}
"""Descriptions of the arguments that every list has."""


def _bind(field: GraphQLField, name: str, resolver: Resolver | None) -> None:
    field.resolve = resolver or attribute(_snake(name))
    for argument, given in field.args.items():
        given.out_name = _snake(argument)
        given.description = given.description or _ARGUMENTS.get(argument)


def attribute(name: str) -> Resolver:
    """Resolves to an attribute of the object."""
    return SourceResolver(attrgetter(name))


def found_by(query: Callable[..., Any]) -> Resolver:
    """Resolves to the object that a query of many keys finds for the one argument of the field."""

    def resolve(_: Any, info: Any, **given: Any) -> Any:
        [key] = given.values()
        return info.context.load(query, key)

    return resolve


def loaded(query: Callable[..., Any], name: str, *arguments: Any) -> Resolver:
    """Resolves to the object that a query of many keys finds for an attribute; None if the attribute is None."""
    key_of = attrgetter(name)

    def resolve(source: Any, info: Any) -> Any:
        key = key_of(source)
        return None if key is None else info.context.load(query, key, *arguments)

    return resolve


def _itself(source: Any, _info: Any, **_arguments: Any) -> Any:
    return source


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


def _time(value: Any, node: ValueNode | None = None) -> datetime:
    """A time with its offset from UTC (RFC 3339). Raises GraphQLError, which names the place of `node`."""
    try:
        return parse_time(value)
    except ValueError as error:
        raise GraphQLError(f"DateTime {error}", node) from None


def _time_literal(node: ValueNode) -> datetime:
    return _time(node.value if isinstance(node, StringValueNode) else None, node)
