"""Every screen of the kitchen's page: axe finds nothing, nothing scrolls sideways, and the console is silent."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.pages.kitchen.cooking import code
from tests.support.pantry.system import FLOUR, PantrySystem
from tests.support.web.browser import Profiles, Scheme, accessible

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

SCREENS = {
    "": "Milk",
    f"?product={FLOUR}": "in 10.3 kg",
    f"?product={code(999)}": "There is no product with",
    "?low=1": "Milk",
    "?view=shopping": "Shopping list",
    "?view=stocktake": "in the books",
    "?view=history": "Bookings",
    "?view=categories": "No category yet",
    "?view=import": "A table with names in its first line",
    "?view=devices": "Devices",
}
"""Addresses, and a text that is there once all of the screen is."""


@pytest.mark.parametrize(
    "schemes",
    [("light", "dark"), pytest.param(("dark", "light"), marks=pytest.mark.long)],
    ids=["wide and light, narrow and dark", "wide and dark, narrow and light"],
)
async def test_axe_finds_nothing_at_any_width(kitchen: PantrySystem, profiles: Profiles, schemes: tuple[Scheme, Scheme]) -> None:
    async with profiles.visitor(kitchen.one.url, reduced_motion="reduce") as cook:
        page = await cook.open()
        for address, text in SCREENS.items():
            await page.goto(f"{kitchen.one.url}/{address}")
            await expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
            await expect(page.locator(".skeleton")).to_have_count(0)
            await accessible(page, schemes)
