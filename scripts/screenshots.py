"""Pictures of every screen of a system that runs, light and dark and on a phone: for the documents, and for looking at them.

.venv/bin/python scripts/screenshots.py --url http://127.0.0.1:8080 --pantry http://127.0.0.1:8081 --out pictures

It needs what the tests need: Playwright and Chromium. `./scripts/up --demo` is a system with something to see.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.async_api import Browser, async_playwright

SIZE = 1280, 800
PHONE = 360, 740
SETTLED = 1_500
"""Milliseconds after which figures are drawn."""


def main() -> int:
    """Take the pictures and name them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the tracker (default: %(default)s)")
    parser.add_argument("--pantry", help="the pantry, for the kitchen's page (default: none)")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="where the files go (default: %(default)s)")
    options = parser.parse_args()
    program = shutil.which("chromium")
    if program is None:
        print("error: chromium is not installed\nhint: apt install chromium", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = screens(options.url) | ({} if options.pantry is None else kitchen(options.pantry))
    asyncio.run(take(program, wanted, options.out))
    return 0


def screens(url: str) -> dict[str, str]:
    """Name and address of each screen of the tracker, with something open where the system has something to open."""
    found = {"overview": "/", "tasks": "/tasks", "analyses": "/analyses", "workers": "/workers", "repositories": "/repos"}
    found |= {"log": "/log", "projections": "/projections"}
    analyses = _read(f"{url}/api/repos?limit=100")
    if analyses:
        worst = max(analyses, key=lambda one: one["summary"]["average"])
        found["task"] = f"/tasks/{worst['task_id']}"
        found["analysis"] = f"/analyses/{worst['id']}"
        found["history"] = f"/analyses/{worst['id']}/history"
        found["repository"] = f"/repos/{worst['repo_id']}?project={worst['project']}"
        [done, *_] = _read(f"{url}/api/log?type=TaskCompleted&limit=1")["events"]
        found["event"] = f"/log/{done['sequence']}"
    return {name: url + address for name, address in found.items()}


def kitchen(url: str) -> dict[str, str]:
    """The same of the pantry."""
    found = {"kitchen": "/"}
    products = _read(f"{url}/api/v1/products?active=true&low_stock=false&limit=1")
    if products:
        found["product"] = f"/?product={products[0]['ean13']}"
    return {name: url + address for name, address in found.items()}


def _read(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - the user's own service
        return json.load(answer)


async def take(program: str, wanted: dict[str, str], directory: Path) -> None:
    """Take the pictures of these screens, in both colours, and on a phone."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for name, address in wanted.items():
            await _picture(browser, address, directory / f"{name}-light.png", SIZE, dark=False)
            await _picture(browser, address, directory / f"{name}-dark.png", SIZE, dark=True)
            await _picture(browser, address, directory / f"{name}-phone.png", PHONE, dark=False)
        await browser.close()


async def _picture(browser: Browser, address: str, file: Path, size: tuple[int, int], *, dark: bool) -> None:
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(address)
    await page.wait_for_selector('[data-live="live"]')
    await page.wait_for_timeout(SETTLED)
    await page.screenshot(path=file)
    await context.close()
    print(file)


if __name__ == "__main__":
    sys.exit(main())
