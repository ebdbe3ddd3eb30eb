"""A real browser on a real page: what it said on its console, whom it asked, and what axe finds."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, async_playwright, expect

from tests.support import ROOT

ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage")
PATIENCE = 20_000
"""Milliseconds that something may take on a machine under load."""
_AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules });
  const told = ({ html, failureSummary }) => `${html} ${failureSummary}`;
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(told).join("; ")}`);
}"""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Chromium of this machine. Where there is none the test is skipped."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("these tests need Chromium: apt install chromium")
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            await browser.close()


class Visitor:
    """Somebody with a browser profile of their own. `complaints` is all that the browser said, `others` whom else it asked."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self.others: set[str] = set()
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        self.complaints.append(f"{message.type}: {message.text} at {message.location.get('url')}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc and not request.url.startswith("data:"):
            self.others.add(request.url)

    async def open(self, path: str = "/") -> Page:
        """A tab on an address of the service, when the page is live."""
        page = await self.context.new_page()
        page.set_default_timeout(PATIENCE)
        await page.goto(self.url + path)
        await page.wait_for_selector('[data-live="live"]')
        return page


@asynccontextmanager
async def visitor(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """A profile for a test. At its end the browser has said nothing on the console and has asked nobody else."""
    context = await browser.new_context(base_url=url, **{"viewport": {"width": 1280, "height": 800}, **options})
    try:
        found = Visitor(context, url)
        yield found
        assert not found.complaints, "\n".join(found.complaints)
        assert found.others == set()
    finally:
        await context.close()


async def found_by_axe(page: Page) -> list[str]:
    """What axe says against a page as it is shown now."""
    await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: list[str] = await page.evaluate(_RUN, _RULES)
    return found
