"""Pictures of every screen of the dashboard of a system that runs, light and dark: for the documents, and for looking at them.

.venv/bin/python scripts/screenshots.py --url http://127.0.0.1:8080 --out pictures

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
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="where the files go (default: %(default)s)")
    options = parser.parse_args()
    program = shutil.which("chromium")
    if program is None:
        print("error: chromium is not installed\nhint: apt install chromium", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(program, options.url, options.out))
    return 0


def screens(url: str) -> dict[str, str]:
    """Name and address of each screen, with something open where the system has something to open."""
    found = {"overview": "/", "tasks": "/tasks", "workers": "/workers", "repositories": "/repos"}
    analyses = _read(f"{url}/api/repos?limit=1")
    if analyses:
        found["task"] = f"/tasks/{analyses[0]['task_id']}"
        found["repository"] = f"/repos/{analyses[0]['repo_id']}?project={analyses[0]['project']}"
    return found


def _read(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - the user's own service
        return json.load(answer)


async def take(program: str, url: str, directory: Path) -> None:
    """Take the pictures of all screens, in both colours, and on a phone."""
    wanted = await asyncio.to_thread(screens, url)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for name, address in wanted.items():
            await _picture(browser, url + address, directory / f"{name}-light.png", SIZE, dark=False)
            await _picture(browser, url + address, directory / f"{name}-dark.png", SIZE, dark=True)
            await _picture(browser, url + address, directory / f"{name}-phone.png", PHONE, dark=False)
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
