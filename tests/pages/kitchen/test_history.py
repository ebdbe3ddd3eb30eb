"""The history of the kitchen's page has the present bookings, and reports a text that is not a time."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.pantry.system import FLOUR, MILK, PantrySystem
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_the_bookings_follow_those_of_other_clients(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open("/?view=history")
    bookings = page.get_by_role("list", name="Bookings").get_by_role("listitem")
    await expect(bookings.first).to_contain_text("A jam")
    movement = await kitchen.one.moved("in", 3.25, MILK)
    await expect(bookings.first).to_contain_text("Milk: in 3.25 l")
    await kitchen.one.post(f"/movements/{movement['id']}/undo")
    await expect(bookings.first).to_contain_text("undoes another")
    await expect(bookings.nth(1)).to_contain_text("undone")


async def test_a_year_of_five_digits_is_no_time(kitchen: PantrySystem, cook: Visitor) -> None:
    """The field of a browser takes six digits. The other pages open all the same."""
    page = await cook.open(f"/?view=history&of={FLOUR}")
    await page.get_by_label("As it was at").fill("20266-01-01T12:00")
    await expect(page.get_by_role("alert").filter(has_text="This is not a time")).to_be_visible()
    await expect(page.get_by_role("list", name="Bookings")).to_have_count(0)
    await page.get_by_label("As it was at").fill("2090-01-01T12:00")
    await expect(page.get_by_role("list", name="Stock then")).to_contain_text("Flour")
    await page.get_by_label("As it was at").fill("20266-01-01T12:00")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Stock", exact=True).click()
    await expect(page.get_by_role("table", name="Products")).to_contain_text("Flour")
