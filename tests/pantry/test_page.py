"""The kitchen's page as it is served: whole, under a strict content policy, with nothing from anywhere else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib.resources import files

import pytest
import pytest_asyncio

from pantry.domain.product import NAME_LENGTH, UNIT_LENGTH
from pantry.http.events import NAMES
from tests.support.pantry import FLOUR, PantrySystem, Server, pantry_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "a token of the kitchen"
FILES = sorted(entry.name for entry in files("pantry.http").joinpath("page").iterdir())
PATHS = ["/", *(f"/static/{name}" for name in FILES)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A server that wants a token."""
    async with pantry_system(tmp_path_factory.mktemp("page"), PANTRY_AUTH_TOKEN=TOKEN) as system:
        yield system


@pytest.mark.parametrize("path", PATHS)
async def test_the_page_needs_no_token_and_has_a_strict_policy(guarded: PantrySystem, path: str) -> None:
    answer = await guarded.one.ask("GET", path)
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    kind = {"js": "javascript", "css": "text/css"}.get(path.rpartition(".")[2], "text/html")
    assert kind in answer.headers["Content-Type"]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_comes_from_elsewhere_and_nothing_is_inline(guarded: PantrySystem, path: str) -> None:
    text = (await guarded.one.ask("GET", path)).body
    assert re.findall(r"(?:https?:|wss?:)?//[\w.-]+\.\w+", re.sub(r"^\s*//.*$|\s// .*$", "", text, flags=re.MULTILINE)) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=\"|<script(?![^>]*\ssrc=\")|innerHTML|eval\(", text) == []


async def test_what_the_page_loads_is_served(guarded: PantrySystem) -> None:
    index = (await guarded.one.ask("GET", "/")).body
    wanted = {name for name in re.findall(r'(?:src|href)="([^"]+)"', index) if not name.startswith(("data:", "api/"))}
    scripts = {name: files("pantry.http").joinpath("page", name).read_text("utf-8") for name in FILES if name.endswith(".js")}
    wanted |= {f"static/{name}" for text in scripts.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    assert wanted == {f"static/{name}" for name in FILES if name != "index.html"}
    ids = set(re.findall(r'id="([\w-]+)"', index))
    assert {name for text in scripts.values() for name in re.findall(r'\$\("([\w-]+)"\)', text)} <= ids
    assert set(re.findall(r'(?:for|list|aria-labelledby|aria-describedby)="([\w-]+)"', index)) <= ids


async def test_the_page_agrees_with_the_api_on_lengths_and_events(guarded: PantrySystem) -> None:
    index = (await guarded.one.ask("GET", "/")).body
    assert re.findall(r'id="new-(?:name|unit)" maxlength="(\d+)"', index) == [str(NAME_LENGTH), str(UNIT_LENGTH)]
    [followed] = re.findall(r"follow\(\[([^\]]+)\]", (await guarded.one.ask("GET", "/static/page.js")).body)
    assert {name.strip('" ') for name in followed.split(",")} <= set(NAMES)


async def test_a_page_signs_in_for_what_it_reads_follows_and_books(guarded: PantrySystem) -> None:
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
