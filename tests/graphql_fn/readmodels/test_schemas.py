"""The schemas of the read models: described throughout, with one form of lists, enums and ids, and only queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    get_named_type,
    is_specified_scalar_type,
    parse,
    print_schema,
    specified_rules,
    validate,
    validate_schema,
)

from graphql_fn.core.hello import SCHEMA as HELLO
from graphql_fn.readmodels.pantry.function import SCHEMA as PANTRY
from graphql_fn.readmodels.tracker.function import SCHEMA as TRACKER
from tests.support import ROOT

SCHEMAS = {"hello": HELLO, "pantry": PANTRY, "tracker": TRACKER}
schemas = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)


def _parts(schema: GraphQLSchema) -> Iterator[tuple[str, str | None]]:
    """Every type, field, argument and value, with its description."""
    for name, type_ in schema.type_map.items():
        if name.startswith("__") or is_specified_scalar_type(type_):
            continue
        yield name, type_.description
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for field, definition in type_.fields.items():
                yield f"{name}.{field}", definition.description
                for argument, given in definition.args.items():
                    yield f"{name}.{field}({argument})", given.description
        elif isinstance(type_, GraphQLInputObjectType):
            for field, member in type_.fields.items():
                yield f"{name}.{field}", member.description
        elif isinstance(type_, GraphQLEnumType):
            for value, meaning in type_.values.items():
                yield f"{name}.{value}", meaning.description


@schemas
def test_every_type_field_argument_and_value_is_described(schema: GraphQLSchema) -> None:
    parts = dict(_parts(schema))
    assert {name for name, text in parts.items() if not (text or "").strip()} == set()
    assert {name: text for name, text in parts.items() if text and not (text[0].isupper() and text.endswith("."))} == {}


@schemas
def test_a_schema_is_valid_and_changes_nothing(schema: GraphQLSchema) -> None:
    assert validate_schema(schema) == []
    assert schema.mutation_type is None


@schemas
def test_values_of_enums_are_in_upper_case(schema: GraphQLSchema) -> None:
    enums = [
        type_ for type_ in schema.type_map.values() if isinstance(type_, GraphQLEnumType) and not type_.name.startswith("__")
    ]
    assert {name for type_ in enums for name in type_.values if name != name.upper()} == set()


@schemas
def test_no_member_is_deprecated(schema: GraphQLSchema) -> None:
    """Before the first release there is no other name that clients could have."""
    assert "@deprecated" not in print_schema(schema)


@schemas
def test_lists_that_can_grow_have_one_form(schema: GraphQLSchema) -> None:
    """Relay's: edges, cursors, page, all four arguments, and the length of the list."""
    connections = [type_ for name, type_ in schema.type_map.items() if name.endswith("Connection")]
    for type_ in connections:
        assert isinstance(type_, GraphQLObjectType)
        assert set(type_.fields) == {"edges", "nodes", "pageInfo", "totalCount"}
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType):
            for field in type_.fields.values():
                if get_named_type(field.type) in connections:
                    assert {"first", "after", "last", "before"} <= set(field.args)


@schemas
def test_lists_without_a_size_are_not_inside_of_themselves(schema: GraphQLSchema) -> None:
    """The cost of a query counts the items of such a list once for all: nested, they would be many more than that."""
    types = {name: type_ for name, type_ in schema.type_map.items() if isinstance(type_, GraphQLObjectType)}
    below = {
        name: {get_named_type(field.type).name for field in type_.fields.values()} & set(types) for name, type_ in types.items()
    }
    for name, type_ in types.items():
        if name.startswith("__") or name.endswith(("Connection", "Edge")):
            continue
        for place, field in type_.fields.items():
            item = get_named_type(field.type).name
            if "[" in str(field.type) and item in types and "first" not in field.args:
                reached: set[str] = set()
                left = {item}
                while left:
                    reached |= left
                    left = {one for found in left for one in below[found]} - reached
                assert name not in reached, f"{name}.{place}"


@schemas
def test_ids_belong_to_nodes(schema: GraphQLSchema) -> None:
    """A client that normalises by type and id, and one that refetches by id, find each object."""
    for name, type_ in schema.type_map.items():
        if isinstance(type_, GraphQLObjectType) and "id" in type_.fields:
            assert [interface.name for interface in type_.interfaces] == ["Node"], name
    if schema is not HELLO:
        assert schema.query_type is not None
        assert "id" in schema.query_type.fields["node"].args


def test_times_name_their_specification_and_decimals_are_described() -> None:
    for schema in (PANTRY, TRACKER):
        times = schema.type_map["DateTime"]
        assert isinstance(times, GraphQLScalarType)
        assert times.specified_by_url == "https://scalars.graphql.org/andimarek/date-time.html"
    quantity = PANTRY.type_map["Product"]
    assert isinstance(quantity, GraphQLObjectType)
    assert str(quantity.fields["quantity"].type) == "Decimal!"


@pytest.mark.parametrize("name", ["graphql", "pantry", "tracker"])
def test_the_example_of_the_query_page_is_valid(name: str) -> None:
    source = (ROOT / "ui" / "graphql" / "tabs.ts").read_text(encoding="utf-8")
    [text] = re.findall(rf'^  {name}:\s+("(?:[^"\\]|\\.)*"),$', source, re.MULTILINE)
    schema = SCHEMAS["hello" if name == "graphql" else name]
    assert validate(schema, parse(json.loads(text)), specified_rules) == []


ADDRESSES = {"function/pantry": PANTRY, "function/tracker": TRACKER, '"$P"': PANTRY, '"$T"': TRACKER}


@pytest.mark.parametrize("document", ["README.md", "docs/guides/graphql.md"])
def test_each_query_of_a_document_is_valid(document: str) -> None:
    addresses = "|".join(map(re.escape, ADDRESSES))
    queries = re.findall(rf"({addresses}) .*-d '([^']*)'", (ROOT / document).read_text(encoding="utf-8"))
    assert queries
    for address, query in queries:
        assert validate(ADDRESSES[address], parse(query), specified_rules) == [], query
