"""The events in a browser: one connection for all tabs, each event once, also across a killed server."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.pages.conftest import Dashboard
from tests.support.waiting import wait_until
from tests.support.web.browser import Visitor, visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def shown(page: Page) -> list[str]:
    """The positions of the events in the list of activity, oldest first."""
    found: list[str] = await page.locator("[data-event]").evaluate_all("lines => lines.map(line => line.dataset.event)")
    return found[::-1]


async def connections(dashboard: Dashboard) -> int:
    """How many streams of events the server has open."""
    _, text = await dashboard.system.status("/metrics")
    found = re.search(r"^\w*sse_clients (\d+)", text, re.MULTILINE)
    assert found, text
    return int(float(found[1]))


async def test_tabs_share_one_connection_and_another_takes_over(dashboard: Dashboard, user: Visitor) -> None:
    first = await user.open("/")
    second = await user.open("/")
    assert await connections(dashboard) == 1
    for page in (first, second):
        await expect(page.locator(".skeleton")).to_have_count(0)
    before = len(await dashboard.system.events())
    one = await dashboard.queued()
    for page in (first, second):
        await expect(page.locator(f'a[href="/tasks/{one}"]').first).to_be_visible()
    await first.close()
    two = await dashboard.queued()
    await expect(second.locator(f'a[href="/tasks/{two}"]').first).to_be_visible()
    seen = await shown(second)
    assert len(seen) == len(await dashboard.system.events()) - before
    assert seen == sorted(set(seen), key=float)

    async def one_connection() -> bool:
        return await connections(dashboard) == 1

    await wait_until(one_connection, timeout=60, every=0.05)


_MUTABLE = """
const Real = window.EventSource;
window.streams = [];
window.EventSource = class extends Real {
  constructor(url) {
    super(url);
    window.streams.push(this);
  }
  addEventListener(name, listener) {
    super.addEventListener(name, (event) => this.hangs || listener(event));
  }
};
"""
"""A stream that hangs gives a page nothing more, neither an event nor an error."""


async def test_a_stream_that_hangs_is_opened_once_more_and_nothing_is_missed(dashboard: Dashboard, user: Visitor) -> None:
    await user.begin_with(_MUTABLE)
    await user.stop_the_clock()
    page = await user.open("/")
    await page.evaluate("window.streams[0].hangs = true")
    task = await dashboard.queued()
    for _ in range(2):
        await page.clock.fast_forward(30_000)
    await expect(page.locator(f'a[href="/tasks/{task}"]').first).to_be_visible()
    await expect(page.locator('[data-live="live"]')).to_be_visible()
    assert await page.evaluate("window.streams.map(stream => stream.readyState)") == [2, 1]


@pytest.mark.long
async def test_a_killed_server_is_seen_and_nothing_is_missed_or_shown_twice(dashboard: Dashboard) -> None:
    async with visitor(dashboard.browser, dashboard.system.url) as user:
        page = await user.open("/")
        system = dashboard.system
        await expect(page.locator(".skeleton")).to_have_count(0)
        before = len(await system.events())
        tasks = [await dashboard.queued() for _ in range(3)]
        await expect(page.locator("[data-event]")).to_have_count(len(await system.events()) - before)
        assert system.serve is not None
        await system.serve.kill()
        await expect(page.locator('[data-live="stale"]')).to_contain_text("stale since")
        await system.start_serve()
        tasks += [await dashboard.queued() for _ in range(3)]
        await expect(page.locator('[data-live="live"]')).to_be_visible(timeout=20_000)
        await expect(page.locator(f'[data-event] a[href="/tasks/{tasks[-1]}"]')).to_be_visible(timeout=20_000)
        positions = await shown(page)
        assert len(positions) == len(set(positions))
        assert len(positions) == len(await system.events()) - before
        for task in tasks:
            await expect(page.locator(f'[data-event] a[href="/tasks/{task}"]')).to_have_count(1)
        told = [text for text in user.complaints if "ERR_CONNECTION" in text or "ERR_INCOMPLETE" in text or "ERR_EMPTY" in text]
        assert told == user.complaints, "what the browser itself says of a connection, and nothing else"
        user.complaints.clear()
