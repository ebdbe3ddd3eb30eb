"""A real browser on a real page: its console, its requests to other hosts, and the findings of axe."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from pictures.chromium import ChromiumMissing, launch_options
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    ViewportSize,
    async_playwright,
    expect,
)

from tests.support import ROOT
from tests.support.waiting import wait_until

Scheme = Literal["light", "dark"]
PATIENCE = 60_000
"""Milliseconds that something may take on a machine under load."""
_AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
_WIDTHS = "parts => [...document.querySelectorAll(parts)].map(each => each.scrollWidth)"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_FORGET = """async () => {
  for (const store of [localStorage, sessionStorage]) store.clear();
  for (const { name } of await indexedDB.databases()) indexedDB.deleteDatabase(name);
}"""
_RUN = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"], preload: false });
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
        self.is_for_one = False
        """Whether no other test can use the profile: its pages have a script or a clock of the test."""
        self._idle: list[Page] = []

    def _said(self, message: ConsoleMessage) -> None:
        self.complaints.append(f"{message.type}: {message.text} at {message.location.get('url')}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc and not request.url.startswith("data:"):
            self.others.add(request.url)

    async def tab(self) -> Page:
        """A tab that shows no page of the service."""
        page = self._idle.pop() if self._idle else await self.context.new_page()
        page.set_default_timeout(PATIENCE)
        return page

    async def open(self, path: str = "/") -> Page:
        """A tab on an address of the service, when the page is live."""
        page = await self.tab()
        await page.goto(self.url + path)
        await page.wait_for_selector('[data-live="live"]')
        return page

    async def begin_with(self, script: str) -> None:
        """Run a script on each page before its own."""
        self.is_for_one = True
        await self.context.add_init_script(script)

    async def stop_the_clock(self) -> None:
        """Stop the time of the pages; a test moves it forward."""
        self.is_for_one = True
        await self.context.clock.install()

    def check(self) -> None:
        """Check that the console is empty, and that no other host was asked."""
        assert not self.complaints, "\n".join(self.complaints)
        assert self.others == set()

    async def leave(self, viewport: ViewportSize) -> None:
        """Close all tabs but one, and forget what the profile has kept of the service.

        The tab goes to a plain document of the service, since a browser starts a new process for an empty page.
        """
        first, *others = self.context.pages or [await self.context.new_page()]
        for page in others:
            await page.close()
        await self.context.set_offline(False)
        await self.context.unroute_all(behavior="ignoreErrors")
        await first.unroute_all(behavior="ignoreErrors")
        await first.mouse.move(0, 0)
        await first.emulate_media(media="null")
        await first.set_viewport_size(viewport)
        await first.goto(f"{self.url}/livez")
        await first.evaluate(_FORGET)
        await self.context.clear_cookies()
        self._idle = [first]


_VIEWPORT: ViewportSize = {"width": 1280, "height": 800}


@asynccontextmanager
async def visitor(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """Open a profile for a test. At its end the console is empty, and no other host was asked."""
    context = await browser.new_context(base_url=url, **{"viewport": _VIEWPORT, **options})
    try:
        visitor = Visitor(context, url)
        yield visitor
        visitor.check()
    finally:
        await context.close()


class Profiles:
    """Profiles that tests use one after the other, each with a tab: a page in a new one takes twice the processor time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, Visitor] = {}

    @asynccontextmanager
    async def visitor(self, url: str, **options: Any) -> AsyncIterator[Visitor]:
        """A profile without cookies and stored values. At its end the console is empty, and no other host was asked."""
        options = {"viewport": _VIEWPORT, **options}
        kind = f"{url} {options}"
        visitor = self._idle.pop(kind, None) or Visitor(await self._browser.new_context(base_url=url, **options), url)
        is_kept = False
        try:
            yield visitor
            if not visitor.is_for_one:
                await visitor.leave(options["viewport"])
                is_kept = kind not in self._idle
            visitor.check()
        finally:
            if is_kept:
                self._idle[kind] = visitor
            else:
                await visitor.context.close()

    async def close(self) -> None:
        """Close the profiles."""
        for visitor in self._idle.values():
            await visitor.context.close()
        self._idle.clear()


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
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: list[str] = await page.evaluate(_RUN, _RULES)
    return found


async def accessible(page: Page, schemes: tuple[Scheme, Scheme] = ("light", "dark"), narrow: int = 320) -> None:
    """Check that axe finds nothing, and that nothing scrolls sideways: wide in the first colours, and narrow in the second.

    The page gets its first size back, and the colours of the browser.
    """
    before = page.viewport_size
    for width, scheme in zip((1280, narrow), schemes, strict=True):
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": 800})
        await fits(page, width)
        assert await found_by_axe(page) == [], f"{page.url} at a width of {width} in {scheme} colours"
    await page.emulate_media(color_scheme="null")
    if before is not None:
        await page.set_viewport_size(before)
