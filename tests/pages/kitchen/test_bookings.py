"""The kitchen's page in a browser, on a running pantry: find, book, undo, live, by keyboard, both colours, on a phone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.pages.kitchen.cooking import BEANS, RICE, TEA, code, only_said_of_itself, product, stocked
from tests.support.pantry.system import FLOUR, PantrySystem, pantry_system
from tests.support.web.browser import Profiles, Visitor, fits, found_by_axe, visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]
PHONE: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}


async def test_a_phone_shows_all_of_it_without_scrolling_sideways(kitchen: PantrySystem, profiles: Profiles) -> None:
    async with profiles.visitor(kitchen.one.url, **PHONE) as cook:
        page = await cook.open()
        await expect(page.get_by_text("Milk")).to_be_visible()
        await fits(page, 320, "html, main, .table-box, .product")
        await page.get_by_role("link", name="A jam").tap()
        panel = product(page, "A jam")
        await expect(panel).to_contain_text("4 jar")
        await expect(page.get_by_role("table", name="Products")).to_have_count(0)
        await fits(page, 320, "html, main, .table-box, .product")
        for name in ("Out", "In", "More", "Less", "Close the product"):
            box = await panel.get_by_role("button", name=name, exact=True).bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44, name
        await panel.get_by_role("button", name="In", exact=True).tap()
        await expect(page.get_by_role("status").get_by_text("5 jar there now")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("table", name="Products")).to_be_visible()
        await page.goto(f"{kitchen.one.url}/?product={code(999)}")
        await expect(page.get_by_text("There is no product with")).to_be_visible()
        await fits(page, 320, "html, main, .table-box, .product")


async def test_a_product_is_found_by_a_part_of_its_name_and_low_products_by_a_button(cook: Visitor) -> None:
    page = await cook.open()
    rows = page.locator("tbody tr[data-key]")
    await expect(rows.nth(2)).to_be_visible()
    await expect(page.get_by_role("searchbox", name="Name or barcode")).to_be_focused()
    await page.keyboard.type("BLACK")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(product(page, "Tea, black")).to_contain_text("0 pack")
    await expect(page).to_have_url(re.compile(f"product={TEA}"))
    await page.keyboard.press("Escape")
    await expect(product(page, "Tea, black")).to_have_count(0)
    await page.get_by_role("button", name=re.compile("^low")).click()
    await expect(rows.filter(has_text="Tea, black")).to_be_visible()
    await expect(rows.filter(has_text="Flour")).to_have_count(0)


async def test_bookings_and_undos_by_keyboard_and_refusals_in_the_words_of_the_server(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    await stocked(kitchen.one, RICE, "Rice", 10.3)
    page = await cook.open(f"/?product={RICE}")
    panel = product(page, "Rice")
    await expect(panel.get_by_role("heading", name="Rice")).to_be_visible()
    await page.get_by_label("Quantity").fill("99")
    await page.keyboard.press("Escape")
    await page.keyboard.press("o")
    refusal = "insufficient stock: available 10.300, requested 99.000"
    await expect(page.get_by_role("alert").get_by_text(refusal)).to_be_visible()
    await expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(0)
    await only_said_of_itself(cook, "status of 422")
    await page.get_by_role("button", name="Dismiss Rice: 99 piece out").click()
    await page.get_by_label("Quantity").fill("0,3")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").get_by_text("Rice: 0.3 piece in, 10.6 piece there now")).to_be_visible()
    await expect(page.get_by_text(refusal)).to_have_count(0)
    await expect(panel.locator(".lately li").first).to_contain_text("in 0.3 piece")
    await page.keyboard.press("u")
    await expect(page.get_by_text("0.3 piece out again, undone, 10.3 piece there now")).to_be_visible()
    await expect(panel.locator(".lately li").nth(1)).to_contain_text("undone")
    assert await kitchen.one.stock(RICE) == 10.3
    await panel.get_by_role("button", name="Undo in 10.3 piece").click()
    await expect(panel).to_contain_text("0 piece")
    assert await kitchen.one.stock(RICE) == 0


async def test_changes_of_another_client_appear_at_once_and_stand_still_under_the_pointer(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    page = await cook.open(f"/?product={FLOUR}")
    await expect(product(page, "Flour").get_by_text("10.3 kg", exact=True)).to_be_visible()
    await stocked(kitchen.one, BEANS, "Beans", 3)
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("3 piece")
    await kitchen.one.moved("in", 1, FLOUR)
    await expect(product(page, "Flour").get_by_text("11.3 kg", exact=True)).to_be_visible()
    await expect(product(page, "Flour").locator(".lately li").first).to_contain_text("in 1 kg")
    await kitchen.one.moved("out", 1, FLOUR)
    await page.locator(f'tr[data-key="{BEANS}"]').hover()
    keys = "rows => rows.map(row => row.dataset.key)"
    before = await page.locator("tbody tr[data-key]").evaluate_all(keys)
    await kitchen.one.moved("out", 2, BEANS)
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("low")
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("1 piece")
    assert await page.locator("tbody tr[data-key]").evaluate_all(keys) == before
    await page.mouse.move(0, 0)
    await expect(page.locator("tbody tr[data-key]").first).to_have_attribute("data-key", BEANS)


async def test_the_page_can_be_installed_and_its_manifest_is_permitted(cook: Visitor) -> None:
    page = await cook.open()
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    session = await cook.context.new_cdp_session(page)
    manifest = await session.send("Page.getAppManifest")
    assert (manifest["errors"], '"short_name":"Pantry"' in manifest["data"]) == ([], True)
    problems = await session.send("Page.getInstallabilityErrors")
    assert [each for each in problems["installabilityErrors"] if each["errorId"] != "in-incognito"] == []


async def test_the_page_asks_for_the_token_and_goes_on_with_it(browser: Browser, tmp_path: Any) -> None:
    async with (
        pantry_system(tmp_path, PANTRY_AUTH_TOKEN="a-token-of-some-length") as system,
        visitor(browser, system.one.url) as cook,
    ):
        page = await cook.context.new_page()
        await page.goto(system.one.url)
        await page.get_by_label("Token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").get_by_text("token")).to_be_visible()
        assert await found_by_axe(page) == []
        await page.get_by_label("Token").fill("a-token-of-some-length")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("There are no products yet")).to_be_visible()
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        await only_said_of_itself(cook, "401")
