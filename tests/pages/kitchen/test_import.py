"""The import of a table on the kitchen's page: the shown rows are booked, and each row takes effect once."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from tests.pages.kitchen.cooking import code, only_said_of_itself
from tests.support.pantry.system import MILK, PantrySystem
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_a_table_that_is_being_booked_gets_no_second_key(kitchen: PantrySystem, cook: Visitor) -> None:
    keys: list[str] = []
    answered = asyncio.Event()

    async def slow(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        await answered.wait()
        await route.continue_()

    before = await kitchen.one.stock(MILK)
    page = await cook.open("/?view=import")
    await page.route(re.compile(r"/movements:batch$"), slow)
    preview = page.get_by_role("button", name="Preview")
    await page.get_by_label("Table").fill(f"product_ean13;type;quantity\n{MILK};in;2\n")
    await preview.click()
    async with page.expect_request(re.compile(r"/movements:batch$")):
        await page.get_by_role("button", name="Book 1 of 1").click()
    await expect(preview).to_be_disabled()
    answered.set()
    await expect(page.get_by_text("1 rows are done, 0 refused")).to_be_visible()
    await expect(preview).to_be_enabled()
    assert (len(keys), await kitchen.one.stock(MILK)) == (1, before + 2)


async def test_columns_without_effect_are_named_and_how_to_book_a_stock(cook: Visitor) -> None:
    page = await cook.open("/?view=import")
    await page.get_by_label("Table").fill(f"ean13,name,unit,current_stock\n{code(970)},'=Jam,jar,3\n")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("list", name="Rows")).to_contain_text(f"{code(970)} =Jam, jar")
    await expect(page.get_by_text("Columns without effect: current_stock. current_stock was not booked")).to_be_visible()


@pytest.mark.parametrize("leaves", ["by a link", "by a reload"])
async def test_a_table_keeps_its_key_while_the_view_is_left(kitchen: PantrySystem, cook: Visitor, leaves: str) -> None:
    """The table was booked, and its answer is lost. On return it is sent under its key, and takes effect once."""
    keys: list[str] = []
    left = asyncio.Event()

    async def lost(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if left.is_set():
            await route.continue_()
            return
        await route.fetch()
        if leaves == "by a link":
            await page.get_by_role("link", name="Shopping").click()
            await route.abort()
        else:
            await page.reload()
        left.set()

    before = await kitchen.one.stock(MILK)
    page = await cook.open("/?view=import")
    await page.route(re.compile(r"/movements:batch$"), lost)
    await page.get_by_label("Table").fill(f"product_ean13;type;quantity\n{MILK};in;2\n")
    await page.get_by_role("button", name="Preview").click()
    await page.get_by_role("button", name="Book 1 of 1").click()
    await left.wait()
    await page.get_by_role("link", name="Import").click()
    await expect(page.get_by_label("Table")).to_have_value(re.compile(f"{MILK};in;2"))
    await expect(page.get_by_role("button", name="Preview")).to_be_disabled()
    await page.get_by_role("button", name="Send again").click()
    await expect(page.get_by_text("1 rows are done, 0 refused")).to_be_visible()
    assert (keys[1:], await kitchen.one.stock(MILK)) == (keys[:1], before + 2)
    await only_said_of_itself(cook, "ERR_FAILED")


async def test_only_the_table_that_is_shown_can_be_booked(kitchen: PantrySystem, cook: Visitor) -> None:
    before = await kitchen.one.stock(MILK)
    page = await cook.open("/?view=import")
    table, rows = page.get_by_label("Table"), page.get_by_role("list", name="Rows").get_by_role("listitem")
    book = page.get_by_role("button", name="Book 1 of 1")
    await table.fill(f"product_ean13;type;quantity\n{MILK};in;9\n")
    await page.get_by_role("button", name="Preview").click()
    await expect(book).to_be_visible()
    await table.fill(f"product_ean13;type;quantity\n{MILK};in;1\n")
    await expect(book).to_have_count(0)
    await expect(rows).to_have_count(0)
    await page.get_by_role("button", name="Preview").click()
    await expect(rows).to_contain_text("Milk: in 1")
    await book.click()
    await expect(page.get_by_text("1 rows are done, 0 refused")).to_be_visible()
    assert await kitchen.one.stock(MILK) == before + 1


async def test_a_file_that_is_not_utf_8_is_refused(kitchen: PantrySystem, cook: Visitor) -> None:
    """A spreadsheet saves it so. Its letters would be other ones in the names of products."""
    page = await cook.open("/?view=import")
    file, table = page.get_by_label("File"), page.get_by_label("Table")
    head, row = "ean13;name;unit;min_stock\n", f"{code(90)};Rübenmüsli;jar;1\n"
    await table.fill(head)
    for encoding in ("cp1252", "utf-16"):
        await file.set_input_files({"name": "jam.csv", "mimeType": "text/csv", "buffer": (head + row).encode(encoding)})
        await expect(page.get_by_text("jam.csv is not UTF-8")).to_be_visible()
        await expect(table).to_have_value("")
    await file.set_input_files({"name": "jam.csv", "mimeType": "text/csv", "buffer": (head + row).encode("utf-8-sig")})
    await expect(table).to_have_value(head + row)
    await page.get_by_role("button", name="Preview").click()
    await page.get_by_role("button", name="Create 1 of 1").click()
    await expect(page.get_by_text("1 rows are done, 0 refused")).to_be_visible()
    assert (await kitchen.one.get(f"/products/{code(90)}"))["name"] == "Rübenmüsli"
