"""Operation: probes, logs, caching of pages, the time limit."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.pages import POLICY, Pages
from httpkit.routes import Answer, Call, Nothing, Route
from httpkit.server.serving import serving
from terminalkit import logs
from tests.httpkit.raw import ask
from tests.httpkit.shop import Away, NotFromHere, Shop, TablesAt, open_shop
from tests.support.pace import within


async def fine() -> None: ...


@pytest.mark.real
async def test_alive_and_ready_have_their_bodies() -> None:
    async with open_shop(health=Health({"database": fine, "broker": fine})) as shop:
        for path in "/livez", "/health", "/readyz":
            reply = await ask(shop.port, f"GET {path}")
            assert (reply.status, reply.headers["content-type"], reply.json) == (200, "application/json", {"status": "ok"})


@pytest.mark.real
async def test_readiness_says_what_is_away_within_its_bound_and_what_a_fault_says_stays_inside() -> None:
    async def away() -> None:
        raise Away("the broker cannot be reached")

    async def hanging() -> None:
        await asyncio.sleep(30)

    async def faulty() -> None:
        raise RuntimeError("password=hunter2")

    async def upstream() -> None:
        raise NotFromHere(404)

    checks = {"a": fine, "b": away, "c": hanging, "d": faulty, "e": upstream}
    async with open_shop(health=Health(checks, bound=0.2)) as shop:
        with within(8):
            reply = await ask(shop.port, "GET /readyz")
        assert reply.status == 503
        assert reply.json == {
            "status": "error",
            "reason": "b: the broker cannot be reached; c: no answer within 0.2 s; d: RuntimeError; e: NotFromHere",
        }
        assert (await ask(shop.port, "GET /livez")).status == 200


@pytest.fixture
def sink() -> Iterator[io.StringIO]:
    """Where the process logs to during a test; how it logged before comes back."""
    root = logging.getLogger()
    handlers, level, before = root.handlers[:], root.level, structlog.get_config()
    yield io.StringIO()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    structlog.configure(**before)


def fail(secret: str = "") -> None:
    raise RuntimeError(f"why {len(secret)}")


def test_logs_are_json_lines_with_level_time_logger_and_request_id_also_those_of_libraries(sink: io.StringIO) -> None:
    logs.configure_logs(level="info", style="json", stream=sink)
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger("ours").info("it began", value=1, thing=object)
        logging.getLogger("theirs").warning("it %s", "broke")
        try:
            fail()
        except RuntimeError:
            structlog.get_logger("ours").exception("it failed")
    structlog.get_logger("ours").debug("not shown")
    logging.getLogger("theirs").debug("not shown")
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [(line["logger"], line["level"], line["event"], line["request_id"]) for line in lines] == [
        ("ours", "info", "it began", "r-1"),
        ("theirs", "warning", "it broke", "r-1"),
        ("ours", "error", "it failed", "r-1"),
    ]
    assert lines[0]["value"] == 1
    assert lines[0]["timestamp"].endswith("Z")
    assert "RuntimeError: why " in lines[2]["exception"]


def test_logs_for_reading_show_no_values_of_variables(sink: io.StringIO) -> None:
    logs.configure_logs(level="debug", style="text", stream=sink)
    password = f"hunter{2}"
    try:
        fail(password)
    except RuntimeError:
        structlog.get_logger("ours").exception("it failed", size=len(password))
    text = sink.getvalue()
    assert "it failed" in text
    assert "RuntimeError: why " in text
    assert "hunter2" not in text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with pages."""
    root = tmp_path / "some_pages"
    (root / "dist" / "assets").mkdir(parents=True)
    (root / "__init__.py").touch()
    (root / "dist" / "index.html").write_text("<!doctype html><title>x</title>" + " " * 2000)
    (root / "dist" / "assets" / "app-3fJ9xQ2a.js").write_text("export {}" + ";" * 2000)
    (root / "dist" / "logo.svg").write_text("<svg/>")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "some_pages"
    sys.modules.pop("some_pages", None)


async def get(port: int, path: str, **headers: str) -> Any:
    lines = "".join(f"\n{name.replace('_', '-')}: {value}" for name, value in headers.items())
    return await ask(port, f"GET {path}{lines}")


STRICT = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.real
async def test_pages_are_served_strictly_and_cached_for_ever_only_where_their_name_has_a_hash(package: str) -> None:
    edge = Edge(title="x", version="1")
    pages = Pages(package, "dist", paths=("/", "/tasks/{id}"))
    app = build_application([], None, edge, health=Health({}), pages=pages)
    async with serving(app, edge, host="127.0.0.1", port=0) as address:
        index = await get(address.port, "/")
        assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert (index.headers["cache-control"], index.headers["content-security-policy"]) == ("no-cache", POLICY)
        assert {name: index.headers[name] for name in STRICT} == STRICT
        assert (await get(address.port, "/tasks/7")).body == index.body
        again = await get(address.port, "/", If_None_Match=index.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        script = await get(address.port, "/assets/app-3fJ9xQ2a.js", Accept_Encoding="gzip, br")
        assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert (script.headers["content-encoding"], script.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert gzip.decompress(script.body).startswith(b"export {}")
        for refusing in "gzip;q=0", "br", "*;q=0":
            assert (
                "content-encoding" not in (await get(address.port, "/assets/app-3fJ9xQ2a.js", Accept_Encoding=refusing)).headers
            )
        logo = await get(address.port, "/logo.svg", Accept_Encoding="gzip")
        assert (logo.headers["content-type"], "content-encoding" in logo.headers) == ("image/svg+xml; charset=utf-8", False)
        for path in "/assets/none.js", "/../__init__.py", "/assets/..%2f..%2f__init__.py":
            assert (await get(address.port, path)).status == 404


def test_pages_without_an_index_are_refused(package: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"dist has no home\.html"):
        Pages(package, "dist", index="home.html")


def test_pages_that_are_not_built_say_how_to_build_them_at_each_of_their_addresses(package: str) -> None:
    served = Pages(package, "dashboard", paths=("/", "/tasks/{id}"), answers_all=True, built=True)
    assert set(served.by_path) == {"/", "/tasks/{id}", "/index.html"}
    page = served.by_path["/"].body.decode()
    assert {asset.body.decode() for asset in served.by_path.values()} == {page}
    assert served.missing is served.by_path["/"]
    assert "<code>./scripts/up</code>" in page
    assert not re.search(r"<style|<script|\sstyle=|\son\w+=|//", page), (
        "the policy of pages would block it, or another host is asked"
    )
    assert Pages(package, "dist", built=True).by_path.keys() == Pages(package, "dist").by_path.keys()


@pytest.mark.real
async def test_the_answer_to_a_command_follows_once_reads_show_it() -> None:
    shown = list[tuple[int, bool]]()

    class Noting(TablesAt):
        async def acknowledge(self, sequence: int, *, immediate: bool) -> None:
            await asyncio.sleep(0)
            shown.append((sequence, immediate))

    async def at(_: Nothing, __: Call[Shop]) -> Answer[Sequence[int]]:
        return Answer([sequence for sequence, _ in shown], sequence=len(shown) + 5)

    table = (
        Route("GET", "/written", at, summary="Look"),
        Route("POST", "/written", at, summary="Write"),
        Route("POST", "/at-once", at, summary="Write at once", immediate=True),
    )
    async with open_shop(table=table, tables=Noting(lambda: 7)) as shop:
        answers = [
            await ask(shop.port, request) for request in ("GET /written", "POST /written", "POST /at-once", "GET /written")
        ]
    assert [(reply.json, reply.headers["event-sequence"]) for reply in answers] == [
        ([], "5"),
        ([], "5"),
        ([5], "6"),
        ([5, 6], "7"),
    ]
    assert shown == [(5, False), (6, True)]
