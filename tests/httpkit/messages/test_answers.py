"""Answers: statuses, headers, entity tags, pages, positions in the log, and errors as problem documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import structlog.testing

from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.routes import Answer, Call, Route
from tests.httpkit.raw import ask, parse, send
from tests.httpkit.shop import Running, Shop, Thing, ThingId, open_shop, show_thing, thing


@pytest_asyncio.fixture
async def shop() -> AsyncIterator[Running]:
    async with open_shop() as running:
        yield running


PROBLEMS = {
    "unknown path": ("GET", "/nope", 404),
    "wrong method": ("DELETE", "/things", 405),
    "strange method": ("PROPFIND", "/things", 405),
    "bad parameter": ("GET", "/things?limit=x", 400),
    "no such thing": ("GET", "/things/x", 404),
    "domain error": ("POST", "/do/conflict", 409),
    "broker away": ("POST", "/do/away", 503),
    "fault": ("POST", "/do/boom", 500),
}


@pytest.mark.real
@pytest.mark.parametrize("name", PROBLEMS)
async def test_every_error_is_a_problem_document_with_the_services_own_key(shop: Running, name: str) -> None:
    method, path, status = PROBLEMS[name]
    async with shop.http.request(method, path) as response:
        problem = await response.json(content_type="application/problem+json")
    assert (response.status, problem["status"]) == (status, status)
    assert problem["message"] == problem["detail"]
    assert problem["instance"] == path.partition("?")[0]
    assert problem["request_id"] == response.headers["X-Request-Id"]
    assert {"type", "title"} <= problem.keys()


@pytest.mark.real
async def test_a_wrong_method_is_told_which_ones_are_right(shop: Running) -> None:
    async with shop.http.put("/things/t1") as response:
        assert response.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH"
    async with shop.http.options("/things/t1") as response:
        assert (response.status, response.headers["Allow"]) == (204, "DELETE, GET, HEAD, OPTIONS, PATCH")


@pytest.mark.real
async def test_a_fault_says_nothing_of_itself_and_is_logged_under_the_request_id(shop: Running) -> None:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        async with shop.http.post("/do/boom", headers={"X-Request-Id": "abc-1"}) as response:
            text = await response.text()
    assert "hunter2" not in text
    assert '"detail":"internal server error"' in text
    (logged,) = [line for line in logs if line["event"] == "request failed"]
    assert logged["request_id"] == "abc-1"
    assert "hunter2" in str(logged["exc_info"])


@pytest.mark.real
@pytest.mark.parametrize("status", [404, 401, 0, 299])
async def test_the_status_of_another_server_is_not_the_status_of_the_answer(shop: Running, status: int) -> None:
    """As an HTTP client's error has it: it is a fault here, which is logged, and its text stays inside."""
    shop.shop.upstream = status
    with structlog.testing.capture_logs() as logs:
        async with shop.http.post("/do/upstream") as response:
            problem = await response.json(content_type="application/problem+json")
    assert (response.status, problem["detail"]) == (500, "internal server error")
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["request failed"]


@pytest.mark.real
async def test_an_error_of_another_package_shows_its_own_text_under_its_own_name(shop: Running) -> None:
    async with shop.http.post("/do/conflict") as response:
        problem = await response.json(content_type=None)
    assert (problem["type"], problem["title"], problem["detail"]) == ("urn:problem:domain-error", "Domain error", "it moved on")
    async with shop.http.post("/do/away") as response:
        problem = await response.json(content_type=None)
    assert (problem["detail"], response.headers["Retry-After"]) == ("The broker cannot be reached.", "1")


@pytest.mark.real
async def test_an_error_of_a_domain_about_one_value_names_where_it_came_from(shop: Running) -> None:
    async with shop.http.post("/do/field") as response:
        problem = await response.json(content_type=None)
    assert (problem["message"], problem["errors"]) == ("what: is not nice", [{"parameter": "what", "detail": "is not nice"}])


@pytest.mark.real
async def test_a_status_that_the_table_does_not_name_is_a_fault(shop: Running) -> None:
    async with shop.http.post("/do/undeclared") as response:
        assert response.status == 500


@pytest.mark.real
async def test_an_answer_is_json_with_members_in_order_under_their_names_and_without_unset_ones(shop: Running) -> None:
    async with shop.http.get("/things/t1") as response:
        text = await response.text()
    assert text == '{"id":"t1","name":"thing 1","StatusReason":null,"made_at":"2026-01-31T12:00:00Z"}'
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.real
async def test_created_things_say_where_they_are(shop: Running) -> None:
    async with shop.http.post("/things", json={"name": "nail", "amount": 1}) as response:
        assert (response.status, response.headers["Location"]) == (201, "/things/t1")


@pytest.mark.real
async def test_nothing_is_204_without_a_body(shop: Running) -> None:
    async with shop.http.delete("/things/t1") as response:
        assert (response.status, await response.read()) == (204, b"")


@pytest.mark.real
async def test_head_has_the_headers_of_get_and_no_body(shop: Running) -> None:
    async with shop.http.get("/things/t1") as got, shop.http.head("/things/t1") as asked:
        own = {"Date", "X-Request-ID", "Server-Timing"}
        assert {k: v for k, v in asked.headers.items() if k not in own} == {k: v for k, v in got.headers.items() if k not in own}
        assert await asked.read() == b""


@pytest.mark.real
async def test_an_entity_tag_is_304_where_the_client_has_it_and_412_where_it_has_an_older_one(shop: Running) -> None:
    for known, status in ('"v1"', 304), ('"v0", W/"v1"', 304), ("*", 304), ('"v0"', 200):
        async with shop.http.get("/things/t1", headers={"If-None-Match": known}) as response:
            assert (response.status, response.headers["ETag"]) == (status, '"v1"')
    for known, status in ('"v1"', 200), ("*", 200), ('"v0"', 412), ('W/"v1"', 412), ("v1", 412), ("", 412):
        async with shop.http.patch("/things/t1", json={}, headers={"If-Match": known}) as response:
            assert response.status == status


@pytest.mark.real
async def test_cursors_lead_through_all_pages_and_a_forged_one_is_400(shop: Running) -> None:
    path, seen = "/things?limit=2", []
    for _ in range(9):
        async with shop.http.get(path) as response:
            seen += [thing["id"] for thing in await response.json()]
            following = response.links.get("next")
        if following is None:
            break
        assert not isinstance(following["url"], str)
        path = str(following["url"].relative())
    assert seen == ["t1", "t2", "t3", "t4", "t5"]
    for forged in "x", "WzFd%0A", "bnVsbA", "WyIxIl0", "!" * 5000:
        async with shop.http.get(f"/things?cursor={forged}") as response:
            assert (response.status, (await response.json(content_type=None))["errors"][0]["parameter"]) == (400, "cursor")


@pytest.mark.real
async def test_an_answer_names_the_sequence_of_its_moment_or_of_its_command_and_no_other(shop: Running) -> None:
    async with shop.http.get("/things") as response:
        assert response.headers["Event-Sequence"] == "7"
    async with shop.http.post("/things", json={"name": "nail", "amount": 1}) as response:
        assert response.headers["Event-Sequence"] == "99", "a command says what it wrote"
    async with shop.http.post("/do/advance") as response:
        assert "Event-Sequence" not in response.headers, "what it shows is of no known moment"


@pytest.mark.real
@pytest.mark.parametrize("mark", [{"immediate": True}, {"time_limit": 20.0}])
async def test_a_read_outside_of_a_moment_names_its_sequence_itself_or_has_none(mark: dict[str, Any]) -> None:
    async def look(request: ThingId, call: Call[Shop]) -> Answer[Thing]:
        call.services.sequence += 1
        return Answer(thing(1), sequence=8 if request.id == "t1" else None)

    async with open_shop(table=[Route("GET", "/looks/{id}", look, summary="Look", **mark)]) as shop:
        for id_, sequence in ("t1", "8"), ("t2", None):
            async with shop.http.get(f"/looks/{id_}") as response:
                assert (response.status, response.headers.get("Event-Sequence")) == (200, sequence)


@pytest.mark.real
async def test_min_seq_waits_for_the_read_model_and_503_says_that_it_is_behind(shop: Running) -> None:
    for sequence, status in ("7", 200), ("8", 503), ("x", 400), ("-1", 400), ("9" * 19, 400):
        async with shop.http.get(f"/things?min_seq={sequence}") as response:
            assert response.status == status
            assert ("Retry-After" in response.headers) == (status == 503)
    shop.shop.sequence = 8
    async with shop.http.get("/things?min_seq=8") as response:
        assert (response.status, response.headers["Event-Sequence"]) == (200, "8")


@pytest.mark.real
@pytest.mark.parametrize("given", ["abc-1", "A.b:c_d", "x" * 64])
async def test_a_request_id_comes_back(shop: Running, given: str) -> None:
    async with shop.http.get("/things", headers={"X-Request-Id": given}) as response:
        assert response.headers["X-Request-Id"] == given


@pytest.mark.real
@pytest.mark.parametrize("given", ["", "a b", "x" * 65, '"><script>', "ä"])
async def test_what_is_no_request_id_is_replaced(shop: Running, given: str) -> None:
    reply = await ask(shop.port, f"GET /things\nX-Request-Id: {given}")
    assert reply.headers["x-request-id"] != given
    assert len(reply.headers["x-request-id"]) >= 12


@pytest.mark.real
async def test_no_two_requests_have_one_id(shop: Running) -> None:
    ids = set()
    for _ in range(20):
        async with shop.http.get("/nope") as response:
            ids.add(response.headers["X-Request-Id"])
    assert len(ids) == 20


@pytest.mark.real
@pytest.mark.parametrize("path", ["/things", "/nope", "/livez", "/api/openapi.json", "/metrics"])
async def test_answers_are_not_stored_not_sniffed_and_do_not_say_what_software_this_is(shop: Running, path: str) -> None:
    async with shop.http.get(path) as response:
        headers = response.headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert "Server" not in headers
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.real
async def test_each_request_is_one_line_in_the_log(shop: Running) -> None:
    with structlog.testing.capture_logs() as logs:
        async with shop.http.get("/things?cursor=secret") as response:
            await response.read()
        async with shop.http.get("/livez") as response:
            await response.read()
    lines = [line for line in logs if line["event"] == "request"]
    assert [(line["log_level"], line["method"], line["path"], line["status"]) for line in lines] == [
        ("info", "GET", "/things", 400),
        ("debug", "GET", "/livez", 200),
    ]
    assert "secret" not in str(lines)


@pytest.mark.real
@pytest.mark.parametrize(
    "line",
    [
        b"Authorization: Bearer t0p-secret\r",  # from a file whose lines end with CR and LF
        b"Authorization: Bearer t0p-secret\x01",
        b"Cookie: shop_session=t0p-secret" + b"y" * 9000,
        b"Authorization Bearer t0p-secret",
    ],
)
async def test_what_is_no_http_is_one_line_in_the_log_without_the_secrets_of_its_header(shop: Running, line: bytes) -> None:
    with structlog.testing.capture_logs() as logs:
        reply = parse(await send(shop.port, b"GET /things HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n\r\n"))
    assert reply.status == 400
    (logged,) = [found for found in logs if found["event"] == "not HTTP"]
    assert logged["reason"], logged
    assert "t0p-secret" not in str(logs)
    assert b"t0p-secret" not in reply.body


@pytest.mark.real
async def test_metrics_count_requests_by_route_and_not_by_path(shop: Running) -> None:
    for path in "/things/t1", "/things/t2", "/nope/1", "/nope/2":
        async with shop.http.get(path) as response:
            await response.read()
    async with shop.http.get("/metrics") as response:
        text = await response.text()
    assert 'http_requests_total{method="GET",route="/things/{id}",status="200"} 2.0' in text
    assert 'http_requests_total{method="GET",route="unmatched",status="404"} 2.0' in text
    assert 'http_request_duration_seconds_count{method="GET",route="/things/{id}"} 2.0' in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.real
async def test_strange_methods_do_not_make_new_series(shop: Running) -> None:
    for method in "PROPFIND", "MKCOL", "LOCK":
        async with shop.http.request(method, "/things") as response:
            await response.read()
    async with shop.http.get("/metrics") as response:
        assert 'http_requests_total{method="OTHER",route="/things",status="405"} 3.0' in await response.text()


@pytest.mark.real
async def test_literal_paths_come_before_parameters_whatever_the_order_of_the_table(shop: Running) -> None:
    async with shop.http.post("/things/batch", json=[]) as response:
        assert (response.status, await response.json()) == (200, 0)
    async with shop.http.get("/things/batch") as response:
        assert (response.status, response.headers["Allow"]) == (405, "OPTIONS, POST"), "it is not a thing of that name"


def test_a_route_that_is_in_the_table_twice_is_refused() -> None:
    route: Route[Any] = Route("GET", "/a/{id}", show_thing, summary="")
    with pytest.raises(ValueError, match=r"GET /a/\{id\} is in the table twice"):
        build_application([route, route], None, Edge(title="x", version="1"), health=Health({}))


def test_a_parameter_that_the_path_of_its_route_lacks_is_refused() -> None:
    """Each request would be a fault."""
    table: list[Route[Any]] = [Route("GET", "/things/{ident}", show_thing, summary="A thing")]
    with pytest.raises(ValueError, match=r"GET /things/\{ident\}: the path lacks the parameter id of ThingId"):
        build_application(table, None, Edge(title="", version=""), health=Health({}))
