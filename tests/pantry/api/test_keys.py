"""Idempotency keys: a request takes effect once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pantry.api.answers import name, problem
from tests.support.pantry.system import API, PantrySystem, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


async def test_a_key_takes_effect_once_however_often_it_comes(server: Server, running: PantrySystem, code: str) -> None:
    await server.create(code)
    document = {"product_ean13": code, "type": "in", "quantity": 1}
    headers = {"Idempotency-Key": f"key-{code}"}
    answers = await asyncio.gather(*(server.post("/movements", document, **headers) for _ in range(20)))
    assert {answer.status for answer in answers} == {201}
    assert len({json.dumps(answer.body, sort_keys=True) for answer in answers}) == 1
    problem(await server.post("/movements", {**document, "quantity": 2}, **headers), 422, "key")
    await server.kill()
    await server.start()
    again = await server.post("/movements", document, **headers)
    assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (201, answers[0].body, "true")
    assert await server.stock(code) == 1
    assert (
        len([event for event in await running.events(f"pantry.product.{code}") if type(event).__name__ == "MovementRecorded"])
        == 1
    )


async def test_every_post_takes_a_key(server: Server, new_code: Callable[[], str]) -> None:
    code, wanted = new_code(), name()
    calls: list[tuple[str, Any]] = [
        ("/categories", {"name": wanted}),
        (f"/products/{code}", {"name": "a", "unit": "kg"}),
        ("/movements", {"product_ean13": code, "type": "in", "quantity": 7}),
        (f"/products/{code}/count", {"counted": 5}),
        (f"/products/{code}/count", {"counted": 5}),
        (f"/products/{code}/activate", {}),
    ]
    for number, (path, document) in enumerate(calls):
        headers = {"Idempotency-Key": f"{code}-{number}"}
        first = await server.post(path, document, **headers)
        second = await server.post(path, document, **headers)
        assert first.status == second.status < 300, (path, first, second)
        assert first.body == second.body, path
    movement = (await server.get(f"/products/{code}/movements"))[-1]["id"]
    headers = {"Idempotency-Key": f"{code}-undo"}
    await server.moved("in", 10, code)
    undone = [await server.post(f"/movements/{movement}/undo", **headers) for _ in range(2)]
    assert [answer.status for answer in undone] == [201, 201]
    assert undone[0].body == undone[1].body
    assert await server.stock(code) == 8


async def test_a_repeated_request_without_effect_has_no_effect(server: Server, code: str) -> None:
    await server.create(code)
    before = await server.get(f"/products/{code}")
    headers = {"Idempotency-Key": f"{code}-active"}
    first = await server.post(f"/products/{code}/activate", {}, **headers)
    assert first.body == before == await server.get(f"/products/{code}")
    await server.ask("DELETE", f"{API}/products/{code}")
    again = await server.post(f"/products/{code}/activate", {}, **headers)
    assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (200, first.body, "true")
    assert (await server.get(f"/products/{code}"))["active"] is False
