"""Hostile requests of 20 kinds: each is answered, or refused with a code, and leaves the gateway as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.pace import within
from tests.support.pantry.stocked import stocked
from tests.support.web.graphql import Answer, Gateway, gateway
from tests.support.web.hostile_queries import KINDS, PATH, Hostile

pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMEOUT = 30
"""The budget of time in seconds, for a busy machine."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pantry(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """The gateway on a pantry with 1,000 products."""
    directory = tmp_path_factory.mktemp("hostile")
    await stocked(directory / "pantry.db", products=1000, movements=4, categories=25)
    settings = {"GRAPHQL_PANTRY_DATABASE": f"sqlite:{directory / 'pantry.db'}", "GRAPHQL_QUERY_TIMEOUT": f"{TIMEOUT}s"}
    async with gateway(directory, **settings) as running:
        yield running


async def send(pantry: Gateway, kind: Hostile) -> Answer:
    """The answer to a hostile request."""
    return await pantry.ask("POST", PATH, data=kind.body, headers={"Content-Type": kind.content_type})


async def test_there_are_20_kinds() -> None:
    assert len(KINDS) == 20


@pytest.mark.real
@pytest.mark.parametrize("name", KINDS)
async def test_a_hostile_request_is_answered_or_refused_with_a_code_within_the_budget(pantry: Gateway, name: str) -> None:
    kind = KINDS[name]
    with within(TIMEOUT):
        answer = await send(pantry, kind)
    if kind.code is None:
        assert (answer.status, "errors" in answer.body) == (200, False)
        assert answer.body["data"]
    elif isinstance(kind.code, int):
        assert (answer.status, answer.body["status"]) == (kind.code, kind.code)
    else:
        assert "data" not in answer.body
        assert {error["extensions"]["code"] for error in answer.body["errors"]} == {kind.code}
        assert len(answer.body["errors"]) <= 101
        assert answer.status in {200, 400}
    hello = await pantry.post("{ hello }")
    assert hello.status == 200


@pytest.mark.real
async def test_invalid_documents_are_not_cached(pantry: Gateway) -> None:
    async def cached() -> float:
        text = str((await pantry.ask("GET", "/metrics")).body)
        name = 'graphql_documents{function="pantry"} '
        return next(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))

    before = await cached()
    for kind in KINDS.values():
        if kind.code in {"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}:
            await send(pantry, kind)
    assert await cached() == before
