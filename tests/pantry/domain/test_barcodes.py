"""Codes are names of a product: of any length, with a pack factor, each for one product, also if two servers race."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given as for_any
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from pantry.domain import ean13, gtin
from pantry.domain.barcode import BARCODE, AssignBarcode, BarcodeAssigned, BarcodeRemoved, RemoveBarcode
from pantry.domain.errors import BadInput, NotFound, Taken
from tests.pantry.domain.test_domain import AT, EAN
from tests.support.pantry.system import API, FLOUR, MILK, PantrySystem, Server, pantry_system

CASE = "14006381333938"
_NUMBERS = itertools.count(1)


def case_of(code: str, indicator: int = 1) -> str:
    """The GTIN-14 of a pack of a product."""
    first = f"{indicator}{code[:12]}"
    return f"{first}{gtin.check_digit(first)}"


# The rules


@for_any(st.integers(0, 10**12 - 1))
def test_the_check_digit_of_13_digits_is_that_of_the_key(number: int) -> None:
    first = f"{number:012}"
    assert gtin.check_digit(first) == ean13.check_digit(first)
    assert gtin.codes_of(f"{first}{ean13.check_digit(first)}") == [f"{first}{ean13.check_digit(first)}"]


@pytest.mark.parametrize(
    ("digits", "codes"),
    [
        ("96385074", ["0000096385074"]),
        ("04252614", ["0042100005264"]),
        ("01234565", ["0012345000065", "0000001234565"]),
        ("036000291452", ["0036000291452"]),
        ("04006381333931", ["4006381333931"]),
        (CASE, [CASE]),
        ("4006381333930", []),
        ("123", []),
        ("4006381333931x", []),
    ],
)
def test_codes_of_all_lengths_have_one_form(digits: str, codes: list[str]) -> None:
    assert list(gtin.codes_of(digits)) == codes
    assert (gtin.problem(digits) is None) == bool(codes)


def test_eight_digits_that_are_both_are_a_upc_e_first_if_they_begin_with_0() -> None:
    both = [f"{number:08}" for number in range(1000) if len(gtin.codes_of(f"{number:08}")) == 2]
    assert both
    assert all(gtin.codes_of(digits)[1] == digits.zfill(13) for digits in both)


@for_any(st.integers(0, 10**20))
def test_an_own_code_is_sound_and_has_the_prefix(number: int) -> None:
    code = gtin.own_code(number)
    assert (gtin.problem(code), code[:2], len(code)) == (None, "29", 13)


ASSIGNED = BarcodeAssigned(code=CASE, ean13=EAN, factor=6000, at=AT)


def test_a_code_names_one_product_until_it_is_removed() -> None:
    assign = AssignBarcode(code=CASE, ean13=EAN, factor=6000, at=AT)
    given(BARCODE).when(assign).then(ASSIGNED)
    given(BARCODE, ASSIGNED).when(assign).then()
    given(BARCODE, ASSIGNED).when(AssignBarcode(code=CASE, ean13=EAN, factor=8000, at=AT)).then(
        BarcodeAssigned(code=CASE, ean13=EAN, factor=8000, at=AT)
    )
    given(BARCODE, ASSIGNED).when(AssignBarcode(code=CASE, ean13=MILK, factor=6000, at=AT)).then_refused(Taken)
    given(BARCODE, ASSIGNED).when(RemoveBarcode(code=CASE, at=AT)).then(BarcodeRemoved(at=AT))
    given(BARCODE, ASSIGNED, BarcodeRemoved(at=AT)).when(assign).then(ASSIGNED)
    given(BARCODE).when(RemoveBarcode(code=CASE, at=AT)).then_refused(NotFound)
    own = BarcodeAssigned(code=EAN, ean13=EAN, factor=1000, at=AT)
    given(BARCODE, own).when(RemoveBarcode(code=EAN, at=AT)).then_refused(Taken)


@pytest.mark.parametrize(("code", "factor"), [(CASE, 0), (CASE, -1), (CASE, 10**10), ("14006381333939", 1000), (EAN, 2000)])
def test_a_wrong_code_or_factor_is_refused(code: str, factor: int) -> None:
    given(BARCODE).when(AssignBarcode(code=code, ean13=EAN, factor=factor, at=AT)).then_refused(BadInput)


# The API


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_codes_of_a_product_are_assigned_found_listed_and_removed(server: Server, new_code: Callable[[], str]) -> None:
    product, other = new_code(), new_code()
    case = case_of(product)
    await server.create(product)
    made = await server.ask("PUT", f"{API}/codes/{case}", {"product_ean13": product, "factor": 6})
    assert (made.status, made.body) == (200, {"code": case, "product_ean13": product, "factor": 6})
    assert (await server.ask("PUT", f"{API}/codes/{other}", {"product_ean13": product})).body["factor"] == 1
    assert await server.get(f"/codes/{case}") == made.body
    assert await server.get(f"/codes/{product}") == {"code": product, "product_ean13": product, "factor": 1}
    assert await server.get(f"/codes/0{product}") == {"code": product, "product_ean13": product, "factor": 1}
    assert {one["code"] for one in await server.get(f"/codes?ean13={product}")} == {case, other}
    assert (await server.ask("PUT", f"{API}/codes/{case}", {"product_ean13": product, "factor": 12})).body["factor"] == 12
    await server.moved("in", 3, product)
    assert (await server.ask("DELETE", f"{API}/codes/{case}")).status == 204
    assert (await server.ask("GET", f"{API}/codes/{case}")).status == 404
    assert (await server.ask("DELETE", f"{API}/codes/{case}")).status == 404
    assert (await server.ask("DELETE", f"{API}/codes/{product}")).status == 409
    assert (await server.get(f"/products/{product}"))["current_stock"] == 3


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_a_code_that_is_taken_or_wrong_is_refused_and_no_product_gets_it(
    server: Server, new_code: Callable[[], str]
) -> None:
    product, another, code = new_code(), new_code(), new_code()
    await server.create(product)
    await server.create(another)
    assert (await server.ask("PUT", f"{API}/codes/{code}", {"product_ean13": product})).status == 200
    for wrong, body, status in (
        (code, {"product_ean13": another}, 409),
        (another, {"product_ean13": product}, 409),
        (code, {"product_ean13": new_code()}, 404),
        (f"{code[:-1]}{(int(code[-1]) + 1) % 10}", {"product_ean13": product}, 422),
        (code, {"product_ean13": product, "factor": 0}, 422),
        (code, {"product_ean13": product, "factor": 0.0001}, 422),
    ):
        answer = await server.ask("PUT", f"{API}/codes/{wrong}", body)
        assert answer.status == status, (wrong, answer)
        assert answer.body["error"]
    refused = await server.post(f"/products/{code}", {"name": "Other", "unit": "kg"})
    assert (refused.status, product in refused.body["error"]) == (409, True)
    assert (await server.ask("GET", f"{API}/products/{code}")).status == 404


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_an_ambiguous_short_code_is_the_product_that_is_known(server: Server) -> None:
    digits = "01234565"
    _, ean8 = gtin.codes_of(digits)
    await server.create(ean8)
    assert (await server.get(f"/codes/{digits}"))["product_ean13"] == ean8


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_an_ambiguous_short_code_is_not_taken_from_the_product_that_it_names(
    server: Server, new_code: Callable[[], str]
) -> None:
    """The other code that the digits can stand for is free. It would come first if it named a product."""
    key, code, free = [f"{n:08}" for n in range(1_100_000, 1_101_000) if len(gtin.codes_of(f"{n:08}")) == 2][:3]
    holder, other = new_code(), new_code()
    for product in (key.zfill(13), holder, other):
        await server.create(product)
    made = await server.ask("PUT", f"{API}/codes/{code.zfill(13)}", {"product_ean13": holder, "factor": 6})
    assert made.status == 200
    for taken, named in ((key, key.zfill(13)), (code, holder)):
        refused = await server.ask("PUT", f"{API}/codes/{taken}", {"product_ean13": other})
        assert (refused.status, taken.zfill(13) in refused.body["error"]) == (409, True), refused
        assert (await server.get(f"/codes/{taken}"))["product_ean13"] == named
    changed = await server.ask("PUT", f"{API}/codes/{code}", {"product_ean13": holder, "factor": 12})
    assert (changed.status, changed.body) == (200, {**made.body, "factor": 12})
    assert [(await server.ask("DELETE", f"{API}/codes/{digits}")).status for digits in (key, code, code)] == [409, 204, 404]
    upc, _ = gtin.codes_of(free)
    assert (await server.ask("PUT", f"{API}/codes/{free}", {"product_ean13": other})).body["code"] == upc


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_a_thing_without_a_barcode_gets_an_own_code_once(server: Server) -> None:
    key = {"Idempotency-Key": f"own-{next(_NUMBERS)}"}
    answers = [await server.post("/products", {"name": "Jam", "unit": "jar"}, **key) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201]
    code = answers[0].body["ean13"]
    assert (answers[1].body, code[:2], gtin.problem(code)) == (answers[0].body, "29", None)
    assert answers[0].headers["Location"] == f"{API}/products/{code}"
    assert (await server.post("/products", {"name": "Jam", "unit": "jar"})).body["ean13"] != code


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_a_code_in_the_body_is_refused_and_not_replaced_by_an_own_code(server: Server, new_code: Callable[[], str]) -> None:
    answer = await server.post("/products", {"ean13": new_code(), "name": "Flour", "unit": "kg"})
    assert answer.status == 422
    assert [error["pointer"] for error in answer.body["errors"]] == ["#/ean13"]


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_followers_hear_of_codes_and_not_of_keys(server: Server, new_code: Callable[[], str]) -> None:
    product = new_code()
    case = case_of(product)
    async with server.http.get(f"{server.url}{API}/events?events=code") as stream:
        await server.create(product)
        await server.ask("PUT", f"{API}/codes/{case}", {"product_ean13": product, "factor": 6})
        await server.ask("DELETE", f"{API}/codes/{case}")
        heard: list[str] = []
        async with asyncio.timeout(30):
            while len(heard) < 2:
                line = (await stream.content.readline()).decode().strip()
                heard += [line] if line.startswith("data:") and case in line else []
    assert [f'"product_ean13":"{product}"' in line.replace(" ", "") for line in heard] == [True, False]


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_stocktakes_are_listed_with_and_without_a_difference(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 5, code)
    for counted, who in ((5, "anna"), (7, "anna"), (7, "")):
        answer = await server.post(f"/products/{code}/count", {"counted": counted, "created_by": who, "notes": who and "seen"})
        assert answer.status == 200
    listed: list[dict[str, Any]] = await server.get(f"/stocktakes?ean13={code}")
    assert [(one["counted"], one["difference"]) for one in listed] == [(7, 0), (7, 2), (5, 0)]
    assert [one.get("created_by") for one in listed] == [None, "anna", "anna"]
    assert ["movement_id" in one for one in listed] == [False, True, False]
    page = await server.ask("GET", f"{API}/stocktakes?ean13={code}&limit=2")
    assert 'rel="next"' in page.headers["Link"]
    csv = await server.ask("GET", f"{API}/stocktakes?ean13={code}", headers={"Accept": "text/csv"})
    assert csv.body.count("\n") == 4
    assert (await server.post("/people:erase", {"name": "anna"})).status == 204
    erased = await server.get(f"/stocktakes?ean13={code}")
    assert [one.get("created_by") for one in erased] == [None, "[erased]", "[erased]"]


# Two servers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """Two servers on one log."""
    async with pantry_system(tmp_path_factory.mktemp("barcodes"), servers=2) as system:
        yield system


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_of_two_servers_that_take_a_code_at_once_one_gets_it(two: PantrySystem) -> None:
    one, other = two.servers
    await one.create(FLOUR)
    await one.create(MILK)
    for number in range(20):
        code = gtin.own_code(number)
        taken, assigned, third = await asyncio.gather(
            one.post(f"/products/{code}", {"name": "New", "unit": "kg"}),
            other.ask("PUT", f"{API}/codes/{code}", {"product_ean13": FLOUR, "factor": 6}),
            one.ask("PUT", f"{API}/codes/{code}", {"product_ean13": MILK, "factor": 2}),
        )
        statuses = (taken.status, assigned.status, third.status)
        assert sorted(statuses) in ([200, 409, 409], [201, 409, 409]), statuses
        head = max(int(answer.headers["Event-Sequence"]) for answer in (taken, assigned, third) if answer.status < 300)
        named = {(await server.get(f"/codes/{code}?min_seq={head}"))["product_ean13"] for server in two.servers}
        expected = code if taken.status == 201 else FLOUR if assigned.status == 200 else MILK
        assert named == {expected}
    for server in two.servers:
        await server.kill()
    assert await one.difference_from_a_fold() is None
