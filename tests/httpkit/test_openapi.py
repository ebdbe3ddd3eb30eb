"""The document is a sound OpenAPI 3.1 document and equals the table of routes. The answers of the service keep to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
from aiohttp import web
from cattrs.errors import BaseValidationError
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.messages.fields import JSON, PRINTABLE, Rule, member, message
from httpkit.messages.openapi import Schemas
from httpkit.monitoring import Health
from httpkit.routes import Call, Nothing, Route
from httpkit.server.guard import Guard, allowed_hosts
from tests.httpkit.shop import TABLE, Running, open_shop


async def document_of(shop: Running) -> dict[str, Any]:
    async with shop.http.get("/api/openapi.json", headers={"Authorization": "Bearer x"}) as response:
        found: dict[str, Any] = await response.json()
    return found


@pytest.mark.real
async def test_the_document_is_sound_and_has_each_operation_of_the_table_and_no_other() -> None:
    async with open_shop() as shop:
        document = await document_of(shop)
    OpenAPIV31SpecValidator(document).validate()
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in TABLE}
    assert document["info"] == {"title": "Shop", "version": "1"}


@pytest.mark.real
async def test_parameters_and_members_are_described_with_their_limits() -> None:
    async with open_shop() as shop:
        document = await document_of(shop)
    listing = {one["name"]: one for one in document["paths"]["/things"]["get"]["parameters"]}
    assert listing["limit"] == {
        "name": "limit",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 2},
    }
    assert listing["colour"]["schema"] == {"type": "string", "enum": ["red", "blue"]}
    assert listing["min_seq"]["schema"]["type"] == "integer"
    make = document["paths"]["/things"]["post"]
    schema = make["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["name", "amount"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["name"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 20,
        "pattern": PRINTABLE,
        "description": "What it is called.",
        "examples": ["nail"],
    }
    assert schema["properties"]["amount"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 10**6, "multipleOf": 0.001}
    assert schema["properties"]["parts"]["items"] == {"$ref": "#/components/schemas/Part"}
    assert "Idempotency-Key" in {one["name"] for one in make["parameters"]}
    answer = document["components"]["schemas"]["Thing"]
    assert answer["required"] == ["id", "name", "StatusReason", "made_at"], "what may be left out is not required"
    assert "pattern" not in answer["properties"]["name"], "what is taken is limited, not what is answered"
    body = document["paths"]["/things/{id}"]["patch"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["additionalProperties"] is False, "unknown members are refused"


STATUSES = {
    ("get", "/things/{id}"): {"200", "304", "400", "404", "409", "500", "503"},
    ("delete", "/things/{id}"): {"204", "400", "403", "404", "500", "503"},
    ("post", "/things"): {"201", "400", "403", "408", "413", "415", "422", "500", "503"},
    ("post", "/do/{what}"): {"200", "400", "403", "409", "422", "500", "503"},
    ("get", "/events"): {"200", "400", "500", "503"},
}


@pytest.mark.real
@pytest.mark.parametrize("operation", STATUSES)
async def test_every_status_that_can_occur_is_described(operation: tuple[str, str]) -> None:
    async with open_shop() as shop:
        responses = (await document_of(shop))["paths"][operation[1]][operation[0]]["responses"]
    assert responses.keys() == STATUSES[operation]
    problem = responses["500"]["content"]["application/problem+json"]["schema"]
    assert problem == {"$ref": "#/components/schemas/Problem"}


@pytest.mark.real
async def test_what_the_guards_answer_is_described_where_they_are_on() -> None:
    guard = Guard(token="x", hosts=allowed_hosts("127.0.0.1"))
    async with open_shop(guard=guard) as shop:
        document = await document_of(shop)
    OpenAPIV31SpecValidator(document).validate()
    assert {"401", "421"} <= document["paths"]["/things"]["get"]["responses"].keys()
    assert document["security"] == [{"token": []}, {"session": []}]
    assert document["paths"]["/api/session"]["delete"]["security"] == []


@pytest.mark.real
async def test_a_stream_is_described_with_its_events() -> None:
    async with open_shop() as shop:
        document = await document_of(shop)
    stream = document["paths"]["/events"]["get"]
    schema = stream["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert schema["x-events"] == {"thing": {"$ref": "#/components/schemas/Thing"}}
    assert {"Last-Event-ID", "last_event_id"} == {one["name"] for one in stream["parameters"]}


@pytest.mark.real
async def test_deprecated_operations_and_other_media_are_marked() -> None:
    async with open_shop() as shop:
        document = await document_of(shop)
    assert document["paths"]["/do/{what}"]["post"]["deprecated"] is True
    assert list(document["paths"]["/upload"]["post"]["requestBody"]["content"]) == ["text/csv"]


ANSWERS = [
    ("GET", "/things", None, "/things"),
    ("GET", "/things/t1", None, "/things/{id}"),
    ("GET", "/things/zz", None, "/things/{id}"),
    ("POST", "/things", {"name": "a", "amount": 1}, "/things"),
    ("POST", "/things", {"name": "", "amount": 0, "parts": [1]}, "/things"),
    ("POST", "/do/conflict", None, "/do/{what}"),
    ("POST", "/do/boom", None, "/do/{what}"),
    ("PATCH", "/things/t1", {"notes": None}, "/things/{id}"),
]


@pytest.mark.real
@pytest.mark.parametrize(("method", "path", "body", "template"), ANSWERS)
async def test_answers_keep_to_the_document(method: str, path: str, body: Any, template: str) -> None:
    async with open_shop() as shop:
        document = await document_of(shop)
        async with shop.http.request(method, path, json=body) as response:
            content = await response.json(content_type=None)
    described = document["paths"][template][method.lower()]["responses"][str(response.status)]
    schema = described["content"][response.content_type]["schema"]
    OAS31Validator(schema | {"components": document["components"]}).validate(content)


@message
class Thing:
    """Another class of that name."""

    other: int = member()


async def other(_: Nothing, __: Call[Any]) -> Thing:
    return Thing(other=1)


async def untyped(_: Nothing, __: Call[Any]) -> set[int]:
    return {1}


async def no_class(_: int, __: Call[Any]) -> None: ...


def build(*table: Route[Any]) -> web.Application:
    return build_application([*TABLE, *table], None, Edge(title="x", version="1"), health=Health({}))


def test_a_table_that_cannot_be_described_is_refused_when_it_is_built() -> None:
    with pytest.raises(ValueError, match="two classes are called Thing"):
        build(Route("GET", "/other", other, summary=""))
    with pytest.raises(TypeError, match="no JSON schema for"):
        build(Route("GET", "/other", untyped, summary=""))
    with pytest.raises(TypeError, match="is not an attrs class"):
        build(Route("GET", "/other", no_class, summary=""))


@attrs.frozen
class Plain:
    """A plain attrs class."""

    count: int
    tags: dict[str, list[str]]


async def plain(_: Nothing, __: Call[Any]) -> Plain:
    return Plain(1, {})


@message
class Limited:
    """Members with members, each with its limits."""

    ids: Sequence[str] | None = member(default=None, max_length=2)
    counts: Sequence[int] | None = member(default=None, items=Rule(ge=1))
    lines: Sequence[str] = member(default=(), items=Rule(max_length=3, multiline=True))
    words: Mapping[str, str] | None = member(default=None, max_length=1, items=Rule(max_length=3))
    note: str | None = member(default=None, max_length=3)


@pytest.mark.parametrize(
    ("body", "is_sound"),
    [
        ({"ids": None, "counts": None, "words": None, "note": None}, True),
        ({"ids": ["a", "b"]}, True),
        ({"ids": ["a", "b", "c"]}, False),
        ({"ids": ["\x80"]}, False),
        ({"ids": ["a\nb"]}, False),
        ({"counts": [1]}, True),
        ({"counts": [0]}, False),
        ({"lines": ["a\nb"]}, True),
        ({"lines": ["a\x00"]}, False),
        ({"lines": ["abcd"]}, False),
        ({"words": {"a": "b"}}, True),
        ({"words": {"a": "b", "b": "c"}}, False),
        ({"words": {"a": "\x07"}}, False),
        ({"words": {"\x07": "a"}}, False),
        ({"words": {"a": "bcde"}}, False),
        ({"note": "abcd"}, False),
        ({"note": "\x07"}, False),
    ],
)
def test_the_limits_inside_of_lists_and_objects_are_described_as_they_are_checked(body: dict[str, Any], is_sound: bool) -> None:
    schema = Schemas().object(Limited, "request")
    assert OAS31Validator(schema).is_valid(body) is is_sound
    if is_sound:
        JSON.structure(body, Limited)
    else:
        with pytest.raises(BaseValidationError):
            JSON.structure(body, Limited)


def test_a_plain_attrs_class_needs_no_words_of_the_edge_to_be_an_answer() -> None:
    assert build(Route("GET", "/plain", plain, summary="")) is not None
