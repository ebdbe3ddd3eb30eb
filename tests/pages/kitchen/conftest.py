"""Fixtures of the tests of the kitchen's page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.pages.kitchen.cooking import JAM, TEA
from tests.support.pantry.system import FLOUR, MILK, PantrySystem, pantry_system
from tests.support.web.browser import Profiles, Visitor


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kitchen(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A pantry with some products, two of them low."""
    async with pantry_system(tmp_path_factory.mktemp("kitchen")) as system:
        for ean13, name, unit, stock in (
            (FLOUR, "Flour", "kg", 10.3),
            (MILK, "Milk", "l", 1),
            (TEA, "Tea, black", "pack", 0),
            (JAM, "A jam of which the name is longer than any phone is wide, with apricots and a bit of lemon", "jar", 4),
        ):
            await system.one.create(ean13, name=name, unit=unit, min_stock=1)
            if stock:
                await system.one.moved("in", stock, ean13)
        yield system


@pytest_asyncio.fixture(loop_scope="session")
async def cook(kitchen: PantrySystem, profiles: Profiles) -> AsyncIterator[Visitor]:
    """Somebody in the kitchen."""
    async with profiles.visitor(kitchen.one.url) as found:
        yield found
