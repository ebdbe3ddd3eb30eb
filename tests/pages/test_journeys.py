"""Journeys with real scans, clicks counted: from an address to lines to test, and from a comment at a forge to changed lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.support.tracker.go_repo import make, module
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.web.browser import visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

SCAN = 120_000
"""Milliseconds that a scan may take."""
PRICE = """package shop

func Price(amount, member, day int) int {
\tif amount > 100 || member > 3 {
\t\tif day == 6 && member > 0 {
\t\t\treturn amount - 20
\t\t}
\t\treturn amount - 10
\t}
\tif day == 1 || day == 2 {
\t\treturn amount - 5
\t}
\treturn amount
}

func Double(x int) int { return 2 * x }
"""
TEST = 'package shop\n\nimport "testing"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n'
FILES = {"go.mod": module("example.com/shop"), "price.go": PRICE, "price_test.go": TEST}


class Clicks:
    """Clicks of a user, counted."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, element: Locator) -> None:
        await element.click()
        self.count += 1


@pytest.mark.long
async def test_few_clicks_lead_from_an_address_and_from_a_comment_to_lines(browser: Browser, tmp_path: Path) -> None:
    repo = make(tmp_path / "shop", files=FILES)
    async with (
        tracker_system(tmp_path, GCTD_PUBLIC_URL="https://gctd.test") as system,
        visitor(browser, system.url) as someone,
    ):
        await system.start_worker(1, program=REAL_WORKER)
        page = await someone.open("/")
        await page.get_by_label("Address of the repository").fill(repo.url)
        await page.keyboard.press("Enter")
        click = Clicks()
        worst = page.get_by_role("list", name="Worst functions").get_by_role("link")
        await expect(worst).to_have_count(2, timeout=SCAN)
        await click(worst.first)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Price")
        await expect(page.locator(".code-line.is-uncovered").first).to_contain_text("if amount > 100")
        assert click.count <= 4

        repo.write(
            {"price.go": PRICE.replace("\treturn amount\n", "\tif day == 3 {\n\t\treturn amount - 3\n\t}\n\treturn amount\n")}
        )
        repo.commit()
        page = await someone.open(await commented(system, repo.url))
        click = Clicks()
        await click(page.get_by_role("table", name="Functions that changed").get_by_role("link", name="Price"))
        await expect(page.locator(".is-added")).to_have_text(
            [re.compile("if day == 3"), re.compile("return amount - 3"), re.compile("}")]
        )
        await expect(page.locator(".is-added.is-uncovered")).to_have_count(2)
        await expect(page.locator(".is-removed")).to_have_count(0)
        assert click.count == 1


async def commented(system: TrackerSystem, url: str) -> str:
    """Analyse the next commit, and return the path of the link in its comment."""
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url})
    done = await system.until_task(task["id"], "completed", timeout=SCAN / 1000)
    async with system.http.get(f"{system.url}/api/repos/{done['analysis_id']}/gate.md?to={task['id']}") as answer:
        text = await answer.text()
    found = re.search(r"\(https://gctd\.test(/analyses/[^)]+/compare/[^)]+)\)", text)
    assert found is not None, text
    return found[1]
