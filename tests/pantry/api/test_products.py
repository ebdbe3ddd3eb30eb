"""Products and categories: statuses, fields and rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.pantry.api.answers import name, problem
from tests.support.pantry.system import API, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


# Products


async def test_a_product_from_creation_to_its_end(server: Server, code: str) -> None:
    path = f"/products/{code}"
    made = await server.post(path, {"name": "Flour", "unit": "kg", "min_stock": 2.5})
    assert made.status == 201
    assert made.headers["Location"] == API + path
    assert {key: made.body[key] for key in ("ean13", "name", "description", "unit", "min_stock", "current_stock", "active")} == {
        "ean13": code,
        "name": "Flour",
        "description": "",
        "unit": "kg",
        "min_stock": 2.5,
        "current_stock": 0,
        "active": True,
    }
    assert "category_id" not in made.body
    assert await server.get(path) == made.body
    problem(await server.post(path, {"name": "Flour", "unit": "kg"}), 409, code)
    edited = await server.ask("PUT", API + path, {"name": "Rye", "unit": "kg", "description": "a\nb"})
    assert (edited.status, edited.body["name"], edited.body["description"], edited.body["min_stock"]) == (200, "Rye", "a\nb", 0)
    for _ in range(2):
        gone = await server.ask("DELETE", API + path)
        assert (gone.status, gone.body) == (204, "")
    assert (await server.get(path))["active"] is False
    assert (await server.move("in", 1, code)).status == 201
    back = await server.post(f"{path}/activate")
    assert (back.status, back.body["active"]) == (200, True)
    assert await server.get(f"{path}/stock") == {"current_stock": 1, "ean13": code, "is_low_stock": False, "min_stock": 0}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "name"),
    ({"name": "", "unit": "kg"}, "name"),
    ({"name": " ", "unit": "kg"}, "name"),
    ({"name": "x" * 201, "unit": "kg"}, "name"),
    ({"name": "a\u0000", "unit": "kg"}, "name"),
    ({"name": "a", "unit": "x" * 31}, "unit"),
    ({"name": "a"}, "unit"),
    ({"name": "a", "unit": "kg", "min_stock": -1}, "min_stock"),
    ({"name": "a", "unit": "kg", "min_stock": 0.0005}, "3 decimal places"),
    ({"name": "a", "unit": "kg", "min_stock": "2"}, "min_stock"),
    ({"name": "a", "unit": "kg", "min_stock": 1e300}, "9999999.999"),
    ({"name": "a", "unit": "kg", "category_id": "none"}, "category_id"),
]


@pytest.mark.parametrize(("document", "text"), WRONG)
async def test_a_product_that_cannot_be_is_422_for_post_and_put(
    server: Server, code: str, document: dict[str, Any], text: str
) -> None:
    problem(await server.post(f"/products/{code}", document), 422, text)
    await server.create(code)
    problem(await server.ask("PUT", f"{API}/products/{code}", document), 422, text)


@pytest.mark.parametrize("wrong", ["4006381333930", "400638133393", "4006381333931%20", "abc"])
async def test_a_code_with_a_wrong_check_digit_is_422_where_it_is_written_and_404_where_it_is_read(
    server: Server, wrong: str
) -> None:
    document = {"name": "a", "unit": "kg"}
    problem(await server.post(f"/products/{wrong}", document), 422, "EAN-13")
    problem(await server.ask("PUT", f"{API}/products/{wrong}", document), 422, "EAN-13")
    problem(await server.ask("GET", f"{API}/products/{wrong}"), 404)
    problem(await server.ask("DELETE", f"{API}/products/{wrong}"), 404)


async def test_an_edit_may_insist_on_the_version_it_has_seen(server: Server, code: str) -> None:
    await server.create(code)
    path = f"{API}/products/{code}"
    first = await server.ask("GET", path)
    tag = first.headers["ETag"]
    assert (await server.ask("GET", path, headers={"If-None-Match": tag})).status == 304
    await server.moved("in", 1, code)
    assert (await server.ask("GET", path, headers={"If-None-Match": tag})).status == 200
    document = {"name": "other", "unit": "kg"}
    problem(await server.ask("PUT", path, document, headers={"If-Match": tag}), 412, "version 2, not 1")
    assert (await server.ask("PUT", path, document, headers={"If-Match": '"2"'})).status == 200
    problem(await server.ask("DELETE", path, headers={"If-Match": '"2"'}), 412)


@pytest.mark.parametrize("tags", ['"1", "2"', '"2", "1"', 'W/"1", "2"', '"one", "2"'])
async def test_an_edit_may_name_several_versions_and_the_present_one_among_them(server: Server, code: str, tags: str) -> None:
    await server.create(code)
    path = f"{API}/products/{code}"
    await server.moved("in", 1, code)
    document = {"name": "other", "unit": "kg"}
    assert (await server.ask("PUT", path, document, headers={"If-Match": tags})).status == 200
    problem(await server.ask("PUT", path, document, headers={"If-Match": tags}), 412, "version 3, not 2")


@pytest.mark.parametrize("tag", ["1", "", '"one"', 'W/"1"', f'"{"9" * 5000}"'])
async def test_an_edit_whose_condition_names_no_version_is_refused(server: Server, code: str, tag: str) -> None:
    """A tag without quotes is a slip: taken for no condition, it would overwrite what the caller has not seen."""
    await server.create(code)
    path = f"{API}/products/{code}"
    before = (await server.ask("GET", path)).body
    headers = {"If-Match": tag}
    problem(await server.ask("PUT", path, {"name": "other", "unit": "kg"}, headers=headers), 412, "in quotes")
    problem(await server.ask("DELETE", path, headers=headers), 412, "in quotes")
    problem(await server.ask("POST", f"{path}/activate", headers=headers), 412, "in quotes")
    assert (await server.ask("GET", path)).body == before


async def test_products_are_listed_by_name_filtered_and_paged(server: Server, new_code: Callable[[], str]) -> None:
    category = (await server.post("/categories", {"name": name()})).body["id"]
    codes = {text: new_code() for text in ("Äpfel", "apfelmus", "Birnen", "Zimt", "äthiopischer Kaffee")}
    for text, code in codes.items():
        await server.create(code, name=text, category_id=category, min_stock=1)
    await server.moved("in", 5, codes["Birnen"])
    await server.ask("DELETE", f"{API}/products/{codes['Zimt']}")

    async def names(query: str) -> list[str]:
        return [product["name"] for product in await server.get(f"/products?category={category}{query}")]

    assert await names("") == ["Äpfel", "apfelmus", "äthiopischer Kaffee", "Birnen", "Zimt"]
    assert await names("&active=true") == ["Äpfel", "apfelmus", "äthiopischer Kaffee", "Birnen"]
    assert await names("&active=false") == ["Zimt"]
    assert await names("&low_stock=false") == ["Birnen"]
    assert await names("&low_stock=true&active=true") == ["Äpfel", "apfelmus", "äthiopischer Kaffee"]
    assert await names("&search=APFEL") == ["Äpfel", "apfelmus"]
    assert await names("&search=%25") == []
    assert await names(f"&search={codes['Birnen'][:12]}") == ["Birnen"]
    page = await server.ask("GET", f"{API}/products?category={category}&limit=2")
    seen, link = [product["name"] for product in page.body], page.headers.get("Link")
    while link:
        page = await server.ask("GET", link[1 : link.index(">")])
        seen += [product["name"] for product in page.body]
        link = page.headers.get("Link")
    assert seen == await names("")
    for wrong in ("active=maybe", "low_stock=2", "limit=0", "cursor=x", "as_of=yesterday"):
        problem(await server.ask("GET", f"{API}/products?{wrong}"), 400, wrong.partition("=")[0])


# Categories


async def test_a_category_and_its_name(server: Server) -> None:
    first, second = name(), name()
    made = await server.post("/categories", {"name": first})
    assert made.status == 201
    assert set(made.body) == {"id", "name", "description", "created_at"}
    path = made.headers["Location"]
    assert (await server.ask("GET", path)).body == made.body
    problem(await server.post("/categories", {"name": first}), 409, first)
    problem(await server.post("/categories", {"name": "x" * 101}), 422, "name")
    problem(await server.post("/categories", {}), 422, "name")
    problem(await server.ask("GET", f"{API}/categories/none"), 404)
    renamed = await server.ask("PUT", path, {"name": second, "description": "d"})
    assert (renamed.status, renamed.body["name"], renamed.body["description"]) == (200, second, "d")
    taken = await server.post("/categories", {"name": first})
    assert taken.status == 201, "the old name is free"
    problem(await server.ask("PUT", path, {"name": first}), 409, first)
    problem(await server.ask("PUT", f"{API}/categories/00000000-0000-4000-8000-000000000000", {"name": name()}), 404)
    listed = [category["name"] for category in await server.get("/categories")]
    assert listed == sorted(listed, key=str.casefold)
    assert {first, second} <= set(listed)


async def test_of_a_hundred_claims_to_a_name_one_succeeds(server: Server) -> None:
    wanted = name()
    answers = await asyncio.gather(*(server.post("/categories", {"name": wanted}) for _ in range(100)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 99
    assert [category["name"] for category in await server.get("/categories")].count(wanted) == 1


async def test_of_many_that_want_to_be_renamed_to_one_name_one_succeeds(server: Server) -> None:
    wanted = name()
    made = [(await server.post("/categories", {"name": name()})).headers["Location"] for _ in range(20)]
    answers = await asyncio.gather(*(server.ask("PUT", path, {"name": wanted}) for path in made))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 19


async def test_a_category_that_looks_like_another_is_taken_and_an_invisible_name_refused(server: Server, code: str) -> None:
    first = await server.post("/categories", {"name": f"Käse {code}"})
    assert first.status == 201
    for alike in (f"käse {code}", f" Käse  {code}", f"Kä\u200bse {code}", f"Ka\u0308se {code}"):
        assert (await server.post("/categories", {"name": alike})).status == 409, alike
    assert (await server.ask("PUT", f"{API}/categories/{first.body['id']}", {"name": f"KÄSE {code}"})).status == 200
    assert (await server.post("/categories", {"name": "\u200b"})).status == 422
    for values in ({"name": "\u200b", "unit": "kg"}, {"name": "Jam", "unit": "\u2060"}):
        assert (await server.post(f"/products/{code}", values)).status == 422


@pytest.mark.parametrize("path", ["/movements", "/stocktakes", "/codes", "/reports/consumption"])
async def test_a_filter_by_a_product_that_does_not_exist_is_refused(server: Server, code: str, path: str) -> None:
    for ean13, status in (("1", 400), ("4006381333930", 400), (code, 404)):
        assert (await server.ask("GET", f"{API}{path}?ean13={ean13}")).status == status


async def test_the_unit_of_a_product_with_movements_does_not_change(server: Server, code: str) -> None:
    await server.create(code)
    path = f"{API}/products/{code}"
    assert (await server.ask("PUT", path, {"name": "Rye", "unit": "g"})).status == 200
    await server.moved("in", 2, code)
    problem(await server.ask("PUT", path, {"name": "Rye", "unit": "kg"}), 409, "movements in g")
    await server.moved("out", 2, code)
    problem(await server.ask("PUT", path, {"name": "Rye", "unit": "kg"}), 409, "movements in g")
    assert (await server.ask("PUT", path, {"name": "Rye bread", "unit": "G "})).status == 200
