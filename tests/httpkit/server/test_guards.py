"""Guards of requests: hosts, origins, the token and the cookie in its place."""

from __future__ import annotations

import re

import pytest
import structlog.testing

from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.server.guard import Guard, allowed_hosts, is_loopback
from httpkit.server.serving import serving
from tests.httpkit.raw import ask, parse, send
from tests.httpkit.shop import open_shop

LOOPBACK = Guard(hosts=allowed_hosts("127.0.0.1", ["Gctd.Example"]))
TOKEN = Guard(token="t0p-secret")


@pytest.mark.real
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "localhost.", "[::1]:80", "gctd.example:443"]
)
async def test_the_services_own_hosts_are_served(host: str) -> None:
    async with open_shop(guard=LOOPBACK) as shop:
        assert (await ask(shop.port, "GET /things", host=host)).status == 200


@pytest.mark.real
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8080", "[::2]", "127.0.0.2", "0", ":80"],
)
async def test_a_foreign_host_is_421_so_that_no_page_can_rebind_its_name(host: str) -> None:
    async with open_shop(guard=LOOPBACK) as shop:
        for path in "/things", "/livez", "/nope", "/api/openapi.json", "/events":
            assert (await ask(shop.port, f"GET {path}", host=host)).status == 421


@pytest.mark.real
async def test_the_host_of_an_absolute_target_counts_and_the_header_does_not() -> None:
    async with open_shop(guard=LOOPBACK) as shop:
        assert (await ask(shop.port, "GET http://evil.example/things", host="127.0.0.1")).status == 421
        assert (await ask(shop.port, "GET http://127.0.0.1/things", host="evil.example")).status == 200
        assert (await ask(shop.port, "GET http://[::1]:80/things", host="evil.example")).status == 200


@pytest.mark.real
async def test_no_host_and_two_hosts_are_400() -> None:
    async with open_shop(guard=LOOPBACK) as shop:
        assert (await ask(shop.port, "GET /things", host="")).status == 400
        two = b"GET /things HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert parse(await send(shop.port, two)).status == 400


def test_hosts_are_restricted_on_loopback_and_by_configuration_elsewhere() -> None:
    assert allowed_hosts("0.0.0.0") is None
    assert allowed_hosts("0.0.0.0", ["a.example"]) == frozenset({"a.example"})
    assert "localhost" in (allowed_hosts("::1") or ())
    assert [is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost", "0.0.0.0", "10.0.0.1", "x")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": ""},
]


@pytest.mark.real
@pytest.mark.parametrize("headers", FOREIGN)
async def test_a_change_asked_for_by_a_page_of_another_origin_is_403(headers: dict[str, str]) -> None:
    lines = "".join(f"\n{name}: {value}" for name, value in headers.items())
    async with open_shop() as shop:
        for head in "POST /things", "DELETE /things/t1", "PATCH /things/t1", "POST /echo\nContent-Type: text/plain":
            reply = await ask(shop.port, head + lines, b'{"name":"a","amount":1}', host=f"127.0.0.1:{shop.port}")
            assert reply.status == 403
        assert (await ask(shop.port, f"GET /things{lines}")).status == 200, "reading is left to the browser's own rules"


@pytest.mark.real
async def test_own_pages_programs_and_allowed_origins_may_make_changes() -> None:
    body = b'{"name":"a","amount":1}'
    async with open_shop(guard=Guard(origins=frozenset({"https://board.example"}))) as shop:
        own = f"127.0.0.1:{shop.port}"
        for headers in (
            "",
            f"\nOrigin: http://{own}\nSec-Fetch-Site: same-origin",
            f"\nOrigin: https://{own}",
            "\nSec-Fetch-Site: none",
            "\nOrigin: https://board.example\nSec-Fetch-Site: cross-site",
        ):
            assert (await ask(shop.port, f"POST /things{headers}", body, host=own)).status == 201


@pytest.mark.real
@pytest.mark.parametrize(
    "given",
    [
        "",
        "\nAuthorization: Bearer",
        "\nAuthorization: Bearer wrong",
        "\nAuthorization: Basic t0p-secret",
        "\nAuthorization: Bearer t0p-secret-x",
        "\nAuthorization: Bearer ü",
        "\nCookie: httpkit_session=t0p-secret",
    ],
)
async def test_without_the_token_everything_but_the_probes_is_401(given: str) -> None:
    async with open_shop(guard=TOKEN) as shop:
        for path in "/things", "/events", "/api/openapi.json", "/metrics", "/nope":
            reply = await ask(shop.port, f"GET {path}{given}")
            assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert "t0p" not in str(reply)
        for path in "/livez", "/readyz", "/health":
            assert (await ask(shop.port, f"GET {path}{given}")).status == 200


@pytest.mark.real
async def test_the_token_opens_and_buys_a_cookie_that_opens_too() -> None:
    async with open_shop(guard=TOKEN) as shop:
        assert (await ask(shop.port, "GET /things\nAuthorization: bearer t0p-secret")).status == 200
        assert (await ask(shop.port, "POST /api/session")).status == 401
        reply = await ask(shop.port, "POST /api/session\nAuthorization: Bearer t0p-secret")
        cookie = reply.headers["set-cookie"]
        assert reply.status == 204
        assert re.search("; HttpOnly; SameSite=Strict", cookie)
        assert "t0p-secret" not in cookie
        assert (await ask(shop.port, f"GET /things\nCookie: {cookie.partition(';')[0]}")).status == 200
        gone = await ask(shop.port, "DELETE /api/session")
        assert (gone.status, "Max-Age=0" in gone.headers["set-cookie"]) == (204, True)


@pytest.mark.real
async def test_an_event_stream_opens_with_the_cookie_alone() -> None:
    """An EventSource cannot set a header."""
    async with open_shop(guard=TOKEN) as shop:
        reply = await ask(shop.port, "POST /api/session\nAuthorization: Bearer t0p-secret")
        cookie = reply.headers["set-cookie"].partition(";")[0]
        async with shop.http.get("/events", headers={"Cookie": cookie}) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            assert (await response.content.readline()).startswith(b"retry: ")


@pytest.mark.real
@pytest.mark.parametrize("path", ["/things", "/things/t1", "/events", "/nope"])
async def test_no_page_of_another_origin_is_ever_given_leave(path: str) -> None:
    asked = "Origin: https://evil.example\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type"
    async with open_shop() as shop:
        for method in "OPTIONS", "POST", "DELETE":
            reply = await ask(shop.port, f"{method} {path}\n{asked}")
            assert [name for name in reply.headers if name.startswith("access-control")] == []


@pytest.mark.real
@pytest.mark.parametrize(
    ("host", "token", "warned"), [("0.0.0.0", None, True), ("0.0.0.0", "t0p", False), ("127.0.0.1", None, False)]
)
async def test_an_open_address_without_a_token_is_warned_of(host: str, token: str | None, *, warned: bool) -> None:
    edge = Edge(title="x", version="1", guard=Guard(token=token))
    with structlog.testing.capture_logs() as logs:
        async with serving(build_application([], None, edge, health=Health({})), edge, host=host, port=0):
            pass
    assert ([line["log_level"] for line in logs if "no token is set" in line["event"]] == ["warning"]) == warned


@pytest.mark.real
async def test_refusals_are_counted_by_reason() -> None:
    async with open_shop(guard=TOKEN) as shop:
        await ask(shop.port, "GET /things")
        reply = await ask(shop.port, "GET /metrics\nAuthorization: Bearer t0p-secret")
        assert b'http_requests_refused_total{reason="Unauthorized"} 1.0' in reply.body


def test_a_token_is_not_in_the_text_of_a_guard() -> None:
    assert "t0p" not in repr(TOKEN)
