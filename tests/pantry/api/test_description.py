"""The pantry's own description, on a running server: it is sound, and the service keeps to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from pantry.domain.gtin import own_code
from tests.support.pantry.system import API, Server
from tests.support.web.contract import schemathesis

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

CONFIGURATION = """
[[operations]]
include-name = ["POST /api/v1/movements", "POST /api/v1/movements/{id}/undo", "POST /api/v1/products/{ean13}/count"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 422]

[[operations]]
include-name = ["POST /api/v1/movements:batch", "POST /api/v1/products:batch"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]
"""
"""Rules without a schema: whether the stock allows a movement, and that CSV begins with a line of names."""


async def test_the_document_is_sound_and_each_operation_has_a_summary_and_its_errors(server: Server) -> None:
    document: dict[str, Any] = (await server.ask("GET", "/api/openapi.json")).body
    OpenAPIV31SpecValidator(document).validate()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["tags"], where
            assert {"400", "500", "503"} <= operation["responses"].keys(), where


async def test_an_event_stream_resumes_by_the_query_that_the_document_names(server: Server, code: str) -> None:
    document: dict[str, Any] = (await server.ask("GET", "/api/openapi.json")).body
    names = {parameter["name"] for parameter in document["paths"]["/api/v1/events"]["get"]["parameters"]}
    assert "last_event_id" in names
    await server.create(code)
    seen, missed = [int((await server.move("in", 1, code)).headers["Event-Sequence"]) for _ in range(2)]
    async with server.http.get(f"{server.url}{API}/events?events=stock&last_event_id={seen}") as answer:
        assert answer.status == 200, await answer.text()
        told = await answer.content.readuntil(b"data: ")
    assert f"id: {missed}\n" in told.decode()


@pytest.mark.parametrize("fuzzing", [pytest.param(False, id="limits"), pytest.param(True, id="fuzzing", marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
async def test_schemathesis_finds_nothing(server: Server, tmp_path: Path, fuzzing: bool, seed: int) -> None:
    """`use_after_free` is left out: a product that was deleted is not gone, it is inactive, as specified."""
    category = (await server.post("/categories", {"name": f"known {fuzzing}"})).body["id"]
    code = own_code(int(fuzzing))
    await server.create(code, category_id=category)
    await server.moved("in", 10, code)
    await schemathesis(
        f"{server.url}/api/openapi.json",
        tmp_path,
        seed=seed if fuzzing else None,
        hooks="tests.support.pantry.formats",
        streams="/events$",
        configuration=CONFIGURATION,
        known={"KNOWN_PRODUCT": code, "KNOWN_CATEGORY": category},
        without="use_after_free",
    )
    assert (await server.ask("GET", "/readyz")).status == 200
