"""A real browser on a real page: its console, its requests to other hosts, and the findings of axe."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pictures.chromium import ChromiumMissing, launch_options
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, async_playwright, expect

from tests.support import ROOT
from tests.support.waiting import wait_until

PATIENCE = 60_000
"""Milliseconds that something may take on a machine under load."""
_AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
_WIDTHS = "parts => [...document.querySelectorAll(parts)].map(each => each.scrollWidth)"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules });
  const told = ({ html, failureSummary }) => `${html} ${failureSummary}`;
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(told).join("; ")}`);
}"""


def _options() -> dict[str, Any]:
    expect.set_options(timeout=PATIENCE)
    try:
        return launch_options(whole=False)
    except ChromiumMissing as error:
        pytest.skip(f"these tests need Chromium: {error}")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Chromium of this machine. If there is none the test is skipped."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**_options())
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def killed_chromium(profile: Path) -> AsyncIterator[BrowserContext]:
    """A browser with a profile on disk, which is killed at the end of the block, as by a phone whose battery is empty."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            str(profile), **_options(), viewport={"width": 390, "height": 800}
        )
        try:
            yield context
        finally:
            for process in _processes_of(profile):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            with suppress(Error):
                await context.close()
            (profile / "SingletonLock").unlink(missing_ok=True)


def _processes_of(profile: Path) -> list[int]:
    """The processes of the browser with this profile, the browser itself first."""
    found = []
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        with suppress(OSError):
            if f"--user-data-dir={profile}".encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return sorted(found)


class Visitor:
    """A visitor with a private browser profile. `complaints` are the lines of its console, `others` the other hosts it asked."""

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
    """Open a profile for a test. At its end the console is empty, and no other host was asked."""
    context = await browser.new_context(base_url=url, **{"viewport": {"width": 1280, "height": 800}, **options})
    try:
        found = Visitor(context, url)
        yield found
        assert not found.complaints, "\n".join(found.complaints)
        assert found.others == set()
    finally:
        await context.close()


async def fits(page: Page, width: int, parts: str = "html, main") -> None:
    """Wait until these parts of a page are at most `width` pixels wide: a change of its width takes effect after a moment."""
    widths: list[int] = []

    async def narrow() -> bool:
        widths[:] = await page.evaluate(_WIDTHS, parts)
        return max(widths) <= width

    try:
        await wait_until(narrow, timeout=PATIENCE / 1000 / 4, every=0.02)
    except AssertionError:
        raise AssertionError(f"{page.url} is {max(widths)} pixels wide, not {width}") from None


async def found_by_axe(page: Page) -> list[str]:
    """Return the findings of axe on a page in its present state."""
    await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: list[str] = await page.evaluate(_RUN, _RULES)
    return found
