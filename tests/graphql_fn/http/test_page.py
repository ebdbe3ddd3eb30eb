"""The page for writing queries as it is served: to browsers only, whole, under a strict content policy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.web.graphql import Gateway, gateway

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
TOKEN = "a token of the gateway"
PATHS = ["/", "/function/graphql"]


def inline(text: str) -> list[str]:
    """Return the parts of a page that a strict policy would block."""
    return re.findall(r"<style|<[^>]*\sstyle=|<[^>]*\son\w+=\"|<script(?![^>]*\ssrc=\")|\beval\(", text)


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_and_its_files_are_served_under_a_strict_policy(served: Gateway) -> None:
    index = (await served.ask("GET", "/", headers={"Accept": BROWSER})).body
    wanted = [name for name in re.findall(r'(?:src|href)="([^"]+)"', index) if not name.startswith("data:")]
    assert wanted
    for path in [*PATHS, *wanted]:
        answer = await served.ask("GET", path, headers={"Accept": BROWSER})
        assert answer.status == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
    assert inline(index) == []


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_only_a_client_that_accepts_html_gets_the_page(served: Gateway) -> None:
    page = await served.ask("GET", "/function/graphql", headers={"Accept": BROWSER})
    assert "Accept" in page.headers["Vary"].split(", ")
    for accept in ("application/json", "*/*", "text/html;q=0.5, application/json", "application/json, text/html"):
        answer = await served.ask("GET", "/function/graphql", params={"query": "{ hello }"}, headers={"Accept": accept})
        assert (answer.status, list(answer.body)) == (200, ["data"])
    assert (await served.ask("GET", "/function/none", headers={"Accept": BROWSER})).status == 404
    assert (await served.post("{ hello }", Accept="text/html")).status == 406


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_of_a_gateway_with_a_token_can_be_read_and_signs_in(tmp_path: Path) -> None:
    async with gateway(tmp_path, GRAPHQL_AUTH_TOKEN=TOKEN) as guarded:
        for path in PATHS:
            assert (await guarded.ask("GET", path, headers={"Accept": BROWSER})).status == 200
        for accept in ("application/json", "text/event-stream"):
            answer = await guarded.ask("GET", "/function/graphql", params={"query": "{ hello }"}, headers={"Accept": accept})
            assert answer.status == 401
        assert (await guarded.ask("GET", "/api/functions")).status == 401
        signed_in = await guarded.ask("POST", "/api/session", headers={"Authorization": f"Bearer {TOKEN}"})
        cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
        assert (await guarded.ask("GET", "/api/functions", headers=cookie)).body == {"functions": ["graphql"]}
        assert (await guarded.post("{ hello }", **cookie)).status == 200
        document = (await guarded.ask("GET", "/api/openapi.json", headers=cookie)).body
        assert document["paths"]["/function/{name}"]["get"].get("security") != []
