"""A stocktake in several tabs of one browser is one walk."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.pantry.system import FLOUR, MILK, PantrySystem
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_no_tab_loses_or_repeats_a_count_of_another_one(kitchen: PantrySystem, cook: Visitor) -> None:
    one, other = await cook.open("/?view=stocktake"), await cook.open("/?view=stocktake")
    await one.get_by_label("Counted Milk").fill("7")
    await expect(other.get_by_label("Counted Milk")).to_have_value("7")
    await other.get_by_label("Counted Flour").fill("8,5")
    await one.reload()
    await expect(one.get_by_label("Counted Milk")).to_have_value("7")
    await expect(one.get_by_label("Counted Flour")).to_have_value("8,5")
    await one.get_by_role("button", name="Book 2 counted").click()
    await expect(other.get_by_label("Counted Milk")).to_have_value("")
    await expect(other.get_by_role("button", name="Book 0 counted")).to_be_disabled()
    await expect(one.get_by_text("8.5 kg in the books")).to_be_visible()
    await expect(one.get_by_text("7 l in the books")).to_be_visible()
    assert (await kitchen.one.stock(MILK), await kitchen.one.stock(FLOUR)) == (7, 8.5)
