"""The kitchen's page does what the API does: edit, categories, stocktake, notes, history, shopping list, import."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from pantry.domain.gtin import own_code
from tests.support.pantry.system import FLOUR, MILK, PantrySystem, pantry_system
from tests.support.web.browser import Profiles, Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

TEA = own_code(77)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kitchen(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A pantry with flour, milk and tea."""
    async with pantry_system(tmp_path_factory.mktemp("screens")) as system:
        for ean13, name, unit, stock in ((FLOUR, "Flour", "kg", 5), (MILK, "Milk", "l", 1), (TEA, "Tea", "pack", 3)):
            await system.one.create(ean13, name=name, unit=unit, min_stock=2)
            await system.one.moved("in", stock, ean13)
        yield system


@pytest_asyncio.fixture(loop_scope="session")
async def cook(kitchen: PantrySystem, profiles: Profiles) -> AsyncIterator[Visitor]:
    """Somebody in the kitchen."""
    async with profiles.visitor(kitchen.one.url) as found:
        yield found


def region(page: Page, name: str) -> Any:
    """A part of the page by its title."""
    return page.get_by_role("region", name=name, exact=True)


async def test_every_screen_is_reached_on_a_phone(kitchen: PantrySystem, profiles: Profiles) -> None:
    async with profiles.visitor(kitchen.one.url, viewport={"width": 390, "height": 800}) as cook:
        page = await cook.open()
        for link, title in (
            ("Shopping", "Shopping list"),
            ("Stocktake", "Stocktake"),
            ("History", "History"),
            ("Categories", "Categories"),
            ("Import", "Import"),
            ("Devices", "Devices"),
        ):
            await page.get_by_role("link", name=link, exact=True).click()
            await expect(region(page, title)).to_be_visible()
        await page.get_by_role("link", name="Stock", exact=True).click()
        await expect(page.get_by_role("table", name="Products")).to_be_visible()


async def test_a_product_is_edited_put_into_a_category_found_by_it_and_deactivated(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open("/?view=categories")
    await page.get_by_label("New category").fill("Hot drinks")
    await page.get_by_role("button", name="Add", exact=True).click()
    await page.get_by_label("Name of Hot drinks").fill("Drinks")
    await page.get_by_role("button", name="Rename").click()
    await expect(page.get_by_label("Name of Drinks")).to_be_visible()
    await page.goto(f"{kitchen.one.url}/?product={TEA}")
    panel = region(page, "Tea")
    await panel.get_by_text("Edit").click()
    await panel.get_by_label("Name", exact=True).fill("Green tea")
    await panel.get_by_label("Low from this stock down").fill("1,5")
    await panel.get_by_label("Category").select_option(label="Drinks")
    await panel.get_by_role("button", name="Save").click()
    panel = region(page, "Green tea")
    await expect(panel).to_contain_text("low at 1.5 pack")
    await page.get_by_label("Category").first.select_option(label="Drinks")
    await expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    await panel.get_by_text("Edit").click()
    await expect(panel.get_by_role("button", name="Keep it no more")).to_be_visible()
    await kitchen.one.ask("PUT", f"/api/v1/products/{TEA}", {"name": "Other", "unit": "pack"})
    await page.get_by_label("Description").fill("loose")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert").get_by_text("is in version")).to_be_visible()
    assert all("412" in text for text in cook.complaints)
    cook.complaints.clear()
    await page.reload()
    await region(page, "Other").get_by_text("Edit").click()
    await page.get_by_role("button", name="Keep it no more").click()
    await expect(page.get_by_role("button", name="Keep it again")).to_be_visible()
    assert (await kitchen.one.get(f"/products/{TEA}"))["active"] is False
    await page.get_by_role("button", name="Keep it again").click()
    await expect(page.get_by_role("button", name="Keep it again")).to_have_count(0)


async def test_a_unit_is_changed_with_a_factor_that_the_form_asks_for(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open(f"/?product={FLOUR}")
    before = await kitchen.one.get(f"/products/{FLOUR}")
    panel = region(page, "Flour")
    await panel.get_by_text("Edit").click()
    await expect(panel.get_by_label("Unit")).to_have_value("kg")
    await expect(panel.get_by_label("how many")).to_have_count(0)
    await panel.get_by_label("Unit").fill("g")
    await panel.get_by_label("1 kg is how many g?").fill("1000")
    await panel.get_by_role("button", name="Save").click()
    await expect(panel).to_contain_text(f"low at {before['min_stock'] * 1000:g} g")
    after = await kitchen.one.get(f"/products/{FLOUR}")
    assert after["current_stock"] == before["current_stock"] * 1000
    await expect(panel.get_by_role("list").last).to_contain_text("kg to")
    back = {"name": "Flour", "unit": "kg", "factor": 0.001, "min_stock": before["min_stock"]}
    assert (await kitchen.one.ask("PUT", f"/api/v1/products/{FLOUR}", back)).status == 200


async def test_a_walk_through_the_shelf_is_resumed_and_books_the_differences(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open("/?view=stocktake")
    shelf = region(page, "Stocktake")
    await shelf.get_by_label("Counted Flour").fill("4,5")
    await page.keyboard.press("Tab")
    await page.keyboard.type(MILK)
    await page.keyboard.press("Enter")
    await expect(shelf.get_by_label("Counted Milk")).to_have_value("1")
    await expect(shelf.get_by_role("status")).to_contain_text("2 of 3 counted, 1 differ")
    await page.reload()
    await expect(shelf.get_by_label("Counted Flour")).to_have_value("4,5")
    await shelf.get_by_label("differs").check()
    await expect(shelf.get_by_label("Counted Milk")).to_have_count(0)
    await shelf.get_by_role("button", name="Book 2 counted").click()
    await expect(page.get_by_text("Flour: 4.5 kg counted, -0.5 kg booked")).to_be_visible()
    found = await kitchen.one.get("/stocktakes")
    assert sorted((one["product_ean13"], one["counted"], one["difference"]) for one in found) == sorted(
        [(FLOUR, 4.5, -0.5), (MILK, 1, 0)]
    )
    await expect(shelf.get_by_role("status")).to_contain_text("0 of 3 counted")


async def test_a_booking_has_a_note_and_a_name_and_history_shows_any_time(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open(f"/?product={MILK}")
    panel = region(page, "Milk")
    await panel.get_by_text("Note and name").click()
    await panel.get_by_label("Note of the next booking").fill("for the cake")
    await panel.get_by_label("Your name").fill("anna")
    await panel.get_by_role("button", name="In", exact=True).click()
    await expect(page.get_by_role("status").get_by_text("2 l there now")).to_be_visible()
    [movement] = await kitchen.one.get(f"/products/{MILK}/movements?limit=1")
    assert (movement["created_by"], movement["notes"]) == ("anna", "for the cake")
    await page.get_by_role("link", name="History").click()
    bookings = page.get_by_role("list", name="Bookings")
    await page.get_by_label("Product", exact=True).select_option(label="Milk")
    await expect(bookings.get_by_role("listitem").first).to_contain_text("by anna: for the cake")
    await page.get_by_label("As it was at").fill("2020-01-01T12:00")
    await expect(page.get_by_text("There was no such product at that time")).to_be_visible()
    await page.get_by_label("As it was at").fill("2090-01-01T12:00")
    await expect(page.get_by_role("list", name="Stock then")).to_contain_text("Milk")
    await page.goto(f"{kitchen.one.url}/?product={MILK}")
    await region(page, "Milk").get_by_text("Note and name").click()
    await expect(page.get_by_label("Your name")).to_have_value("anna")


async def test_the_shopping_list_is_ticked_off_which_books(kitchen: PantrySystem, cook: Visitor) -> None:
    await kitchen.one.post(f"/products/{MILK}/count", {"counted": 1})
    page = await cook.open("/?view=shopping")
    await page.get_by_label("Quantity of Milk").fill("6")
    await page.get_by_label("Bought Milk").check()
    await expect(page.get_by_text("Milk: 6 l in, 7 l there now")).to_be_visible()
    await expect(page.get_by_label("Bought Milk")).to_be_disabled()
    assert await kitchen.one.stock(MILK) == 7
    await page.get_by_role("button", name="Read again").click()
    await expect(page.get_by_label("Bought Milk")).to_have_count(0)


async def test_a_product_that_leaves_its_category_leaves_the_list_of_the_category(kitchen: PantrySystem, cook: Visitor) -> None:
    sweets = (await kitchen.one.post("/categories", {"name": "Sweets"})).body["id"]
    milk = {"name": "Milk", "unit": "l", "min_stock": 2}
    await kitchen.one.ask("PUT", f"/api/v1/products/{MILK}", {**milk, "category_id": sweets})
    page = await cook.open(f"/?category={sweets}&product={MILK}")
    rows = page.locator("tbody tr[data-key]")
    await expect(rows).to_have_count(1)
    await kitchen.one.ask("PUT", f"/api/v1/products/{MILK}", milk)
    await expect(rows).to_have_count(0)
    await kitchen.one.ask("PUT", f"/api/v1/products/{MILK}", {**milk, "category_id": sweets})
    await expect(rows).to_have_count(1)
    panel = region(page, "Milk")
    await panel.get_by_text("Edit").click()
    await panel.get_by_label("Category").select_option(label="None")
    await panel.get_by_role("button", name="Save").click()
    await expect(rows).to_have_count(0)


async def test_the_stock_then_has_the_products_of_all_pages(kitchen: PantrySystem, cook: Visitor) -> None:
    async def short(route: Route) -> None:
        """Pages of one product."""
        url = route.request.url
        await route.continue_(url=url if "cursor=" in url else f"{url}&limit=1")

    page = await cook.open("/?view=history&at=2090-01-01T12:00")
    await page.route(re.compile("as_of="), short)
    then = page.get_by_role("list", name="Stock then").get_by_role("listitem")
    for name in ("Flour", "Milk"):
        await page.get_by_label("Product", exact=True).select_option(label=name)
        await page.get_by_label("As it was at").fill("2089-01-01T12:00")
        await expect(then).to_have_count(1)
        await expect(then).to_contain_text(name)
    await page.get_by_label("Product", exact=True).select_option(label="All")
    await page.get_by_label("As it was at").fill("2088-01-01T12:00")
    await expect(then.filter(has_text="Flour")).to_have_count(1)
    await expect(then.filter(has_text="Milk")).to_have_count(1)


async def test_an_item_of_the_shopping_list_is_booked_in_only_by_its_booking(kitchen: PantrySystem, cook: Visitor) -> None:
    await kitchen.one.post(f"/products/{MILK}/count", {"counted": 1})
    page = await cook.open("/?view=shopping")
    item = region(page, "Shopping list").get_by_role("listitem").filter(has_text="Milk")
    bought = page.get_by_label("Bought Milk")
    await cook.context.set_offline(True)
    await bought.click()
    await expect(item).to_contain_text("waits to be booked in")
    await expect(bought).to_be_checked()
    await expect(bought).to_be_disabled()
    await cook.context.set_offline(False)
    await expect(item).to_contain_text(", booked in")
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(page.get_by_text("out again, undone")).to_be_visible()
    await expect(item).not_to_contain_text("booked in")
    await expect(bought).to_be_enabled()
    await expect(bought).not_to_be_checked()
    await page.route(re.compile(r"/movements$"), lambda route: route.fulfill(status=403, json={"error": "may only read"}))
    await bought.click()
    await expect(page.get_by_role("region", name="Refused changes")).to_contain_text("may only read")
    await expect(item).to_contain_text(", refused")
    await expect(bought).to_be_enabled()
    assert await kitchen.one.stock(MILK) == 1
    await page.get_by_role("button", name="Dismiss").click()
    await page.unroute_all()
    await bought.click()
    await expect(item).to_contain_text(", booked in")
    await kitchen.one.post(f"/products/{MILK}/count", {"counted": 1})
    await page.get_by_role("button", name="Read again").click()
    await expect(bought).to_be_enabled()
    await expect(item).not_to_contain_text("booked in")
    cook.complaints[:] = [text for text in cook.complaints if "403" not in text and "ERR_INTERNET" not in text]


async def test_products_and_movements_are_imported_after_a_preview(kitchen: PantrySystem, cook: Visitor) -> None:
    new, other = own_code(78), own_code(79)
    page = await cook.open("/?view=import")
    table = page.get_by_label("Table")
    rows = page.get_by_role("list", name="Rows").get_by_role("listitem")
    await table.fill(f'ean13;name;unit;min_stock\n{new};"Jam; red";jar;1,5\n{other};;jar;1\n{FLOUR};Flour;kg;1\n')
    await page.get_by_role("button", name="Preview").click()
    await expect(rows).to_have_count(3)
    await expect(rows.nth(0)).to_contain_text("Jam; red, jar, minimum 1.5")
    await expect(rows.nth(1)).to_contain_text("name: is required")
    await expect(rows.nth(2)).to_contain_text(f"there is a product {FLOUR} already")
    await page.get_by_role("button", name="Create 1 of 3").click()
    await expect(page.get_by_text("1 rows are done, 2 refused")).to_be_visible()
    made = await kitchen.one.get(f"/products/{new}")
    assert (made["name"], made["min_stock"], made["current_stock"]) == ("Jam; red", 1.5, 0)
    await table.fill(f"\ufeffProduct_EAN13;Type;Quantity;Reason\n{new};in;2,5;gift\n{new};out;9;\n{new};in;x;\n")
    await page.get_by_role("button", name="Preview").click()
    await expect(rows.nth(0)).to_contain_text("2.5 there then")
    await expect(rows.nth(1)).to_contain_text("insufficient stock")
    await expect(rows.nth(2)).to_contain_text("quantity: 'x' is not a number")
    assert await kitchen.one.stock(new) == 0
    await page.get_by_role("button", name="Book 1 of 3").click()
    await expect(page.get_by_text("1 rows are done, 2 refused")).to_be_visible()
    assert await kitchen.one.stock(new) == 2.5


async def test_a_table_of_movements_may_also_name_the_products(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open("/?view=import")
    before = await kitchen.one.stock(MILK)
    await page.get_by_label("Table").fill(f"ean13;name;unit;type;quantity\n{MILK};Milk;l;in;2\n")
    await page.get_by_role("button", name="Preview").click()
    await page.get_by_role("button", name="Book 1 of 1").click()
    await expect(page.get_by_text("1 rows are done, 0 refused")).to_be_visible()
    assert await kitchen.one.stock(MILK) == before + 2


async def test_an_import_with_unknown_results_is_sent_again_under_its_key(kitchen: PantrySystem, cook: Visitor) -> None:
    """The first answer has no result for the rows that were booked. A row that the preview refused is booked by then."""
    keys: list[str] = []

    async def lost(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        answer = await route.fetch()
        document = await answer.json()
        if len(keys) == 1:
            document |= {"accepted": 0, "unknown": document["accepted"]}
            for row in document["results"]:
                row.update({"status": 503, "error": "late"} if row["status"] == 201 else {})
        await route.fulfill(response=answer, json=document)

    await kitchen.one.post(f"/products/{FLOUR}/count", {"counted": 1})
    page = await cook.open("/?view=import")
    await page.route(re.compile(r"/movements:batch$"), lost)
    rows = page.get_by_role("list", name="Rows").get_by_role("listitem")
    preview = page.get_by_role("button", name="Preview")
    await page.get_by_label("Table").fill(f"product_ean13;type;quantity\n{MILK};in;1\n{FLOUR};out;3\n{FLOUR};in;x\n")
    await preview.click()
    await expect(rows.nth(1)).to_contain_text("insufficient stock")
    await kitchen.one.moved("in", 9, FLOUR)
    await page.get_by_role("button", name="Book 1 of 3").click()
    await expect(page.get_by_text("0 rows are done, 1 refused, 2 not known")).to_be_visible()
    await expect(preview).to_be_disabled()
    await page.get_by_role("button", name="Send again").click()
    await expect(page.get_by_text("2 rows are done, 1 refused")).to_be_visible()
    await expect(rows.nth(1)).to_contain_text("Flour: out 3, 7 there then")
    await expect(rows.nth(1)).not_to_contain_text("insufficient stock")
    await expect(page.get_by_role("button", name="Send again")).to_have_count(0)
    await expect(preview).to_be_enabled()
    assert (len(keys), len(set(keys)), await kitchen.one.stock(FLOUR)) == (2, 1, 7)


async def test_a_tick_box_keeps_its_size_beside_a_long_name(kitchen: PantrySystem, profiles: Profiles) -> None:
    long = own_code(91)
    await kitchen.one.create(long, name="Wholemeal spelt flour of the mill " * 4, unit="kg", min_stock=2)
    async with profiles.visitor(kitchen.one.url, viewport={"width": 320, "height": 800}) as cook:
        page = await cook.open("/?view=shopping")
        box = await page.get_by_role("checkbox", name=re.compile("Wholemeal")).bounding_box()
    assert box is not None
    assert box["width"] >= 24
