"""Bookings on the kitchen's page without a network or a server: none is lost or made twice."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.pages.kitchen.cooking import CORN, NUTS, PEAS, code, only_said_of_itself, product, scan, stocked
from tests.support.pantry.system import PantrySystem
from tests.support.waiting import wait_until
from tests.support.web.browser import Profiles, found_by_axe, killed_chromium

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_a_killed_server_is_seen_and_no_booking_is_lost_or_made_twice(kitchen: PantrySystem, profiles: Profiles) -> None:
    await stocked(kitchen.one, PEAS, "Peas", 10)
    async with profiles.visitor(kitchen.one.url) as cook:
        page = await cook.open(f"/?product={PEAS}")
        panel = product(page, "Peas")
        await expect(panel.get_by_text("10 piece", exact=True)).to_be_visible()
        await kitchen.one.kill()
        await expect(page.locator('[data-live="stale"]')).to_contain_text("stale since")
        await panel.get_by_role("button", name="Out", exact=True).click()
        await expect(page.get_by_role("region", name="Waiting changes")).to_contain_text("Peas: 1 piece out")
        await kitchen.one.start()
        await expect(page.get_by_text("Peas: 1 piece out, 9 piece there now")).to_be_visible()
        await expect(page.get_by_role("region", name="Waiting changes")).to_have_count(0)
        await kitchen.one.moved("out", 2, PEAS)
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        await expect(panel.get_by_text("7 piece", exact=True)).to_be_visible()
        await expect(panel.locator(".lately li")).to_have_count(3)
        await kitchen.one.moved("in", 5, PEAS)
        await expect(panel.get_by_text("12 piece", exact=True)).to_be_visible()
        await only_said_of_itself(cook, "ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY")


async def test_bookings_without_a_network_are_sent_in_order_and_refusals_are_listed_one_by_one(
    kitchen: PantrySystem, profiles: Profiles
) -> None:
    await stocked(kitchen.one, CORN, "Corn", 2)
    async with profiles.visitor(kitchen.one.url) as cook:
        page = await cook.open(f"/?product={CORN}&scan=out")
        await expect(product(page, "Corn")).to_be_visible()
        await cook.context.set_offline(True)
        for _ in range(3):
            await scan(page, CORN)
        await scan(page, code(997))
        waiting = page.get_by_role("region", name="Waiting changes")
        await expect(waiting.get_by_role("listitem")).to_have_count(4)
        assert await found_by_axe(page) == []
        await waiting.get_by_role("button", name=f"Take back {code(997)}").click()
        await scan(page, code(996))
        await expect(waiting.get_by_role("listitem")).to_have_count(4)
        await cook.context.set_offline(False)
        refused = page.get_by_role("region", name="Refused changes").get_by_role("listitem")
        await expect(refused).to_have_count(2)
        await expect(refused.nth(1)).to_contain_text("Corn: 1 piece out")
        await expect(refused.nth(1)).to_contain_text("insufficient stock: available 0.000, requested 1.000")
        await expect(refused.nth(0)).to_contain_text(code(996))
        await expect(waiting).to_have_count(0)
        assert await found_by_axe(page) == []
        assert await kitchen.one.stock(CORN) == 0
        await page.reload()
        await expect(refused).to_have_count(2)
        await page.get_by_role("button", name=f"Dismiss {code(996)}").click()
        await expect(refused).to_have_count(1)
        await page.get_by_role("textbox", name="Quantity of Corn: 1 piece out").fill("5")
        await page.get_by_role("button", name="Try again Corn: 1 piece out").click()
        await expect(refused.filter(has_text="requested 5.000")).to_have_count(1)
        await page.get_by_role("button", name="Count instead of Corn: 5 piece out").click()
        await expect(refused).to_have_count(0)
        await expect(page.get_by_text("Corn: 5 piece counted, +5 piece booked")).to_be_visible()
        assert await kitchen.one.stock(CORN) == 5
        await only_said_of_itself(cook, "ERR_INTERNET_DISCONNECTED", "status of 4", "ERR_NETWORK")


async def test_a_booking_of_a_product_that_the_browser_did_not_know_shows_the_product(
    kitchen: PantrySystem, profiles: Profiles
) -> None:
    """The answer to the booking comes without the events."""
    figs = code(995)
    async with profiles.visitor(kitchen.one.url) as cook:
        silent = {"content_type": "text/event-stream", "body": "retry: 600000\n\n"}
        await cook.context.route(re.compile("/api/v1/events"), lambda route: route.fulfill(**silent))
        page = await cook.context.new_page()
        await page.goto(f"{kitchen.one.url}/?scan=out")
        await expect(page.get_by_role("table", name="Products")).to_be_visible()
        await cook.context.set_offline(True)
        await stocked(kitchen.one, figs, "Figs", 7)
        await scan(page, figs)
        await expect(page.get_by_role("region", name="Waiting changes").get_by_role("listitem")).to_have_count(1)
        await cook.context.set_offline(False)
        panel = product(page, "Figs")
        await expect(panel.get_by_text("6 piece", exact=True)).to_be_visible()
        await expect(panel).to_contain_text("low at 1 piece")
        await expect(panel).not_to_contain_text("not kept any more")
        await only_said_of_itself(cook, "ERR_INTERNET_DISCONNECTED", "ERR_NETWORK")


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_two_phones_without_a_network_whose_browsers_are_killed_book_each_scan_once(
    kitchen: PantrySystem, tmp_path: Path
) -> None:
    await stocked(kitchen.one, NUTS, "Nuts", 15)
    phones = [tmp_path / "one", tmp_path / "two"]
    for phone in phones:
        async with killed_chromium(phone) as context:
            page = await context.new_page()
            await page.goto(f"{kitchen.one.url}/?product={NUTS}&scan=out")
            await expect(product(page, "Nuts")).to_be_visible()
            await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
            await wait_until(partial(_is_known, page, NUTS), timeout=60)
            await context.set_offline(True)
            for _ in range(10):
                await scan(page, NUTS)
            waiting = page.get_by_role("region", name="Waiting changes").get_by_role("listitem")
            await expect(waiting).to_have_count(10)
            await page.reload()
            await expect(waiting).to_have_count(10)
            await expect(product(page, "Nuts")).to_contain_text(re.compile(r"15 piece\s*\(-10 waiting\)"))
    await kitchen.one.kill()
    refusals = 0
    for phone in phones:
        async with killed_chromium(phone) as context:
            page = await context.new_page()
            answer = await page.goto(kitchen.one.url)
            if phone == phones[0]:  # its browser starts while the service is down
                assert answer is not None
                assert answer.from_service_worker
                await expect(page.get_by_role("region", name="Waiting changes").get_by_role("listitem")).to_have_count(10)
                await page.get_by_role("searchbox").fill("Nuts")  # the list shows the rows that fit
                await expect(page.locator(f'tr[data-key="{NUTS}"]')).to_contain_text(re.compile(r"15 piece\s*\(-10 waiting\)"))
                await kitchen.one.start()
            await expect(page.locator('[data-live="live"]')).to_be_visible()
            await wait_until(partial(_is_settled, page), timeout=60)
            found = page.get_by_role("region", name="Refused changes").get_by_role("listitem")
            assert all("insufficient stock" in text for text in await found.all_inner_texts())
            refusals += await found.count()
    assert (await kitchen.one.stock(NUTS), refusals) == (0, 5)
    movements = await kitchen.one.get(f"/products/{NUTS}/movements?limit=100")
    assert [movement["type"] for movement in movements].count("out") == 15


async def _stored(page: Page, store: str) -> Any:
    """Return what a store of the browser's database has."""
    return await page.evaluate(
        """(store) => new Promise((done) => {
          const opened = indexedDB.open("pantry");
          opened.onsuccess = () => {
            const all = opened.result.transaction(store).objectStore(store).getAll();
            all.onsuccess = () => { opened.result.close(); done(all.result); };
          };
        })""",
        store,
    )


async def _is_settled(page: Page) -> bool:
    """Whether no change of the browser's database waits."""
    return all(change["refusal"] is not None for change in await _stored(page, "changes"))


async def _is_known(page: Page, ean13: str) -> bool:
    """Whether the browser has kept a product."""
    return any(product["ean13"] == ean13 for kept in await _stored(page, "known") for product in kept.get("products", []))
