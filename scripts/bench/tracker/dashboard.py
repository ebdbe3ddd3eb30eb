"""The dashboard in Chromium, on a real system: how fast its first view is there, and how smooth it stays under load.

- first view: a new browser profile goes to the overview, and to the list of 10,000 tasks. Time from the start of the navigation
  to the first paint with content and to the first data, the bytes that were transferred for the page, and the processor time
  of the page's main thread
- live: the list of 10,000 tasks is open while tasks are cancelled and retried, 100 events a second. Time between frames as
  requestAnimationFrame tells it, and the same processor time

PYTHONPATH=.:scripts python scripts/bench/tracker/dashboard.py --runs 7 --seconds 60

It needs Chromium on the PATH and built pages. The machine's load is also printed: frames are late if other programs use the
processors.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from pictures.chromium import ChromiumMissing, launch_options
from playwright.async_api import Browser, async_playwright, expect

from tests.support.tracker.system import TrackerSystem, tracker_system

REPO = "https://example.com/owner/shop"
PROJECTS = 100
LATE = 33
"""Milliseconds: a frame that takes longer is one that was missed, at 60 a second."""
VIEWS = {"overview": ("/", "g[data-tile]"), "tasks": ("/tasks", "tr[data-key]")}
"""Address of a view, and an element that is there once it shows data."""

_WATCH = """(selector) => {
  const look = () => {
    if (document.querySelector(selector)) globalThis.shownAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""
_FIRST = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const parts = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const page = parts.filter(({ name }) => !name.includes("/api/"));
  const [painted, shown] = [paint?.startTime ?? null, globalThis.shownAt ?? null];
  return { paint: painted, shown, bytes: page.reduce((sum, part) => sum + part.encodedBodySize, 0) };
}"""
_FRAMES = """() => {
  globalThis.deltas = [];
  cancelAnimationFrame(globalThis.watching);
  let before = performance.now();
  const frame = (now) => {
    globalThis.deltas.push(now - before);
    before = now;
    globalThis.watching = requestAnimationFrame(frame);
  };
  globalThis.watching = requestAnimationFrame(frame);
}"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="first views of each kind (default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=10_000, help="tasks in the list (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=100, help="events a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="how long they come (default: %(default)s)")
    options = parser.parse_args()
    try:
        chromium = launch_options()
    except ChromiumMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    asyncio.run(measure(chromium, options))
    return 0


async def measure(chromium: dict[str, Any], options: argparse.Namespace) -> None:
    """All of it, on a private system."""
    with tempfile.TemporaryDirectory() as directory:
        async with tracker_system(Path(directory)) as system, async_playwright() as playwright:
            await fill(system, options.tasks)
            browser = await playwright.chromium.launch(**chromium)
            print(f"chromium {browser.version}, Python {platform.python_version()}, {os.cpu_count()} processors")
            for name in VIEWS:
                await first_views(browser, system, name, options.runs)
            await live(browser, system, options)
            await browser.close()


async def fill(system: TrackerSystem, tasks: int) -> None:
    """A project with a result, and that many waiting tasks."""
    await system.start_worker(1, FAKE_PROJECTS=str(PROJECTS))
    await system.register(REPO)
    [done] = await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "."})
    await system.until_task(done["id"], "completed")
    await system.post("/api/workers/worker-1/pause")
    await system.until_worker("worker-1", "paused")
    for number in range(tasks // PROJECTS):
        await system.post("/api/repos/analyze", {"repo_url": REPO, "ref": f"r{number}"})


def load() -> str:
    """Other work of the machine."""
    return f"load {os.getloadavg()[0]:.1f}"


def spread(values: Sequence[float]) -> str:
    """The median, with the lowest and the highest."""
    return f"{statistics.median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})"


async def first_views(browser: Browser, system: TrackerSystem, name: str, runs: int) -> None:
    """Print how fast a view is there for somebody who was never here; the first run, which warms the server, does not count."""
    address, selector = VIEWS[name]
    found = [await first_view(browser, system.url + address, selector) for _ in range(runs + 1)][1:]
    paints, shown, worked = ([run[which] for run in found] for which in ("paint", "shown", "busy"))
    print(
        f"first view of {name}: first paint {spread(paints)}, data {spread(shown)}, {found[0]['bytes'] / 1024:.1f} KiB; "
        f"processor time of the main thread {spread(worked)}, {load()}",
        flush=True,
    )


async def first_view(browser: Browser, address: str, selector: str) -> dict[str, float]:
    """One view in a new profile."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = await context.new_page()
        await page.add_init_script(f"({_WATCH})({selector!r})")
        session = await context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        await page.goto(address)
        while True:
            result: dict[str, float | None] = await page.evaluate(_FIRST)
            if None not in result.values():
                found = {name: value for name, value in result.items() if value is not None}
                return found | {"busy": 1000 * await busy(session)}
            await asyncio.sleep(0.05)
    finally:
        await context.close()


async def live(browser: Browser, system: TrackerSystem, options: argparse.Namespace) -> None:
    """Print how frames come while events do."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    await page.goto(f"{system.url}/tasks")
    await page.wait_for_selector("tr[data-key]")
    rows = options.tasks + 2  # with the head, and the one that is done
    await expect(page.locator("table")).to_have_attribute("aria-rowcount", str(rows), timeout=60_000)
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    for what in ("nothing happens", f"{options.rate} events a second"):
        before = await busy(session)
        await page.evaluate(_FRAMES)
        started = time.monotonic()
        sent = await send(system, options) if what != "nothing happens" else await quiet(options.seconds / 6)
        took = time.monotonic() - started
        deltas: list[float] = await page.evaluate("globalThis.deltas")
        after = await busy(session)
        late = sum(delta > LATE for delta in deltas) / len(deltas)
        print(
            f"{what}: {sent / took:.0f}/s for {took:.0f} s, {len(deltas)} frames, {late:.1%} over {LATE} ms, "
            f"median {statistics.median(deltas):.1f} ms, longest {max(deltas):.0f} ms; "
            f"processor time of the main thread {(after - before) / took:.0%}, {load()}",
            flush=True,
        )
    failed = len(await system.get("/api/tasks?status=failed&limit=1000"))
    await expect(page.get_by_role("button", name="failed").locator(".number")).to_have_text(str(failed))
    await context.close()


async def quiet(seconds: float) -> int:
    """No request is sent: the load of the machine by itself."""
    await asyncio.sleep(seconds)
    return 0


async def busy(session: Any) -> float:
    """Seconds of processor time that the page's main thread had."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


async def send(system: TrackerSystem, options: argparse.Namespace) -> int:
    """Cancel tasks and retry them, each an event, at an even rate; gives how many succeeded."""
    tasks = [task["id"] for task in await system.get("/api/tasks?status=queued&limit=1000")]
    orders = cycle(
        [(id_, order) for start in range(0, len(tasks), 50) for order in ("cancel", "retry") for id_ in tasks[start : start + 50]]
    )
    started, running, statuses = time.monotonic(), set[asyncio.Task[None]](), Counter[int]()

    async def do(id_: str, order: str) -> None:
        statuses[(await system.status(f"/api/tasks/{id_}/{order}", "POST"))[0]] += 1

    for number in range(round(options.rate * options.seconds)):
        await asyncio.sleep(max(0.0, started + number / options.rate - time.monotonic()))
        running.add(asyncio.create_task(do(*next(orders))))
        running = {task for task in running if not task.done()}
    await asyncio.gather(*running)
    return sum(count for status, count in statuses.items() if status < 300)


if __name__ == "__main__":
    sys.exit(main())
