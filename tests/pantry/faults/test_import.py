"""Imports without the broker, or without their answers: rows with an unknown result are named, and none is booked twice."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import ClientTimeout, web

from eventlog import Context, Unavailable
from eventlog.commands import MOST_IN_ONE_COMMIT, Commands
from eventlog.testing.memory import MemoryLog
from pantry.commands import imports
from pantry.commands.execution import Execution, NewMovement
from pantry.commands.imports import Imports
from pantry.commands.pantry import Pantry
from pantry.domain.errors import InsufficientStock
from pantry.domain.ledger import PRODUCT, CreateProduct
from pantry.domain.product import Details, MovementType
from pantry.domain.registry import REGISTRY
from tests.support.pantry.system import FLOUR, MILK, PantrySystem, Server, pantry_system
from tests.support.programs.cli import Result, pantry

TABLE = f"product_ean13;type;quantity\n{FLOUR};in;2\n{MILK};out;1\n{MILK};in;x\n"


@asynccontextmanager
async def kept(directory: Path) -> AsyncIterator[PantrySystem]:
    """A pantry with flour and milk, both without stock."""
    async with pantry_system(directory) as system:
        for code in (FLOUR, MILK):
            await system.one.create(code)
        yield system


async def imported(system: PantrySystem, home: Path, *arguments: str, url: str | None = None) -> Result:
    """How an import of the table ends."""
    environment = {name: value for name, value in system.one.environment.items() if name.startswith("PANTRY_")}
    given = environment if url is None else environment | {"PANTRY_URL": url}
    return await pantry("movement", "import", "-", *arguments, home=home, env=given, typed=TABLE)


@asynccontextmanager
async def between(
    server: Server, answered: Callable[[dict[str, Any]], Awaitable[object]]
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that passes requests on, and answers with the result of `answered` on the document. None cuts the connection.

    Yield its address, and the idempotency keys of the requests.
    """
    keys: list[str] = []

    async def passed(request: web.Request) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name in {"Content-Type", "Idempotency-Key"}}
        keys.append(headers["Idempotency-Key"])
        address = server.url + request.path_qs
        async with server.http.request(
            request.method, address, data=await request.read(), headers=headers, timeout=ClientTimeout(60)
        ) as answer:
            document = await answered(await answer.json())
        if document is None:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(document)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", passed)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", keys
    finally:
        await runner.cleanup()


@pytest.mark.real
async def test_rows_that_the_log_did_not_answer_are_not_known_and_are_sent_again_under_the_same_key(tmp_path: Path) -> None:
    async with kept(tmp_path) as system:
        answers: list[dict[str, Any]] = []

        async def answered(document: dict[str, Any]) -> object:
            answers.append(document)
            if len(answers) == 1:
                await system.nats.start()
                await system.one.ready()
            return document

        await system.nats.kill()
        async with between(system.one, answered) as (url, keys):
            done = await imported(system, tmp_path, url=url)
        assert [[row["status"] for row in answer["results"]] for answer in answers] == [[503, 503, 400], [201, 422, 400]]
        assert [[answer[name] for name in ("accepted", "refused", "unknown")] for answer in answers] == [[0, 1, 2], [1, 2, 0]]
        assert (done.code, done.err) == (7, "1 row booked, 2 refused\n")
        assert (len(keys), len(set(keys))) == (2, 1)
        assert await system.one.stock(FLOUR) == 2


@pytest.mark.real
async def test_unknown_rows_are_told_apart_from_refusals_and_repeated_by_a_person_under_the_key(tmp_path: Path) -> None:
    async def answered(document: dict[str, Any]) -> object:
        rows = [row if row["status"] != 201 else {**row, "status": 503, "error": "late"} for row in document["results"]]
        return document | {"accepted": 0, "unknown": document["accepted"], "results": rows}

    async with kept(tmp_path) as system:
        async with between(system.one, answered) as (url, keys):
            cut = await imported(system, tmp_path, url=url)
        assert cut.code == 7
        assert [row[:2] for row in cut.rows[1:]] == [["1", "503"], ["2", "422"], ["3", "400"]]
        found = re.fullmatch(r"0 rows booked, 2 refused, 1 not known: repeat the command with --key (\S+)\n", cut.err)
        assert found is not None, cut.err
        assert keys == [found[1]] * 2
        for _ in range(2):
            done = await imported(system, tmp_path, "--key", found[1])
            assert (done.code, done.err) == (7, "1 row booked, 2 refused\n")
        assert await system.one.stock(FLOUR) == 2


@pytest.mark.real
async def test_an_import_without_an_answer_names_the_key_to_repeat_it_with(tmp_path: Path) -> None:
    async def answered(document: dict[str, Any]) -> object:
        del document
        return None

    async with kept(tmp_path) as system:
        async with between(system.one, answered) as (url, keys):
            cut = await imported(system, tmp_path, "--json", url=url)
        assert (cut.code, cut.out, cut.error["code"]) == (6, "", "unavailable")
        assert cut.error["message"].endswith("; rows of it may have taken effect")
        assert cut.error["hint"] == f"repeat the command with --key {keys[0]}"
        assert (await imported(system, tmp_path, "--key", keys[0])).err == "1 row booked, 2 refused\n"
        assert await system.one.stock(FLOUR) == 2


@pytest.mark.parametrize("at_a_time", [imports.AT_A_TIME, MOST_IN_ONE_COMMIT])
async def test_a_row_behind_rows_that_are_not_known_is_not_refused_for_the_stock_without_them(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    """Also if the rows of a product come in several parts. The rows of other products are judged as ever."""
    monkeypatch.setattr(imports, "AT_A_TIME", at_a_time)
    log = MemoryLog(REGISTRY)
    execution = Execution(log, Commands(log))
    details = Details(name="Flour", description="", unit="kg", min_stock=0, category_id=None)
    for code in (FLOUR, MILK):
        created = CreateProduct(ean13=code, details=details, at=execution.now())
        await execution.commands.execute(PRODUCT, code, created)
    comes = [NewMovement(ean13=FLOUR, type=MovementType.IN, quantity=1)] * MOST_IN_ONE_COMMIT
    goes = [NewMovement(ean13=code, type=MovementType.OUT, quantity=2) for code in (FLOUR, MILK)]
    late = NewMovement(ean13=FLOUR, type=MovementType.IN, quantity=1)
    rows = dict(enumerate([*comes, *goes, late], 1))
    log.refuse_next(Unavailable("the log does not answer"))
    found: dict[int, object] = {}
    async for some in Imports(execution, cast("Pantry", None)).book(rows, Context()):
        found |= some
    unknown, milk, booked = found[len(comes) + 1], found[len(comes) + 2], found[len(comes) + 3]
    assert all(isinstance(found[number], Unavailable) for number in range(1, len(comes) + 1))
    assert isinstance(unknown, Unavailable), unknown
    assert "an earlier row of the product" in str(unknown)
    assert isinstance(milk, InsufficientStock)
    assert not isinstance(booked, Exception), "it took effect"
