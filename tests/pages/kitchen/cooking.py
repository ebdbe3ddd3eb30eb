"""The kitchen's page in tests: products, their codes, scans."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page

from pantry.domain.ean13 import check_digit
from tests.support.pantry.system import Server
from tests.support.web.browser import Visitor


def code(number: int) -> str:
    """An EAN-13 that no other test has."""
    first = f"40000000{number:04d}"
    return f"{first}{check_digit(first)}"


TEA, JAM, SALT, RICE, OATS, BEANS, PEAS, CORN, NUTS, DILL, EGGS = (code(number) for number in range(11))


def product(page: Page, name: str) -> Any:
    """The panel of a product."""
    return page.get_by_role("region", name=name)


async def stocked(server: Server, ean13: str, name: str, stock: float) -> None:
    """Create a product with the given stock."""
    await server.create(ean13, name=name, unit="piece", min_stock=1)
    await server.moved("in", stock, ean13)


async def scan(page: Page, digits: str) -> None:
    """Scan a code as a scanner does: type it at the focus."""
    await page.keyboard.type(digits)
    await page.keyboard.press("Enter")


async def only_said_of_itself(cook: Visitor, *texts: str) -> None:
    """Check that the browser only reported a refusal or a lost connection."""
    assert [text for text in cook.complaints if not any(each in text for each in texts)] == []
    cook.complaints.clear()
