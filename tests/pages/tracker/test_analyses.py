"""The screens of analyses, history, event log and projections in a browser: their content, by pointer and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.pages.conftest import FIRST, SECOND
from tests.support.tracker.made_project import Project
from tests.support.tracker.system import tracker_system
from tests.support.web.browser import Profiles, Visitor, fits

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

MANY = 50_000


@attrs.frozen
class Shown:
    """A project with two analyses, one with very many functions, and the browser."""

    project: Project
    large: Project
    browser: Browser

    async def address(self, rest: str = "") -> str:
        return f"/analyses/{await self.project.id}{rest}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shown]:
    directory = tmp_path_factory.mktemp("screens")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        project = await Project.registered(system, directory / "analyses")
        await project.analyze(FIRST, SECOND, ref="main")
        large = await Project.registered(system, directory / "analyses", "large-and-with-a-name-that-no-phone-is-wide-enough-for")
        measured = {f"p{number % 300}/f.go:F{number}": (1 + number % 40, float(number % 101)) for number in range(MANY)}
        await large.analyze(attrs.evolve(FIRST, measured=measured))
        yield Shown(project, large, browser)


@pytest_asyncio.fixture(loop_scope="session")
async def user(shown: Shown, profiles: Profiles) -> AsyncIterator[Visitor]:
    async with profiles.visitor(shown.project.system.url) as found:
        yield found


def names(page: Page, table: str) -> Any:
    """The names in the rows of a table."""
    return page.get_by_role("table", name=table, exact=True).locator("tbody tr[data-key] .name")


async def test_an_analysis_names_the_worst_functions_and_the_remedies(shown: Shown, user: Visitor) -> None:
    page = await user.open("/analyses")
    await page.locator(f'tr[data-key="{await shown.project.id}"]').locator("[data-row]").click()
    await expect(page).to_have_url(re.compile(await shown.address() + "$"))
    await expect(page.get_by_role("list", name="Figures")).to_contain_text("2 risky functions")
    rows = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key]")
    await expect(rows.nth(0)).to_contain_text(re.compile(r"Added.*90\.00.*cover 36\.3 %.*main\.go:6"))
    await expect(rows.nth(1)).to_contain_text(re.compile(r"Huge.*40\.00.*split it"))
    coverage = page.get_by_role("region", name="Coverage", exact=True)
    await expect(coverage).to_contain_text("build failed: undefined: x")
    gate = page.get_by_role("region", name="Gate")
    await expect(gate).to_contain_text("1 new risky functions (CRAP over 30), the limit is 0")
    await expect(gate).to_contain_text("not passed")


async def test_packages_the_frame_and_words_choose_the_functions_and_stay_in_the_address(shown: Shown, user: Visitor) -> None:
    page = await user.open(await shown.address())
    tile = page.get_by_role("link", name=re.compile("^pricing, 1 of 2 functions risky, highest CRAP 40.00"))
    await tile.focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("in=pricing"))
    await expect(names(page, "Functions")).to_have_text(["Huge", "Discount"])
    await page.get_by_label("Complexity to").fill("20")
    await page.keyboard.press("Enter")
    await expect(names(page, "Functions")).to_have_text(["Discount"])
    await page.reload()
    await expect(names(page, "Functions")).to_have_text(["Discount"])
    await page.get_by_role("button", name="Show all").click()
    await expect(names(page, "Functions")).to_have_count(6)
    box = await page.locator(".scatter svg").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 20, box["y"] + 2)  # all complexities, no coverage
    await page.mouse.down()
    await page.mouse.move(box["x"] + 60, box["y"] + box["height"] - 20, steps=3)
    await page.mouse.up()
    await expect(names(page, "Functions")).to_have_text(["Added"])
    await page.get_by_role("button", name="Show all").click()
    await page.get_by_label("Filter functions").fill("order check")
    await expect(names(page, "Functions")).to_have_text(["Order.Check"])


async def test_an_analysis_is_saved_in_each_form_and_has_a_badge(shown: Shown, user: Visitor) -> None:
    page = await user.open(await shown.address())
    async with page.expect_download() as started:
        await page.get_by_role("link", name="SARIF").click()
    download = await started.value
    assert download.suggested_filename == f"{shown.project.tasks[-1]}.sarif"
    assert json.loads((await download.path()).read_bytes())["version"] == "2.1.0"
    await page.get_by_role("combobox", name="Badge").select_option("grade")
    badge = page.get_by_role("img", name="Badge: grade")
    await expect(badge).to_have_attribute("src", re.compile(r"badge\.svg\?metric=grade"))
    assert await badge.evaluate("image => image.decode().then(() => image.naturalWidth)") > 60


async def test_fifty_thousand_functions_are_scrolled_with_few_rows_in_the_document(shown: Shown, user: Visitor) -> None:
    page = await user.open(f"/analyses/{await shown.large.id}")
    await expect(page.get_by_text("all 50,000")).to_be_visible()
    await page.locator(".table-box").evaluate("box => box.scrollTop = box.scrollHeight")
    last = page.locator(f'tr[aria-rowindex="{MANY + 1}"]')
    await expect(last).to_be_visible()
    assert await page.locator("tbody tr[data-key]").count() < 100
    assert await page.locator("g[data-tile]").count() <= 150
    await page.set_viewport_size({"width": 320, "height": 640})
    await fits(page, 320)  # the name of the project wraps


async def test_the_history_is_drawn_with_its_breaks_and_leads_to_comparisons(shown: Shown, user: Visitor) -> None:
    page = await user.open(await shown.address("/history"))
    chart = page.get_by_role("group", name=re.compile("Average CRAP over 2 analyses, .* measured differently from 1 of them on"))
    await expect(chart.locator("canvas")).to_be_visible()
    await expect(page.get_by_role("table", name="Analyses of the project")).to_contain_text("go_version go1.26.6 → go1.26.7")
    first, second = shown.project.tasks
    await page.get_by_role("link", name="since 111111111111").click()
    await expect(page).to_have_url(re.compile(f"/compare/{first}...{second}$"))


async def test_the_history_has_a_trend_for_each_ref_also_without_a_latest_analysis(shown: Shown, user: Visitor) -> None:
    project = await Project.registered(shown.project.system, shown.project.directory)
    await project.analyze(attrs.evolve(FIRST, ref="topic"))
    page = await user.open(f"/analyses/{await project.id}/history")
    await expect(page.get_by_role("group", name="Average CRAP: one analysis")).to_be_visible()
    assert all("404" in text for text in user.complaints), user.complaints
    user.complaints.clear()
    await project.analyze(SECOND)
    page = await user.open(f"/analyses/{await project.id}/history")
    trend = page.get_by_role("combobox", name="Trend of")
    await expect(trend).to_have_value("main")
    await trend.select_option("topic")
    await expect(page).to_have_url(re.compile("ref=topic$"))
    await expect(page.get_by_role("group", name="Average CRAP: one analysis")).to_be_visible()
    await expect(page.get_by_role("table", name="Analyses of the project").locator("tbody tr[data-key]")).to_have_count(2)


async def test_events_are_found_and_the_state_at_any_sequence_is_shown(shown: Shown, user: Visitor) -> None:
    task = shown.project.tasks[0]
    page = await user.open("/log")
    await page.get_by_label("Aggregate").fill(f"gctd.task.{task}")
    await page.keyboard.press("Enter")
    rows = page.get_by_role("table", name="Events").locator("tbody tr[data-key]")
    await expect(rows.last).to_contain_text("TaskQueued")
    await page.get_by_label("Types").fill("TaskCompleted, TaskStarted")
    await page.keyboard.press("Enter")
    await expect(rows).to_have_count(2)
    await page.keyboard.press("Tab")
    await page.locator("h1").click()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="TaskCompleted")
    state = drawer.get_by_label("State", exact=True)
    await expect(state).to_contain_text('"status": "completed"')
    for status in ("running", "running", "running", "queued"):
        await drawer.get_by_role("button", name="before").click()
        await expect(state).to_contain_text(f'"status": "{status}"')
    await drawer.get_by_role("button", name="before").click()
    await expect(drawer.get_by_text("The aggregate did not exist yet")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(drawer).to_have_count(0)
    await expect(page).to_have_url(re.compile(r"/log\?of=gctd\.task\.task-\d+&type="))


async def test_the_projections_are_shown_with_how_far_they_are(shown: Shown, user: Visitor) -> None:
    page = await user.open("/projections")
    model = await shown.project.system.get("/api/projections")
    table = page.get_by_role("table", name="Projections")
    await expect(table.locator("tbody tr")).to_have_count(len(model["projections"]))
    await expect(table.locator("tbody tr", has_text="analyses")).to_contain_text(f"{model['head']:,}")
    await expect(page.get_by_role("list", name="Figures")).to_contain_text("live")
