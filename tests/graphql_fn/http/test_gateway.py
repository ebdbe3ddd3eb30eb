"""The gateway from outside: media types and statuses, limits, probes, metrics, the log, the token."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from graphql_fn.serve import opened
from graphql_fn.settings import Settings
from pantry.readmodel.model import MODEL
from projections.migrations import Migrations
from projections.stores.databases import store_at
from servicekit.read_side import Feed
from servicekit.server import listening
from tests.graphql_fn.queries import GREETING
from tests.support.pace import slowness
from tests.support.waiting import wait_until
from tests.support.web.graphql import Gateway, gateway

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

JSON = "application/json"
RESPONSE = "application/graphql-response+json"
FUNCTION = "/function/graphql"
HELLO = {"data": {"hello": GREETING}}


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (JSON, JSON),
        ("*/*", JSON),
        ("application/*;q=0.5", JSON),
        (RESPONSE, RESPONSE),
        (f"{RESPONSE}, {JSON};q=0.9", RESPONSE),
        (f"{RESPONSE};q=0.5, {JSON}", JSON),
        (f"text/html, {RESPONSE}; charset=utf-8, */*;q=0.1", RESPONSE),
        (f"{JSON};q=0, {RESPONSE};q=0.001", RESPONSE),
        (f"{JSON};q=0, */*", RESPONSE),
        (f"{JSON};q=0.1, application/*", RESPONSE),
        (f"{JSON};q=0.5, */*;q=0.5", JSON),
    ],
)
async def test_the_answer_has_the_type_that_the_client_likes_best(served: Gateway, accept: str, media: str) -> None:
    answer = await served.post("{ hello }", Accept=accept)
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, f"{media}; charset=utf-8", HELLO)


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", "application/xml, text/*", f"{JSON};q=0, {RESPONSE};q=0, */*"])
async def test_a_type_that_results_do_not_have_is_not_acceptable(served: Gateway, accept: str) -> None:
    answer = await served.post("{ hello }", Accept=accept)
    assert (answer.status, list(answer.body)) == (406, ["errors"])


@pytest.mark.parametrize("query", ["{", "{ hell }", "query($v: Int!) { hello @skip(if: $v) }"])
async def test_a_query_that_is_wrong_has_status_200_unless_the_client_takes_the_newer_type(served: Gateway, query: str) -> None:
    assert (await served.post(query)).status == 200
    answer = await served.post(query, Accept=RESPONSE)
    assert (answer.status, list(answer.body)) == (400, ["errors"])


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"query": "{ hello }"}', "text/plain"),
        (b"{ hello }", JSON),
        (b"\xff{ hello }", "text/plain"),
        (b'{"query": "\xff"}', JSON),
        (b"", JSON),
        (b"[" * 30_000, JSON),
        (b'[{"query": "{ hello }"}]', JSON),
        (b'"{ hello }"', JSON),
        (b'{"query": 1}', JSON),
        (b'{"query": null}', JSON),
        (b'{"query": "{ hello }", "variables": []}', JSON),
        (b'{"query": "{ hello }", "variables": "{}"}', JSON),
        (b'{"query": "{ hello }", "operationName": 1}', JSON),
        (b'{"query": "{ hello }", "extensions": 1}', JSON),
        (b'{"query": "{ hello }", "variables": {"a": NaN}}', JSON),
        (b"{ hello }", "text/plain; charset=utf-16"),
    ],
)
async def test_a_body_that_is_no_request_is_refused_in_words(served: Gateway, body: bytes, content_type: str) -> None:
    answer = await served.post(body, content_type)
    assert (answer.status, list(answer.body)) == (400, ["errors"])
    assert answer.body["errors"][0]["message"]


async def test_a_query_may_come_in_the_address_with_variables_and_an_operation(served: Gateway) -> None:
    query = "query A { hello } query B($no: Boolean!) { hello @skip(if: $no) }"
    parameters = {"query": query, "operationName": "B", "variables": '{"no": true}'}
    assert (await served.ask("GET", FUNCTION, params=parameters)).body == {"data": {}}
    assert (await served.ask("HEAD", FUNCTION, params=parameters)).status == 200
    assert (await served.ask("GET", FUNCTION)).status == 400
    assert (await served.ask("GET", FUNCTION, params={**parameters, "variables": "{no}"})).status == 400


async def test_other_methods_and_names_are_refused_with_the_possible_ones(served: Gateway) -> None:
    answer = await served.ask("PATCH", FUNCTION, data=b"{ hello }")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    answer = await served.ask("POST", "/function/other", data=b"{ hello }")
    assert (answer.status, answer.body["message"]) == (404, "no function is called 'other'; there are: graphql")


LARGE = "{" + " ".join(f"a{number}: hello" for number in range(20_000)) + "}"
MANY = "{" + " ".join(f"a{number}:hello" for number in range(5000)) + "}"
DEEP = "{ a " * 300 + "}" * 300


@pytest.mark.parametrize(("query", "status"), [(LARGE, 413), (MANY, 400), (DEEP, 400)], ids=["large", "many", "deep"])
async def test_a_query_that_asks_for_too_much_is_refused_whatever_the_client_takes(
    served: Gateway, query: str, status: int
) -> None:
    for content_type, accept in (("text/plain", JSON), ("application/graphql", RESPONSE)):
        answer = await served.post(query, content_type, Accept=accept)
        assert (answer.status, "data" in answer.body) == (status, False)


async def test_other_requests_are_answered_in_time_while_some_ask_for_too_much(served: Gateway) -> None:
    """The bounds are for a machine with little other work; `scripts/bench/graphql/hello.py` has the figures of an idle one."""
    refused: list[tuple[int, float]] = []
    stop = asyncio.Event()

    async def ask_for_too_much() -> None:
        while not stop.is_set():
            for query in (LARGE, MANY, DEEP):
                started = time.perf_counter()
                answer = await served.post(query)
                refused.append((answer.status, time.perf_counter() - started))

    async def ask() -> float:
        started = time.perf_counter()
        assert (await served.post("{ hello }")).body == HELLO
        return time.perf_counter() - started

    attack = asyncio.create_task(ask_for_too_much())
    try:
        times = sorted([await ask() for _ in range(200)])
    finally:
        stop.set()
        await attack
    assert len(refused) >= 3
    assert {status for status, _ in refused} == {400, 413}
    slower = slowness()
    assert sorted(seconds for _, seconds in refused)[len(refused) // 2] < 0.25 * slower
    assert times[100] < 0.1 * slower
    assert times[197] < 0.5 * slower


async def test_probes_answer_under_our_names_and_the_platforms(served: Gateway) -> None:
    for path in ("/livez", "/health", "/readyz", "/_/health", "/_/ready"):
        assert (await served.ask("GET", path)).status == 200


async def test_metrics_count_the_outcomes_of_requests(served: Gateway) -> None:
    async def figures() -> dict[str, float]:
        text = str((await served.ask("GET", "/metrics")).body)
        return {name: float(value) for name, value in re.findall(r"^(graphql_\S+) (\S+)$", text, re.MULTILINE)}

    before = await figures()
    query = "{ metrics: hello }"
    for body in (query, query, "{ hell }", "{ a " * 20 + "}" * 20, '{"query"'):
        await served.post(body)
    after = await figures()
    change = {name: value - before.get(name, 0) for name, value in after.items()}
    outcomes = {"executed": 2, "refused": 1, "over_limit": 1, "unreadable": 1}
    for outcome, number in outcomes.items():
        assert change[f'graphql_requests_total{{function="graphql",outcome="{outcome}"}}'] == number
    assert change['graphql_document_lookups_total{function="graphql",result="hit"}'] == 1
    assert change['graphql_documents{function="graphql"}'] == 1


async def test_each_request_is_logged_with_its_id(served: Gateway) -> None:
    await served.post("{ hello }", **{"X-Request-Id": "mine-1"})
    await wait_until(lambda: any(line.get("request_id") == "mine-1" for line in served.log), 5)
    [line] = [line for line in served.log if line.get("request_id") == "mine-1"]
    assert (line["event"], line["method"], line["path"], line["status"]) == ("request", "POST", FUNCTION, 200)


async def test_a_page_of_another_origin_is_refused(served: Gateway) -> None:
    assert (await served.post("{ hello }", Origin="https://elsewhere.example")).status == 403
    assert (await served.post("{ hello }", Host="elsewhere.example")).status == 421


async def test_a_page_of_another_origin_cannot_have_a_query_in_an_address_run(served: Gateway) -> None:
    """A link from another site still opens the page of a function, which runs nothing."""

    async def status(accept: str, **headers: str) -> int:
        answer = await served.ask("GET", FUNCTION, params={"query": "{ hello }"}, headers={"Accept": accept, **headers})
        return answer.status

    for accept in ("*/*", JSON, "text/event-stream"):
        assert await status(accept, **{"Sec-Fetch-Site": "cross-site"}) == 403
        assert await status(accept, **{"Sec-Fetch-Site": "same-site"}) == 403
        assert await status(accept, Origin="https://elsewhere.example") == 403
        assert await status(accept, **{"Sec-Fetch-Site": "same-origin"}) == 200
        assert await status(accept) == 200
    assert await status("text/html", **{"Sec-Fetch-Site": "cross-site"}) == 200


async def test_the_document_of_the_api_has_the_function(served: Gateway) -> None:
    document: Any = (await served.ask("GET", "/api/openapi.json")).body
    assert set(document["paths"]["/function/{name}"]) >= {"get", "post"}


async def test_settings_close_the_schema_set_limits_and_ask_for_a_token(tmp_path: Path) -> None:
    settings = {
        "GRAPHQL_INTROSPECTION": "false",
        "GRAPHQL_MAX_ALIASES": "1",
        "GRAPHQL_MAX_BODY": "100",
        "GRAPHQL_AUTH_TOKEN": "a-token-for-this",
    }
    async with gateway(tmp_path, **settings) as closed:
        assert (await closed.post("{ hello }")).status == 401
        token = {"Authorization": "Bearer a-token-for-this"}
        assert (await closed.post("{ hello }", **token)).body == HELLO
        found = await closed.post("{ hell }", **token)
        assert found.body["errors"][0]["message"] == "Cannot query field 'hell' on type 'Query'."
        assert "data" not in (await closed.post("{ __schema { description } }", **token)).body
        assert (await closed.post("{ a: hello b: hello }", **token)).status == 400
        assert (await closed.post(" " * 101, **token)).status == 413
        assert (await closed.ask("GET", "/_/ready")).status == 200
        closed.program.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(closed.program.process.wait(), 60)
        assert closed.program.process.returncode == 0


async def test_only_pages_of_the_origins_in_the_settings_may_read_answers(tmp_path: Path, served: Gateway) -> None:
    ours, other = "https://ours.example", "https://other.example"
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    closed = await served.ask("OPTIONS", FUNCTION, headers={"Origin": ours, **preflight})
    assert [name for name in closed.headers if name.startswith("Access-Control")] == []
    async with gateway(tmp_path, GRAPHQL_ALLOWED_ORIGINS=ours, GRAPHQL_AUTH_TOKEN="a-token-for-this") as opened:
        answer = await opened.ask("OPTIONS", FUNCTION, headers={"Origin": ours, **preflight})
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, ours)
        assert {"POST", "GET"} <= set(answer.headers["Access-Control-Allow-Methods"].split(", "))
        assert {"Content-Type", "Authorization", "Min-Seq"} <= set(answer.headers["Access-Control-Allow-Headers"].split(", "))
        token = {"Authorization": "Bearer a-token-for-this"}
        site = {"Sec-Fetch-Site": "cross-site"}
        for headers, status in ((token, 200), ({}, 401)):
            answer = await opened.post("{ hello }", Origin=ours, **site, **headers)
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (status, ours)
            assert "Origin" in answer.headers["Vary"]
        listed = await opened.ask("GET", "/api/functions", headers={"Origin": ours, **site, **token})
        assert (listed.status, listed.headers["Access-Control-Allow-Origin"]) == (200, ours)
        answer = await opened.post("{ hello }", Origin=other, **site, **token)
        assert (answer.status, "Access-Control-Allow-Origin" in answer.headers) == (403, False)


async def test_long_results_are_compressed_for_clients_that_take_that(served: Gateway) -> None:
    query = "{ __schema { types { name description fields { name description } } } }"
    for encoding, expected in (("gzip, br", "gzip"), ("gzip;q=0", None), ("identity", None), ("br", None)):
        answer = await served.post(query, **{"Accept-Encoding": encoding})
        assert (answer.headers.get("Content-Encoding"), answer.status) == (expected, 200)
        assert answer.body["data"]["__schema"]["types"]
        assert "Accept-Encoding" in answer.headers["Vary"]
    assert "Content-Encoding" not in (await served.post("{ hello }", **{"Accept-Encoding": "gzip"})).headers


async def test_a_part_that_an_error_ends_is_named_and_counted(
    monkeypatch: pytest.MonkeyPatch, nats_url: str, tmp_path: Path
) -> None:
    error = "part 'pantry event stream' ended and is started again: RuntimeError: a fault of the program"

    async def fail(_: Feed) -> None:
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(Feed, "run", fail)
    database = f"sqlite:{tmp_path / 'pantry.db'}"
    async with store_at(database) as store:
        await Migrations(store, MODEL).up()
    settings = Settings(port=0, nats_url=nats_url, pantry_database=database)
    async with listening(settings, opened(settings)) as address, aiohttp.ClientSession(address.url) as http:

        async def noted() -> bool:
            async with http.get("/readyz") as answer:
                return bool((await answer.json()).get("note") == error)

        await wait_until(noted, timeout=30)
        async with http.get("/metrics") as answer:
            assert re.search(r'^parts_failed_total\{part="pantry event stream"\} [1-9]', await answer.text(), re.MULTILINE)
