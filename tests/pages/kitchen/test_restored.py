"""A page that stays open while the ledger is restored from a backup shows the restored ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.pages.kitchen.cooking import only_said_of_itself, stocked
from tests.support.pantry.system import FLOUR, MILK, pantry_system
from tests.support.web.browser import visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_an_open_page_shows_the_restored_ledger(browser: Browser, tmp_path: Path) -> None:
    """Its sequences are lower: a position of the other ledger says nothing about which state is newer."""
    async with pantry_system(tmp_path) as system, visitor(browser, system.one.url) as cook:
        pantry, backup = system.one, tmp_path / "backup"
        await stocked(pantry, FLOUR, "Flour", 2)
        await system.nats.stop()
        shutil.copytree(tmp_path / "nats", backup)
        await system.nats.start()
        await pantry.ready()
        for _ in range(5):
            await pantry.moved("in", 1)
        await stocked(pantry, MILK, "Milk", 3)
        page = await cook.open()
        await expect(page.locator(f'tr[data-key="{FLOUR}"]')).to_contain_text("7 piece")
        await expect(page.locator(f'tr[data-key="{MILK}"]')).to_contain_text("3 piece")
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        await pantry.kill()
        await system.nats.stop()
        shutil.rmtree(tmp_path / "nats")
        shutil.copytree(backup, tmp_path / "nats")
        pantry.remove_database()
        await system.nats.start()
        await pantry.start()
        await expect(page.locator(f'tr[data-key="{FLOUR}"]')).to_contain_text("2 piece", timeout=30_000)
        await expect(page.locator(f'tr[data-key="{MILK}"]')).to_have_count(0)
        await pantry.moved("out", 1)
        await expect(page.locator(f'tr[data-key="{FLOUR}"]')).to_contain_text("1 piece")
        await only_said_of_itself(cook, "ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "status of 503")
