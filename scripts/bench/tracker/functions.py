"""The page of a function in Chromium, with a file of 5,000 lines: how fast it opens, and how smooth it scrolls.

- opens: a new browser profile goes to the page. Time from the request for the function to the second frame with lines, and the
  processor time of the page's main thread from the start of the navigation
- scrolls: 240 steps over the whole file, one a frame. Time between frames as requestAnimationFrame tells it

PYTHONPATH=.:scripts python scripts/bench/tracker/functions.py --runs 7

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pictures.chromium import ChromiumMissing, launch_options
from playwright.async_api import Browser, async_playwright

from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import tracker_system

LINES = 5_000
STEPS = 240
LATE = 33
"""Milliseconds: a frame that takes longer is one that was missed, at 60 a second."""
BODY = (
    "\tif x > {0} && len(names) > 0 {{ // the case {0}\n"
    '\t\treturn fmt.Sprintf("%d of %s", x+{0}, names[0])\n'
    "\t}}\n"
    "\tfor i := 0; i < {0}; i++ {{\n"
    "\t\tx += i // one more\n"
    "\t}}\n"
)
_WATCH = """() => {
  const look = () => {
    if (!document.querySelector(".code-line")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.shownAt = performance.now())));
  };
  look();
}"""
_OPENED = """() => {
  const asked = performance.getEntriesByType("resource").find(({ name }) => name.includes("/functions/"));
  return globalThis.shownAt ? globalThis.shownAt - asked.startTime : null;
}"""
_SCROLL = """(steps) => new Promise((done) => {
  const main = document.querySelector("main");
  const deltas = [];
  let before = performance.now();
  let step = 0;
  const next = (now) => {
    deltas.push(now - before);
    before = now;
    main.scrollTop = (main.scrollHeight - main.clientHeight) * (++step / steps);
    if (step < steps) requestAnimationFrame(next);
    else done(deltas.slice(1));
  };
  requestAnimationFrame(next);
})"""


def made_up() -> MadeUp:
    """Return an analysis of one function of many lines, each third block of it covered."""
    count = (LINES - 8) // 6
    source = (
        "package long\n\nfunc Long(x int, names []string) string {\n"
        + "".join(map(BODY.format, range(count)))
        + '\treturn ""\n}\n'
    )
    blocks = ["mode: set", "example.com/./long.go:3.44,4.36 1 1"]
    for number in range(count):
        line = 4 + 6 * number
        blocks.append(f"example.com/./long.go:{line}.36,{line + 2}.3 1 {int(number % 3 == 0)}")
        blocks.append(f"example.com/./long.go:{line + 3}.31,{line + 5}.3 1 {int(number % 3 == 0)}")
    covered = 1 + 2 * len(range(0, count, 3))
    lines = source.count("\n")
    return MadeUp(
        commit_sha="1" * 40,
        functions={},
        measured={"long.go:Long": (1 + 3 * count, covered / (1 + 2 * count) * 100)},
        lines={"long.go:Long": (3, lines)},
        sources={"long.go": source},
        profile="\n".join([*blocks, ""]),
    )


async def opened(browser: Browser, url: str, address: str) -> tuple[float, float, list[float], int]:
    """Open the page in a new profile. Return milliseconds, processor milliseconds, frames of the scrolling, elements."""
    context = await browser.new_context(base_url=url, viewport={"width": 1440, "height": 900})
    await context.add_init_script(f"({_WATCH})()")
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    await page.goto(address)
    await page.wait_for_selector(".code-line")
    took: Any = None
    while took is None:
        await asyncio.sleep(0.05)
        took = await page.evaluate(_OPENED)
    metrics = {one["name"]: one["value"] for one in (await session.send("Performance.getMetrics"))["metrics"]}
    busy = (metrics["ScriptDuration"] + metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]) * 1000
    frames: list[float] = await page.evaluate(_SCROLL, STEPS)
    elements: int = await page.evaluate("document.querySelectorAll('.code *').length")
    await context.close()
    return took, busy, frames, elements


async def run(runs: int, chromium: dict[str, Any]) -> None:
    """Measure, and print the figures."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with tracker_system(directory) as system, async_playwright() as playwright:
            await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
            project = await Project.registered(system, directory / "analyses", "long")
            await project.analyze(made_up())
            browser = await playwright.chromium.launch(**chromium)
            address = f"/analyses/{await project.id}/functions/Long?whole=yes"
            print(f"{browser.version}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
            found = [await opened(browser, system.url, address) for _ in range(runs)]
            frames = [frame for _, _, each, _ in found for frame in each]
            print(f"{LINES} lines, {found[0][3]} elements")
            print(f"opens: {_told([took for took, *_ in found])} ms")
            print(f"processor of the main thread: {_told([busy for _, busy, *_ in found])} ms")
            late = sum(frame > LATE for frame in frames) / len(frames)
            print(f"scrolls: median frame {statistics.median(frames):.1f} ms, {late:.1%} over {LATE} ms")
            print(f"load {os.getloadavg()[0]:.1f}")
            await browser.close()


def _told(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> int:
    """Measure with the given number of new profiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="new profiles (default: %(default)s)")
    options = parser.parse_args()
    try:
        chromium = launch_options()
    except ChromiumMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    asyncio.run(run(options.runs, chromium))
    return 0


if __name__ == "__main__":
    sys.exit(main())
