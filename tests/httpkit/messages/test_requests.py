"""Requests are bound to typed classes. Invalid ones are refused, with every field named."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from enum import Enum, StrEnum
from http import HTTPStatus
from typing import Any, Literal

import pytest
import pytest_asyncio
from multidict import MultiDict

from httpkit.messages.binding import Binder
from httpkit.messages.fields import member, message, query
from httpkit.problems import Invalid
from tests.httpkit.raw import ask, parse, send
from tests.httpkit.shop import Running, open_shop
from tests.support.pace import within

GOOD = {"name": "nail", "amount": 1.5}


@pytest_asyncio.fixture
async def shop() -> AsyncIterator[Running]:
    async with open_shop() as running:
        yield running


async def post(shop: Running, body: bytes, path: str = "/things", content_type: str = "application/json") -> Any:
    reply = await ask(shop.port, f"POST {path}\nContent-Type: {content_type}", body)
    return reply.status, reply.json


@pytest.mark.real
async def test_a_good_body_is_accepted(shop: Running) -> None:
    assert (await post(shop, json.dumps(GOOD).encode()))[0] == 201


ATTACKS = {
    "empty": b"",
    "only spaces": b"   ",
    "not closed": b"{",
    "not JSON": b"name=nail",
    "two values": b"{} {}",
    "comment": b'{"name":"nail"} // hello',
    "single quotes": b"{'name':'nail'}",
    "trailing comma": b'{"name":"nail","amount":1,}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"name":"nail","amount":1}'.encode("utf-16"),
    "bad UTF-8": b'{"name":"\xff\xfe","amount":1}',
    "overlong UTF-8": b'{"name":"\xc0\xaf","amount":1}',
    "raw control character": b'{"name":"a\x01b","amount":1}',
    "NaN": b'{"name":"nail","amount":NaN}',
    "Infinity": b'{"name":"nail","amount":-Infinity}',
    "float out of range": b'{"name":"nail","amount":1e999}',
    "float with a huge exponent": b'{"name":"nail","amount":1e999999999}',
    "float with a tiny exponent": b'{"name":"nail","amount":1e-999999999}',
    "exponent that no parser takes": b'{"name":"nail","amount":1e99999999999999999999}',
    "integer of 5,000 digits": b'{"name":"nail","amount":' + b"9" * 5000 + b"}",
    "float of 5,000 digits": b'{"name":"nail","amount":0.' + b"9" * 5000 + b"}",
    "name given twice": b'{"name":"nail","name":"screw","amount":1}',
    "name given twice inside": b'{"name":"nail","amount":1,"parts":[{"label":"a","label":"b"}]}',
    "half of a surrogate pair": b'{"name":"\\ud800","amount":1}',
    "half of a surrogate pair in a name": b'{"name":"nail","amount":1,"\\udfff":1}',
    "3,000 lists": b"[" * 3000,
    "100,000 lists": b"[" * 100_000,
    "3,000 objects": b'{"a":' * 3000,
    "closed and deep": b"[" * 65 + b"]" * 65,
    "deep, with a string of quotes without an end": b"[" * 60 + b'"' + b'\\"' * 400_000 + b"{" * 60,
    "list": b"[]",
    "string": b'"name"',
    "number": b"7",
    "null": b"null",
}


@pytest.mark.real
@pytest.mark.parametrize("name", ATTACKS)
async def test_a_body_that_is_no_sound_json_object_is_400_and_nothing_happens(shop: Running, name: str) -> None:
    with within(1):
        status, problem = await post(shop, ATTACKS[name])
    assert (status, shop.shop.made) == (400, 0)
    assert problem["message"] == problem["detail"]
    assert (await post(shop, json.dumps(GOOD).encode()))[0] == 201


@pytest.mark.real
async def test_nesting_within_the_limit_is_read(shop: Running) -> None:
    deep = b"[" * 63 + b"]" * 63
    status, problem = await post(shop, b'{"name":"[[[[","amount":1,"parts":' + deep + b"}")
    assert (status, problem["errors"][0]["pointer"]) == (400, "#/parts/0")


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "missing": ({"name": ...}, "#/name", "is required"),
    "null": ({"name": None}, "#/name", "must be a string"),
    "empty": ({"name": ""}, "#/name", "must not be empty"),
    "long": ({"name": "x" * 21}, "#/name", "must have at most 20 characters"),
    "number for text": ({"name": 7}, "#/name", "must be a string"),
    "NUL": ({"name": "a\0b"}, "#/name", "must not have control characters"),
    "escape": ({"name": "a\x1bb"}, "#/name", "must not have control characters"),
    "line break in a line": ({"name": "a\nb"}, "#/name", "must not have control characters"),
    "NUL in a text": ({"notes": "a\0b"}, "#/notes", "must not have control characters"),
    "text for number": ({"amount": "1"}, "#/amount", "must be a number"),
    "boolean for number": ({"amount": True}, "#/amount", "must be a number"),
    "zero": ({"amount": 0}, "#/amount", "must be greater than 0"),
    "too much": ({"amount": 1000000.001}, "#/amount", "must be at most 1000000"),
    "places": ({"amount": 0.0001}, "#/amount", "must have at most 3 decimal places"),
    "enum": ({"colour": "green"}, "#/colour", "must be one of: red, blue"),
    "enum of another type": ({"colour": ["red"]}, "#/colour", "must be one of: red, blue"),
    "literal": ({"kind": "c"}, "#/kind", "must be one of: a, b"),
    "object for list": ({"parts": {}}, "#/parts", "must be a list"),
    "text for list": ({"parts": "abc"}, "#/parts", "must be a list"),
    "too many": ({"parts": [{"label": "x"}] * 4}, "#/parts", "must have at most 3 items"),
    "in a list": ({"parts": [{"label": "x"}, {"label": "toolong"}]}, "#/parts/1/label", "must have at most 5 characters"),
    "of a list": ({"parts": [7]}, "#/parts/0", "must be an object"),
    "fraction for a count": ({"parts": [{"label": "x", "count": 1.5}]}, "#/parts/0/count", "must be a whole number"),
    "count of 20 digits": ({"parts": [{"label": "x", "count": 10**20}]}, "#/parts/0/count", "must be a 64-bit number"),
    "no time": ({"due": "yesterday"}, "#/due", "must be a time in RFC 3339 form"),
    "time without offset": ({"due": "2026-01-31T10:00:00"}, "#/due", "must be a time in RFC 3339 form, with its offset from UTC"),
    "unknown": ({"nmae": "x"}, "#/nmae", "is unknown; did you mean name?"),
    "unknown with a slash": ({"a/b~c": "x"}, "#/a~1b~0c", "is unknown"),
}


@pytest.mark.real
@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_member_is_named_with_what_is_wrong(shop: Running, name: str) -> None:
    change, pointer, detail = WRONG[name]
    body = {key: value for key, value in (GOOD | change).items() if value is not ...}
    status, problem = await post(shop, json.dumps(body).encode())
    assert (status, problem["errors"]) == (400, [{"pointer": pointer, "detail": detail}])


@pytest.mark.real
@pytest.mark.parametrize(
    "change",
    [
        {"name": "é" * 20},
        {"name": "👩‍👩‍👧"},
        {"amount": 1},
        {"amount": 0.001},
        {"amount": 1e3},
        {"parts": [{"label": "x", "count": 2.0}]},
        {"notes": "line\n\tline"},
        {"notes": None},
        {"due": "2026-01-31T10:00:00.5+02:00"},
        {"due": "2026-01-31T10:00:00Z"},
    ],
)
async def test_a_value_at_its_limit_is_taken(shop: Running, change: dict[str, Any]) -> None:
    assert (await post(shop, json.dumps(GOOD | change).encode()))[0] == 201


@pytest.mark.real
async def test_all_errors_of_a_request_come_at_once(shop: Running) -> None:
    async with shop.http.get("/things?colour=green&limit=0&since=now&done=maybe&tags=a&tags=b") as response:
        problem = await response.json()
    assert response.status == 400
    assert {error["parameter"] for error in problem["errors"]} == {"colour", "limit", "since", "done"}


@pytest.mark.real
@pytest.mark.parametrize("value", ["x", "1.5", "", "+", "1e3", "0x10", "٣", "99999999999999999999", "1&limit=2"])
async def test_a_number_in_the_query_is_digits_given_once(shop: Running, value: str) -> None:
    async with shop.http.get(f"/things?limit={value}") as response:
        problem = await response.json()
    assert (response.status, problem["errors"][0]["parameter"]) == (400, "limit")


@pytest.mark.real
async def test_absent_null_and_given_members_are_told_apart(shop: Running) -> None:
    for body, given in ({}, []), ({"notes": None}, ["notes"]), ({"notes": "x", "name": "y"}, ["name", "notes"]):
        async with shop.http.patch("/things/t1", json=body) as response:
            assert (await response.json())["given"] == given


@pytest.mark.real
async def test_a_body_whose_members_are_all_optional_may_be_left_out_and_is_an_object_where_it_is_not(shop: Running) -> None:
    assert (await ask(shop.port, "PATCH /things/t1")).json["given"] == []
    for body in (b"null", b"[]"):
        reply = await ask(shop.port, "PATCH /things/t1\nContent-Type: application/json", body)
        assert (reply.status, reply.json["errors"][0]["detail"]) == (400, "must be an object")


@pytest.mark.real
async def test_a_header_is_checked_like_any_other_field(shop: Running) -> None:
    async with shop.http.patch("/things/t1", json={}, headers={"X-Tenant": "x" * 11}) as response:
        problem = await response.json()
    assert (response.status, problem["errors"][0]["parameter"]) == (400, "X-Tenant")


@pytest.mark.real
async def test_a_path_that_no_resource_can_have_is_404(shop: Running) -> None:
    async with shop.http.get("/things/x1") as response:
        problem = await response.json()
    assert (response.status, problem["errors"]) == (404, [{"parameter": "id", "detail": "must be the id of a thing, like t1"}])


@pytest.mark.real
@pytest.mark.parametrize(
    "path", ["/things/%00", "/things/%ff%fe", "/things/%2e%2e%2fetc", "/things/t1%0d%0aX: y", "/%%%", "/things/%"]
)
async def test_no_path_makes_the_service_fail(shop: Running, path: str) -> None:
    reply = await ask(shop.port, f"GET {path.replace(' ', '%20')}")
    assert reply.status in (400, 404)
    assert reply.headers["content-type"].startswith("application/problem+json")


@pytest.mark.real
@pytest.mark.parametrize("kind", ["text/plain", "application/jsonp", "text/json", "nonsense"])
async def test_a_body_of_another_media_type_is_415(shop: Running, kind: str) -> None:
    assert (await post(shop, json.dumps(GOOD).encode(), content_type=kind))[0] == 415


@pytest.mark.real
@pytest.mark.parametrize(
    "kind",
    ["application/json", "APPLICATION/JSON; charset=UTF-8", "application/merge-patch+json", "application/x-www-form-urlencoded"],
)
async def test_json_by_any_of_its_names_or_as_a_form_of_curl_is_taken(shop: Running, kind: str) -> None:
    assert (await post(shop, json.dumps(GOOD).encode(), content_type=kind))[0] == 201


@pytest.mark.real
@pytest.mark.parametrize("path", ["/things/", "/livez", "/health", "/_/health", "/readyz", "/_/ready"])
async def test_a_path_with_a_slash_at_its_end_and_each_probe_is_answered(shop: Running, path: str) -> None:
    method, body = ("POST", json.dumps(GOOD).encode()) if path == "/things/" else ("GET", b"")
    assert (await ask(shop.port, f"{method} {path}", body)).status in (200, 201)


@pytest.mark.real
async def test_a_body_without_a_media_type_is_taken_as_it_is(shop: Running) -> None:
    assert (await ask(shop.port, "POST /things", json.dumps(GOOD).encode())).status == 201


@pytest.mark.real
async def test_another_charset_is_415(shop: Running) -> None:
    assert (await post(shop, json.dumps(GOOD).encode(), content_type="application/json; charset=latin-1"))[0] == 415


@pytest.mark.real
async def test_a_compressed_body_is_415_and_never_unpacked(shop: Running) -> None:
    reply = await ask(shop.port, "POST /things\nContent-Type: application/json\nContent-Encoding: gzip", b"\x1f\x8b" + b"0" * 100)
    assert reply.status == 415


@pytest.mark.real
async def test_a_raw_text_body_reaches_the_handler_as_it_was(shop: Running) -> None:
    for kind in "text/plain", "application/x-www-form-urlencoded", "application/graphql":
        assert await post(shop, b"{ hello }", "/echo", kind) == (200, "{ hello }")
    assert (await post(shop, b"\xff", "/echo", "text/plain"))[0] == 400
    assert (await post(shop, b"x" * 101, "/echo", "text/plain"))[0] == 400


@pytest.mark.real
async def test_raw_bytes_are_taken_of_the_named_media_type_only(shop: Running) -> None:
    assert await post(shop, b"\xff\x00", "/upload", "text/csv") == (200, 2)
    assert (await post(shop, b"{}", "/upload", "application/json"))[0] == 415


@pytest.mark.real
async def test_a_whole_body_may_be_a_list(shop: Running) -> None:
    assert await post(shop, json.dumps([GOOD, GOOD]).encode(), "/things/batch") == (200, 2)
    status, problem = await post(shop, json.dumps([GOOD, {"name": "x"}]).encode(), "/things/batch")
    assert (status, problem["errors"]) == (400, [{"pointer": "#/1/amount", "detail": "is required"}])
    assert (await post(shop, b"", "/things/batch"))[0] == 400


@pytest.mark.real
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413_whether_announced_or_not(shop: Running, *, chunked: bool) -> None:
    size = 1024**2 + 1
    body = b'{"name":"' + b"x" * size + b'"}'
    if chunked:
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:700_000], body[700_000:])) + b"0\r\n\r\n"
        head = "POST /things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        reply = parse(await send(shop.port, head.encode() + body))
    else:
        reply = await ask(shop.port, "POST /things", body)
    assert (reply.status, reply.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.real
async def test_a_route_may_take_larger_bodies_than_the_others(shop: Running) -> None:
    assert (await post(shop, b"x" * 4_000_000, "/upload", "text/csv"))[0] == 200


@pytest.mark.real
async def test_where_a_service_says_so_a_body_that_cannot_be_right_is_422_and_a_parameter_still_400() -> None:
    async with open_shop(invalid=HTTPStatus.UNPROCESSABLE_ENTITY, error_key="error") as shop:
        status, problem = await post(shop, b'{"name":"","amount":1}')
        assert (status, problem["error"]) == (422, "name: must not be empty")
        assert (await post(shop, b"{"))[0] == 400
        assert (await ask(shop.port, "GET /things?limit=x")).status == 400


@pytest.mark.real
async def test_an_idempotency_key_and_what_it_stands_for_reach_the_handler(shop: Running) -> None:
    prints = []
    for key, body in (
        ('"k-1"', b'{"name":"a","amount":1}'),
        ("k-1", b'{ "amount":1, "name":"a"}'),
        ("k-1", b'{"name":"b","amount":1}'),
    ):
        assert (await ask(shop.port, f"POST /things\nIdempotency-Key: {key}", body)).status == 201
        call = shop.shop.last_call
        assert call is not None
        assert call.key == "k-1"
        prints.append(call.fingerprint)
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.real
@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä"])
async def test_a_key_that_is_none_is_400(shop: Running, key: str) -> None:
    reply = await ask(shop.port, f"POST /things\nIdempotency-Key: {key}", json.dumps(GOOD).encode())
    assert (reply.status, reply.json["errors"][0]["parameter"]) == (400, "Idempotency-Key")


TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.real
@pytest.mark.parametrize("flags", ["00", "01"])
async def test_a_request_is_a_span_of_its_own_in_the_trace_of_its_client(shop: Running, flags: str) -> None:
    given = f"00-{TRACE_ID}-b7ad6b7169203331-{flags}"
    reply = await ask(shop.port, f"POST /things\ntraceparent: {given}", json.dumps(GOOD).encode())
    assert shop.shop.last_call is not None
    span = shop.shop.last_call.traceparent
    assert re.fullmatch(f"00-{TRACE_ID}-[0-9a-f]{{16}}-{flags}", span or "")
    assert span != given
    assert reply.headers["server-timing"] == f'traceparent;desc="{span}"'


@pytest.mark.real
@pytest.mark.parametrize(
    "given",
    [
        "",
        "\ntraceparent: nonsense",
        f"\ntraceparent: 00-{TRACE_ID}-b7ad6b7169203331",
        f"\ntraceparent: ff-{TRACE_ID}-b7ad6b7169203331-01",
        f"\ntraceparent: 00-{TRACE_ID}-b7ad6b7169203331-01-more",
        f"\ntraceparent: 00-{TRACE_ID}-0000000000000000-01",
        f"\ntraceparent: 00-{TRACE_ID.upper()}-b7ad6b7169203331-01",
        f"\ntraceparent: 00-{TRACE_ID}-b7ad6b7169203331-01" * 2,
    ],
)
async def test_a_new_trace_begins_where_the_client_names_none(shop: Running, given: str) -> None:
    await ask(shop.port, f"POST /things{given}", json.dumps(GOOD).encode())
    assert shop.shop.last_call is not None
    span = shop.shop.last_call.traceparent or ""
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", span)
    assert TRACE_ID not in span


@pytest.mark.real
async def test_a_later_version_of_the_trace_context_is_read_as_far_as_it_is_known(shop: Running) -> None:
    given = f"cc-{TRACE_ID}-b7ad6b7169203331-01-what-the-future-will-be-like"
    await ask(shop.port, f"POST /things\ntraceparent: {given}", json.dumps(GOOD).encode())
    assert shop.shop.last_call is not None
    assert TRACE_ID in (shop.shop.last_call.traceparent or "")


@pytest.mark.real
async def test_a_parameter_in_the_path_may_be_refused_with_another_status(shop: Running) -> None:
    reply = await ask(shop.port, "POST /do/BOOM")
    assert (reply.status, reply.json["errors"][0]["parameter"]) == (422, "what")


@pytest.mark.real
async def test_numbers_come_back_as_exactly_as_they_went_in(shop: Running) -> None:
    for number in b"0.1", b"123456.789", b"7", b"1000000", b"5E-324":
        reply = await ask(shop.port, "POST /things/sum", b'{"amounts":[' + number + b"]}")
        assert (reply.status, reply.body) == (200, number)


class Colour(StrEnum):
    RED = "red"


@message
class Painted:
    colour: Colour | None = query(default=None)
    tint: Colour = member()


def test_an_enumeration_of_strings_is_one_wherever_it_stands() -> None:
    """StrEnum is a class of strings; its values are checked all the same, and handlers get the members."""
    binder = Binder(Painted, invalid=HTTPStatus.BAD_REQUEST)
    made = binder.bind({}, MultiDict(colour="red"), {}, {"tint": "red"}, has_body=True)
    assert made.colour is made.tint is Colour.RED
    with pytest.raises(Invalid) as refused:
        binder.bind({}, MultiDict(colour="blue"), {}, {"tint": "blue"}, has_body=True)
    assert [error.parameter or error.pointer for error in refused.value.errors] == ["colour", "#/tint"]


class Floor(Enum):
    GROUND = 0
    FIRST = 1


@message
class Room:
    floor: Floor = query()
    beds: Literal[1, 2] | None = query(default=None)
    size: Literal[1, 2] = member()
    above: Floor = member()


def test_a_choice_of_numbers_is_text_in_a_parameter_and_a_number_in_a_body() -> None:
    binder = Binder(Room, invalid=HTTPStatus.BAD_REQUEST)
    made = binder.bind({}, MultiDict(floor="1", beds="2"), {}, {"size": 1, "above": 0}, has_body=True)
    assert made == Room(floor=Floor.FIRST, beds=2, size=1, above=Floor.GROUND)
    with pytest.raises(Invalid) as refused:
        binder.bind({}, MultiDict(floor="2", beds="3"), {}, {"size": "1", "above": "0"}, has_body=True)
    assert [error.parameter or error.pointer for error in refused.value.errors] == ["floor", "beds", "#/size", "#/above"]


@pytest.mark.real
async def test_a_query_parameter_that_the_route_does_not_have_is_refused_with_the_closest_name(shop: Running) -> None:
    reply = await ask(shop.port, "GET /things?limitt=3")
    assert (reply.status, reply.json["errors"]) == (400, [{"detail": "is unknown; did you mean limit?", "parameter": "limitt"}])
