"""Pictures of every screen of a running system, at 1440 and 390 pixels, light and dark: for the documents, and to look at them.

.venv/bin/python scripts/screenshots.py --url http://127.0.0.1:8080 --pantry http://127.0.0.1:8081 --out pictures

It needs Playwright and Chromium, like the tests. `./scripts/up --demo` starts a system with data. `--repo` selects the repository
whose pages are taken; by default it is the repository with the highest average.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from pictures.chromium import ChromiumMissing, launch_options
from playwright.async_api import Browser, async_playwright

SIZE = 1440, 900
PHONE = 390, 844
SETTLED = 1_500
"""Milliseconds after which figures are drawn."""


def main() -> int:
    """Take the pictures and name them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the tracker (default: %(default)s)")
    parser.add_argument("--pantry", help="the pantry, for the kitchen's page (default: none)")
    parser.add_argument("--graphql", help="the gateway, for the page of its functions (default: none)")
    parser.add_argument("--repo", default="", help="a part of the address of the repository (default: any)")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="where the files go (default: %(default)s)")
    options = parser.parse_args()
    try:
        chromium = launch_options()
    except ChromiumMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = screens(options.url, options.repo) | ({} if options.pantry is None else kitchen(options.pantry))
    if options.graphql is not None:
        wanted["graphql"] = f"{options.graphql}/function/tracker"
    asyncio.run(take(chromium, wanted, options.out))
    return 0


def screens(url: str, repo: str) -> dict[str, str]:
    """Return the name and the address of each screen of the tracker. Drawers are open if the system has an item for them."""
    found = {"overview": "/", "tasks": "/tasks", "analyses": "/analyses", "workers": "/workers", "repositories": "/repos"}
    found |= {"log": "/log", "projections": "/projections"}
    analyses = [one for one in _read(f"{url}/api/repos?limit=100") if repo in one["repo_info"]["url"]]
    if analyses:
        worst = max(analyses, key=lambda one: one["summary"]["average"])
        found["task"] = f"/tasks/{worst['task_id']}"
        found["analysis"] = f"/analyses/{worst['id']}"
        found["history"] = f"/analyses/{worst['id']}/history"
        history = _read(f"{url}/api/repos/{worst['id']}/history")
        if len(history) > 1:
            found |= comparison(url, worst["id"], history[1]["task_id"], history[0]["task_id"])
        whole = _read(f"{url}/api/repos/{worst['id']}?entries=1")
        if whole["entries"]:
            found["function"] = f"/analyses/{worst['id']}/functions/{quote(whole['entries'][0]['key'])}"
        found["repository"] = f"/repos/{worst['repo_id']}?project={worst['project']}"
        [done, *_] = _read(f"{url}/api/log?type=TaskCompleted&limit=1")["events"]
        found["event"] = f"/log/{done['sequence']}"
    return {name: url + address for name, address in found.items()}


def comparison(url: str, analysis: str, older: str, newer: str) -> dict[str, str]:
    """Return the page of a comparison, and the same with the source of the function that changed most."""
    page = f"/analyses/{analysis}/compare/{older}...{newer}"
    changed = _read(f"{url}/api/repos/{analysis}/diff?from={older}&to={newer}&limit=100")["functions"]
    both = [one for one in changed if one["before"] and one["after"]]
    if not both:
        return {"comparison": page}
    key = "{status} {file}:{line}:{function}".format_map(both[0])
    return {"comparison": page, "sources": f"{page}?open={quote(key)}"}


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


async def take(chromium: dict[str, Any], wanted: dict[str, str], directory: Path) -> None:
    """Take the pictures of these screens, in both colours, and on a phone."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**chromium)
        for name, address in wanted.items():
            await _picture(browser, address, directory / f"{name}-light.png", SIZE, dark=False)
            await _picture(browser, address, directory / f"{name}-dark.png", SIZE, dark=True)
            await _picture(browser, address, directory / f"{name}-phone.png", PHONE, dark=False)
            await _picture(browser, address, directory / f"{name}-phone-dark.png", PHONE, dark=True)
        await browser.close()


async def _picture(browser: Browser, address: str, file: Path, size: tuple[int, int], *, dark: bool) -> None:
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(address)
    await page.wait_for_selector('[data-live="live"], .workspace')
    await page.wait_for_timeout(SETTLED)
    await page.screenshot(path=file)
    await context.close()
    print(file)


if __name__ == "__main__":
    sys.exit(main())
