"""The library of `examples/loans`, and docs/second-service.md, which explains it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest_asyncio

from eventlog.testing import given
from examples.loans.service import BOOK, SERVICE, BookAdded, BookLent, BookRemoved, BookReturned, Refused, Unknown
from projections.model import ColumnType
from servicekit import ServiceSettings
from tests.servicekit.examples.test_tutorial import statements
from tests.support import ROOT

PAGE = (ROOT / "docs" / "second-service.md").read_text(encoding="utf-8")
REPEATED = "Idempotent-Replayed"
EXAMPLE = (ROOT / "examples" / "loans" / "service.py").read_text(encoding="utf-8")


def test_the_page_shows_parts_of_the_example() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    _, there = statements(EXAMPLE)
    assert [shown for block in blocks for shown in statements(block)[1] if shown not in there] == []
    assert all(f"`{name}`" in PAGE for name in get_args(ColumnType))


def test_its_rules() -> None:
    given(BOOK, BookAdded("Emma"), BookLent("anna")).when(BookReturned("anna")).then(BookReturned("anna"))
    given(BOOK, BookAdded("Emma"), BookLent("anna")).when(BookRemoved()).then_refused(Refused, match="lent to anna")
    given(BOOK, BookAdded("Emma"), BookRemoved()).when(BookLent("bob")).then_refused(Unknown)
    given(BOOK, BookAdded("Emma")).when(BookRemoved()).then(BookRemoved())


@pytest_asyncio.fixture
async def library(nats_url: str, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    settings = ServiceSettings(port=0, nats_url=nats_url, database_url=f"sqlite:{tmp_path / 'loans.db'}")
    async with SERVICE.listening(settings) as address, aiohttp.ClientSession(address.url) as http:
        yield http


async def ask(library: aiohttp.ClientSession, request: str, document: Any = None, key: str | None = None) -> tuple[int, Any, str]:
    """Status and document of an answer, and whether it is a repetition."""
    method, path = request.split()
    headers = {} if key is None else {"Idempotency-Key": key}
    async with library.request(method, path, json=document, headers=headers) as response:
        text = await response.text()
        return response.status, await response.json(content_type=None) if text else None, response.headers.get(REPEATED, "")


async def test_its_statuses_are_those_of_the_page(library: aiohttp.ClientSession) -> None:
    emma = {"id": "emma", "title": "Emma"}
    assert await ask(library, "POST /api/books", emma) == (201, {**emma, "borrower": None}, "")
    assert (await ask(library, "GET /api/books/emma"))[0] == 200
    assert (await ask(library, "GET /api/books/none"))[0] == 404
    assert (await ask(library, "POST /api/books/none/lend", {"member": "anna"}))[0] == 404
    assert (await ask(library, "POST /api/books/emma/lend", {"member": ""}))[0] == 400
    assert (await ask(library, "POST /api/books", emma))[0] == 409
    assert (await ask(library, "GET /api/loans?member=anna&more=1"))[0] == 400
    assert (await ask(library, "GET /api/books/NOT-A-FORM"))[0] == 404
    assert await ask(library, "DELETE /api/books/emma") == (204, None, "")
    assert (await ask(library, "GET /api/books/emma"))[0] == 404


async def test_loans_are_rows_from_events_that_a_parameter_filters(library: aiohttp.ClientSession) -> None:
    for id_, member in ("emma", "anna"), ("ilias", "bob"):
        await ask(library, "POST /api/books", {"id": id_, "title": id_})
        assert (await ask(library, f"POST /api/books/{id_}/lend", {"member": member}))[0] == 200
    status, loans, _ = await ask(library, "GET /api/loans?member=anna")
    assert (status, [(loan["member"], loan["book"]) for loan in loans]) == (200, [("anna", "emma")])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", loans[0]["lent_at"])
    await ask(library, "POST /api/books/emma/return", {"member": "anna"})
    _, loans, _ = await ask(library, "GET /api/loans")
    assert [loan["book"] for loan in loans] == ["ilias"]


async def test_a_key_gives_the_outcome_again_and_a_refusal_is_decided_again(library: aiohttp.ClientSession) -> None:
    await ask(library, "POST /api/books", {"id": "emma", "title": "Emma"})
    lend, back = "POST /api/books/emma/lend", "POST /api/books/emma/return"
    first = await ask(library, lend, {"member": "anna"}, "k1")
    assert (await ask(library, lend, {"member": "bob"}, "k2"))[0] == 409
    assert (await ask(library, lend, {"member": "bob"}, "k1"))[0] == 422
    await ask(library, back, {"member": "anna"})
    assert await ask(library, lend, {"member": "anna"}, "k1") == (*first[:2], "true")
    assert (await ask(library, lend, {"member": "bob"}, "k2"))[0] == 200
