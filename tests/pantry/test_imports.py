"""Imports of products and movements on a running server: forms of files, tables of spreadsheets, previews, repetitions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

import pytest

from tests.support.pantry.system import API, FLOUR, Answer, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


async def test_many_movements_at_once_each_with_its_own_answer(server: Server, new_code: Callable[[], str]) -> None:
    code, unknown = new_code(), new_code()
    await server.create(code)
    rows = [
        {"product_ean13": code, "type": "in", "quantity": 3},
        {"product_ean13": code, "type": "out", "quantity": 4},
        {"product_ean13": code, "type": "out", "quantity": 2, "notes": "a, b"},
        {"product_ean13": unknown, "type": "in", "quantity": 1},
        {"product_ean13": code, "type": "in", "quantity": 0.0001},
    ]
    lines = io.StringIO()
    writer = csv.DictWriter(lines, ["product_ean13", "type", "quantity", "notes"])
    writer.writeheader()
    writer.writerows(rows)
    forms = [
        ("application/json", json.dumps(rows), [201, 422, 201, 404, 422], 1),
        ("application/x-ndjson", "\n".join(map(json.dumps, rows)) + "\n", [201, 201, 422, 404, 422], 0),
        ("text/csv", lines.getvalue(), [201, 422, 201, 404, 422], 1),
    ]
    path = f"{API}/movements:batch"
    for media, text, statuses, after in forms:
        before = await server.stock(code)
        headers = {"Content-Type": media}
        dry = await server.ask("POST", f"{path}?dry_run=true", data=text.encode(), headers=headers)
        assert await server.stock(code) == before
        keyed = {**headers, "Idempotency-Key": f"{code}-{media}"}
        wet = [await server.ask("POST", path, data=text.encode(), headers=keyed) for _ in range(2)]
        for answer in (dry, *wet):
            assert answer.status == 200, answer
            assert [row["status"] for row in answer.body["results"]] == statuses
            assert [row["row"] for row in answer.body["results"]] == [1, 2, 3, 4, 5]
            assert (answer.body["accepted"], answer.body["refused"]) == (2, 3)
        booked = [[row for row in answer.body["results"] if row["status"] == 201] for answer in wet]
        assert booked[0] == booked[1]
        assert await server.stock(code) == after
    for media, text in (("application/json", "{}"), ("application/json", "["), ("text/csv", "a,b\n1,2\n"), ("text/csv", "\xff")):
        answer = await server.ask("POST", path, data=text.encode("latin-1"), headers={"Content-Type": media})
        assert (answer.status, bool(answer.body["error"])) == (400, True), answer


async def test_a_repeated_batch_has_its_first_answer_also_for_refused_rows(server: Server, new_code: Callable[[], str]) -> None:
    code = new_code()
    await server.create(code)
    changes = (("out", 1), ("in", 5), ("in", 9_999_999), ("out", 9))
    rows = [{"product_ean13": code, "type": type_, "quantity": quantity} for type_, quantity in changes]
    key = {"Idempotency-Key": f"refused-{code}"}
    first = await server.post("/movements:batch", rows, **key)
    assert [row["status"] for row in first.body["results"]] == [422, 201, 422, 422]
    for type_, quantity in (("in", 100), ("out", 104)):
        again = await server.post("/movements:batch", rows, **key)
        assert again.body == first.body
        await server.moved(type_, quantity, code)
    assert await server.stock(code) == 1
    assert len(await server.get(f"/products/{code}/movements")) == 3


async def test_a_table_with_a_column_twice_is_refused(server: Server, code: str) -> None:
    await server.create(code)
    table = f"code;type;quantity;Quantity\n{code};in;1;2\n".encode()
    answer = await server.ask("POST", f"{API}/movements:batch", data=table, headers={"Content-Type": "text/csv"})
    assert (answer.status, "several columns quantity" in answer.body["error"]) == (400, True), answer
    assert await server.stock(code) == 0


@pytest.mark.parametrize(("path", "names"), [("movements", "ean13;code;type;quantity"), ("products", "code;ean13;name;unit")])
async def test_a_table_with_two_columns_for_the_code_is_refused(server: Server, code: str, path: str, names: str) -> None:
    cells = {"movements": f"{code};{FLOUR};in;1", "products": f"{FLOUR};{code};Jam;jar"}[path]
    answer = await server.ask(
        "POST", f"{API}/{path}:batch", data=f"{names}\n{cells}\n".encode(), headers={"Content-Type": "text/csv"}
    )
    assert (answer.status, "several columns for the code: " in answer.body["error"]) == (400, True), answer


async def test_an_export_of_products_is_imported_as_it_was(server: Server, new_code: Callable[[], str]) -> None:
    names = ("=1+1", "'=1+1", "-x", " Jam", "Jam ", "@home", "+49", "'t Zand")
    shelf = (await server.post("/categories", {"name": f"=shelf {new_code()}"})).body["id"]
    codes = [new_code() for _ in names]
    for code, name in zip(codes, names, strict=True):
        await server.create(code, name=name, category_id=shelf)
    exported = await server.ask("GET", f"{API}/products?category={shelf}", headers={"Accept": "text/csv"})
    body = (await _imported(server, "/products:batch?dry_run=true", exported.body)).body
    assert {row["ean13"]: row["name"] for row in body["results"]} == dict(zip(codes, names, strict=True))
    assert {row["status"] for row in body["results"]} == {409}, "they are there"


async def test_rows_without_effect_are_named_with_the_way_to_book_a_stock(server: Server, new_code: Callable[[], str]) -> None:
    code = new_code()
    table = f"ean13;name;unit;current_stock;active;shelf;empty\n{code};Jam;jar;3;false;2;\n"
    for query in ("?dry_run=true", ""):
        body = (await _imported(server, f"/products:batch{query}", table)).body
        assert (body["accepted"], body["ignored"]) == (1, ["active", "current_stock", "shelf"])
        assert "current_stock was not booked: a product begins without stock" in body["note"]
    assert await server.stock(code) == 0
    rows = [{"product_ean13": code, "type": "in", "quantity": 1, "code": FLOUR, "created_at": "2020-01-01T00:00:00Z"}]
    body = (await server.post("/movements:batch", rows)).body
    assert (body["accepted"], body["ignored"], "note" in body) == (1, ["code", "created_at"], False)


async def test_a_byte_order_mark_in_front_of_any_form_of_rows_is_left_out(server: Server, new_code: Callable[[], str]) -> None:
    code = new_code()
    await server.create(code)
    row = {"product_ean13": code, "type": "in", "quantity": 1}
    table = f"product_ean13;type;quantity\n{code};in;1\n"
    forms = {"application/json": json.dumps([row]), "application/x-ndjson": json.dumps(row), "text/csv": table}
    for booked, (media, text) in enumerate(forms.items(), start=1):
        body = text.encode("utf-8-sig")
        answer = await server.ask("POST", f"{API}/movements:batch", data=body, headers={"Content-Type": media})
        assert (answer.status, answer.body.get("accepted")) == (200, 1), answer
        assert await server.stock(code) == booked


async def _imported(server: Server, path: str, table: str, **headers: str) -> Answer:
    answer = await server.ask("POST", API + path, data=table.encode(), headers={"Content-Type": "text/csv", **headers})
    assert answer.status == 200, answer
    return answer


@pytest.mark.parametrize("separator", [";", ",", "\t"])
async def test_tables_of_spreadsheets_are_previewed_as_they_are_read_and_then_imported(
    server: Server, new_code: Callable[[], str], separator: str
) -> None:
    code, known, other = new_code(), new_code(), new_code()
    await server.create(known)

    def table(*lines: Sequence[str]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=separator).writerows(lines)
        return f"\ufeff{text.getvalue()}{separator * 3}\r\n"

    products = table(
        ("EAN13", " Name", "Unit", "Min_Stock", "Shelf"),
        (code, "Jam, red; sweet", "jar", "1,5", "2"),
        (code, "Jam", "jar", "", ""),
        (known, "Flour", "kg", "1", ""),
        (other, "", "kg", "1", ""),
        (other, "Rice", "kg", "1,2345", ""),
        ("4006381333930", "Tea", "bag", "1", ""),
    )
    dry = (await _imported(server, "/products:batch?dry_run=true", products)).body
    assert dry["results"][0] == {
        "row": 1,
        "status": 201,
        "ean13": code,
        "name": "Jam, red; sweet",
        "unit": "jar",
        "min_stock": 1.5,
    }
    assert [row["status"] for row in dry["results"]] == [201, 409, 409, 422, 422, 422]
    assert (await server.ask("GET", f"{API}/products/{code}")).status == 404
    keys = {"Idempotency-Key": f"products-{code}"}
    done = [(await _imported(server, "/products:batch", products, **keys)).body for _ in range(2)]
    assert done[0] == done[1]
    assert [row["status"] for row in done[0]["results"]] == [201, 409, 409, 422, 422, 422]
    assert (await server.get(f"/products/{code}"))["min_stock"] == 1.5
    movements = table(
        ("Code", "Type", "Quantity", "Reason"),
        (code, "in", "2,5", "gift"),
        (code, "out", "0,125", ""),
        (code, "out", "99", ""),
        (code, "in", "1.000,5", ""),
        (code, "in", "two", ""),
    )
    dry = (await _imported(server, "/movements:batch?dry_run=true", movements)).body
    assert [(row["status"], row.get("quantity"), row.get("stock_after")) for row in dry["results"]] == [
        (201, 2.5, 2.5),
        (201, 0.125, 2.375),
        (422, 99, None),
        (400, None, None),
        (400, None, None),
    ]
    assert dry["results"][4]["error"] == "quantity: 'two' is not a number"
    booked = (await _imported(server, "/movements:batch", movements)).body
    assert (booked["accepted"], await server.stock(code)) == (2, 2.375)


@pytest.mark.parametrize(
    ("separator", "quantity", "result"),
    [
        *((";", "1,000", 1.0), (";", "1.5", 1.5), (";", "0.125", 0.125), (";", "1.000", "write 1000 or 1,000")),
        *(("\t", "1.000", 1.0), ("\t", "1,5", 1.5), ("\t", "0,125", 0.125), ("\t", "12,345", "write 12345 or 12.345")),
        *((",", '"1,000"', "write 1000 or 1.000"), (",", "1.000", 1.0), (",", "1_0", "is not a number"), (";", ",5", 0.5)),
    ],
)
async def test_a_number_that_may_have_thousands_is_refused(
    server: Server, code: str, separator: str, quantity: str, result: float | str
) -> None:
    await server.create(code)
    text = "\n".join([separator.join(("product_ean13", "type", "quantity")), separator.join((code, "in", quantity))])
    [row] = (await _imported(server, "/movements:batch?dry_run=true", text)).body["results"]
    if isinstance(result, str):
        assert row["status"] == 400
        assert result in row["error"]
    else:
        assert (row["status"], row["quantity"]) == (201, result)


async def test_short_codes_in_a_table_are_the_codes_of_products_and_an_ambiguous_one_is_refused(server: Server) -> None:
    for code in ("0000096385074", "0036000291452"):
        await server.create(code)
    table = "code;type;quantity\n96385074;in;1\n036000291452;in;1\n01000009;in;1\n14006381333938;in;1\n"
    rows = (await _imported(server, "/movements:batch?dry_run=true", table)).body["results"]
    assert [row["status"] for row in rows] == [201, 201, 400, 422]
    assert [row["product_ean13"] for row in rows[:2]] == ["0000096385074", "0036000291452"]
    assert "EAN-8 or a UPC-E" in rows[2]["error"]


async def test_products_are_put_into_categories_by_name_and_an_unknown_name_is_refused(
    server: Server, new_code: Callable[[], str]
) -> None:
    codes = [new_code() for _ in range(5)]
    name = f"Shelf, {codes[0]}"
    category = (await server.post("/categories", {"name": name})).body["id"]
    other = (await server.post("/categories", {"name": f"other {codes[0]}"})).body["id"]
    rows = [
        {"category": name},
        {"category": name, "category_id": category},
        {"category": "Spcies"},
        {"category": name, "category_id": other},
        {"category": ""},
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, ["ean13", "name", "unit", "category", "category_id"], delimiter=";")
    writer.writeheader()
    writer.writerows({"ean13": code, "name": "Jam", "unit": "jar", **row} for code, row in zip(codes, rows, strict=True))
    dry = (await _imported(server, "/products:batch?dry_run=true", text.getvalue())).body["results"]
    assert [row["status"] for row in dry] == [201, 201, 422, 422, 201]
    assert [row.get("category") for row in dry] == [name, name, "Spcies", name, None]
    assert "there is no category 'Spcies': create it first" in dry[2]["error"]
    assert "leave one of them out" in dry[3]["error"]
    keys = {"Idempotency-Key": f"categories-{codes[0]}"}
    done = (await _imported(server, "/products:batch", text.getvalue(), **keys)).body
    assert [row["status"] for row in done["results"]] == [201, 201, 422, 422, 201]
    found = [(await server.get(f"/products/{codes[number]}")).get("category_id") for number in (0, 1, 4)]
    assert found == [category, category, None]
    renamed = await server.ask("PUT", f"{API}/categories/{category}", {"name": f"{name}, renamed"})
    assert renamed.status == 200
    again = (await _imported(server, "/products:batch", text.getvalue(), **keys)).body
    assert [row["status"] for row in again["results"]] == [201, 201, 422, 422, 201], "a repetition is answered as before"
    lines = "\n".join(
        json.dumps({"ean13": new_code(), "name": "Jam", "unit": "jar", "category": given}) for given in (f"{name}, renamed", name)
    )
    answer = await server.ask(
        "POST", f"{API}/products:batch?dry_run=true", data=lines.encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    assert [row["status"] for row in answer.body["results"]] == [201, 422]
