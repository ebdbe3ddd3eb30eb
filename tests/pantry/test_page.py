"""The kitchen's page as it is served: whole, under a strict content policy, with nothing from anywhere else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pantry.domain.product import NAME_LENGTH, UNIT_LENGTH
from pantry.http.events import NAMES
from tests.support import ROOT
from tests.support.pantry.system import FLOUR, PantrySystem, Server, pantry_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "a token of the kitchen"
KINDS = {
    "js": "javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}


def inline(text: str) -> list[str]:
    """Return the parts of a page that a strict policy would block."""
    return re.findall(r"<style|<[^>]*\sstyle=|<[^>]*\son\w+=\"|<script(?![^>]*\ssrc=\")|eval\(", text)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A server that wants a token."""
    async with pantry_system(tmp_path_factory.mktemp("page"), PANTRY_AUTH_TOKEN=TOKEN) as system:
        yield system


@pytest.mark.real
async def test_the_page_and_all_that_it_asks_for_need_no_token_and_have_a_strict_policy(guarded: PantrySystem) -> None:
    index = (await guarded.one.ask("GET", "/")).body
    wanted = [name for name in re.findall(r'(?:src|href)="([^"]+)"', index) if not name.startswith(("data:", "api/"))]
    assert wanted
    for path in ("/", *(f"/{name.removeprefix('./')}" for name in wanted)):
        answer = await guarded.one.ask("GET", path)
        assert answer.status == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'")
        assert "unsafe" not in policy.replace("'wasm-unsafe-eval'", "")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert KINDS.get(path.rpartition(".")[2], "text/html") in answer.headers["Content-Type"]
        assert inline(str(answer.body)) == []


async def test_the_page_agrees_with_the_api_on_lengths_and_events() -> None:
    limits = [str(NAME_LENGTH), str(UNIT_LENGTH)]
    assert re.findall(r"const \w+_LENGTH = (\d+);", (ROOT / "ui" / "pantry" / "create.tsx").read_text("utf-8")) == limits
    [followed] = re.findall(r"names: \[([^\]]+)\]", (ROOT / "ui" / "pantry" / "data" / "live.ts").read_text("utf-8"))
    assert {name.strip('" ') for name in followed.split(",")} <= set(NAMES)


@pytest.mark.real
async def test_a_page_reads_follows_and_books_after_its_sign_in(guarded: PantrySystem) -> None:
    server: Server = guarded.one
    refused = await server.ask("GET", "/api/v1/products?active=true")
    assert (refused.status, "token" in refused.body["error"]) == (401, True)
    assert (await server.ask("POST", "/api/v1/session", headers={"Authorization": "Bearer wrong"})).status == 401
    signed_in = await server.ask("POST", "/api/v1/session", headers={"Authorization": f"Bearer {TOKEN}"})
    assert signed_in.status == 204
    cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
    assert {"HttpOnly", "SameSite=Strict"} <= set(signed_in.headers["Set-Cookie"].split("; "))
    assert (await server.ask("GET", "/api/v1/products?active=true", headers=cookie)).status == 200
    made = await server.post(f"/products/{FLOUR}", {"name": "Flour", "unit": "kg"}, **cookie, Origin=server.url)
    assert made.status == 201
    async with server.http.get(f"{server.url}/api/v1/events?events=stock,product", headers=cookie) as stream:
        assert (stream.status, stream.content_type) == (200, "text/event-stream")
    forged = await server.post("/movements", {}, **cookie, Origin="https://elsewhere.example")
    assert forged.status == 403
