"""The page of a repository: from an address to a score, live. It has every action of the API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.pages.conftest import FIRST, Measured
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until
from tests.support.web.browser import Visitor, found_by_axe, visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


@attrs.frozen
class Empty:
    """A tracker without a repository; its worker ends no scan before `go` exists."""

    system: TrackerSystem
    go: Path


@pytest_asyncio.fixture(loop_scope="session")
async def empty(tmp_path: Path) -> AsyncIterator[Empty]:
    async with tracker_system(tmp_path) as system:
        attrs.evolve(FIRST).write(tmp_path / "analyses", "main")
        go = tmp_path / "go"
        await system.start_worker(1, FAKE_ANALYSES=str(tmp_path / "analyses"), FAKE_UNTIL=str(go), FAKE_PROGRESS="1")
        yield Empty(system, go)


async def test_from_an_address_to_the_worst_function_in_two_clicks(empty: Empty, browser: Browser) -> None:
    """The address is typed once; the page then shows projects, packages as they are tested, the score and the next steps."""
    async with visitor(browser, empty.system.url) as someone:
        page = await someone.open("/")
        field = page.get_by_label("Address of the repository")
        await expect(field).to_be_visible()
        assert await found_by_axe(page) == []
        await field.fill("example.com/owner/new")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("/repos/[0-9a-f]{32}$"))
        project = page.locator('[data-project="."]')
        await expect(project.locator("[data-progress]")).to_have_text("test, 12 of 31 packages, running x/y")
        await expect(project.get_by_role("progressbar")).to_have_attribute("value", "12")
        await expect(page).to_have_title(re.compile(r"^\(12/31\) example\.com/owner/new"))
        assert await found_by_axe(page) == []
        empty.go.touch()
        await expect(project.get_by_role("link", name=re.compile("^average CRAP"))).to_be_visible()
        worst = project.get_by_role("list", name="Worst functions").get_by_role("link")
        await expect(worst).to_have_count(3)
        place = await worst.first.bounding_box()
        await expect(page.get_by_role("region", name="Tasks").get_by_role("link", name="Task: completed")).to_be_visible()
        assert await worst.first.bounding_box() == place, "a link stays under the pointer"
        steps = page.get_by_role("region", name="Next steps")
        for step in ("Compare two analyses", "Set the limits of the gate", "Add the badge"):
            await expect(steps.get_by_role("link", name=step)).to_be_visible()
        await worst.first.click()
        await expect(page).to_have_url(re.compile("/functions/"))
        assert len(await empty.system.get("/api/tasks?show_seen=true")) == 1, "one analysis was asked for"


async def test_a_first_analysis_is_asked_for_once_by_all_pages(empty: Empty, browser: Browser) -> None:
    empty.go.touch()
    repo = await empty.system.register("https://example.com/owner/new")
    async with visitor(browser, empty.system.url) as someone:
        for begun in (1, 0):
            async with someone.context.expect_event("response", lambda answer: answer.url.endswith("/api/repos/analyze")):
                page = await someone.open(f"/repos/{repo['ID']}?analyse=first")
            await expect(page.get_by_text("The analysis begins.")).to_have_count(begun)
            await expect(page).to_have_url(re.compile(f"/repos/{repo['ID']}$"))
            await expect(page.get_by_role("link", name=re.compile("^average CRAP"))).to_be_visible()
    assert len(await empty.system.get("/api/tasks?show_seen=true")) == 1


async def test_a_repository_that_is_added_again_is_analysed_again(empty: Empty, browser: Browser) -> None:
    empty.go.touch()
    async with visitor(browser, empty.system.url) as someone:
        for _ in range(2):
            page = await someone.open("/repos")
            await page.get_by_label("Add a repository").fill("https://example.com/owner/back")
            await page.keyboard.press("Enter")
            await expect(page.get_by_text("The analysis begins.")).to_be_visible()
            await expect(page.get_by_role("link", name=re.compile("^average CRAP"))).to_be_visible()
            await page.get_by_role("button", name="Remove", exact=True).click()
            await page.get_by_role("button", name="Remove the repository").click()
            await expect(page).to_have_url(re.compile("/repos$"))


async def test_a_repository_is_removed_on_its_page(empty: Empty, browser: Browser) -> None:
    """The event of the removal comes before the answer, and the page does not ask for the settings any more."""
    repo = await empty.system.register("https://example.com/owner/removed")
    async with visitor(browser, empty.system.url) as someone:
        other = await someone.open("/repos")
        page = await someone.open(f"/repos/{repo['ID']}")
        await expect(page.get_by_label("Time limit of an attempt")).to_be_visible()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))

        async def late(route: Route) -> None:
            if route.request.method != "DELETE":
                await route.continue_()
                return
            asked.clear()
            answer = await route.fetch()
            await expect(other.get_by_role("link", name="owner/removed")).to_have_count(0)
            await route.fulfill(response=answer)

        await page.route("**/api/repos**", late)
        await page.get_by_role("button", name="Remove", exact=True).click()
        await page.get_by_role("button", name="Remove the repository").click()
        await expect(page).to_have_url(re.compile("/repos$"))
        await expect(page.get_by_text("owner/removed removed.")).to_be_visible()
        await expect(page.get_by_role("link", name="owner/removed")).to_have_count(0)
    assert [url for url in asked if "repo-config" in url] == []
    assert (await empty.system.status(f"/api/repos/status?url={repo['URL']}"))[0] == 404


async def test_the_page_of_a_task_shows_how_many_packages_are_tested(tmp_path: Path, browser: Browser) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_UNTIL=str(tmp_path / "go"), FAKE_PROGRESS="1")
        repo = await system.register("https://example.com/owner/slow")
        async with visitor(browser, system.url) as someone:
            page = await someone.open("/tasks")
            (task,) = await system.post("/api/repos/analyze", {"repo_url": repo["URL"]})
            await expect(page.get_by_text("test, 12 of 31 packages, running x/y").first).to_be_visible()
            page = await someone.open(f"/tasks/{task['id']}")
            await expect(page.locator("[data-stage]")).to_have_text("test, 12 of 31 packages, running x/y")


async def test_another_ref_is_analysed_once_and_the_setting_stays(measured: Measured, reader: Visitor) -> None:
    config = f"/api/repo-config?url={measured.single.url}"
    before = (await measured.system.get(config))["stored"]
    attrs.evolve(FIRST, commit_sha="3" * 40, measured={"tag/tag.go:Tagged": (9, 0.0)}).write(measured.single.directory, "v1.2.0")
    repo = await measured.system.get(f"/api/repos/status?url={measured.single.url}")
    page = await reader.open(f"/repos/{repo['ID']}")
    await page.get_by_label("Another ref").fill("v1.2.0")
    await page.get_by_role("button", name="Analyse once").click()
    await expect(page.get_by_text("1 analysis of v1.2.0 queued.")).to_be_visible()
    await expect(page.get_by_role("region", name="Tasks")).to_contain_text("v1.2.0")
    await expect(page.get_by_role("list", name="Worst functions")).to_contain_text("Tagged")
    refs = [task["ref"] for task in await measured.system.get("/api/tasks?show_seen=true") if task["ref"] == "v1.2.0"]
    assert refs == ["v1.2.0"]
    assert (await measured.system.get(config))["stored"] == before
    status, answer = await measured.system.status(
        "/api/repos/analyze", "POST", json={"repo_url": measured.single.url, "once": True}
    )
    assert (status, "needs a ref" in answer["detail"]) == (400, True)


SKIPPED: dict[str, Any] = {
    "repo_url": "https://example.com/owner/shop",
    "project": "broken",
    "ref": "main",
    "recorded_sha": None,
    "remote_sha": None,
    "moved": False,
    "scheduled": False,
    "task_id": None,
    "note": "cannot be analysed: go.mod has no module",
    "error": None,
}
CHECKED = SKIPPED | {"project": ".", "remote_sha": "a" * 40, "recorded_sha": "b" * 40, "moved": True, "note": "task-1 is queued"}


async def test_a_check_names_the_projects_that_it_skipped(measured: Measured, reader: Visitor) -> None:
    found: list[Any] = [SKIPPED | {"project": "."}]
    await reader.context.route("**/api/repos/check-updates", lambda route: route.fulfill(json=found))
    page = await reader.open(await measured.repository())
    project = page.locator('[data-project="."]')
    await page.get_by_role("button", name="Check for updates").click()
    await expect(project).to_contain_text("Not checked: cannot be analysed: go.mod has no module")
    await expect(project.get_by_text("not moved")).to_have_count(0)
    found[:] = [CHECKED]
    await page.get_by_role("button", name="Check for updates").click()
    await expect(project).to_contain_text("the latest analysis is of bbbbbbbbbbbb; task-1 is queued")
    gone = CHECKED | {"project": "gone", "remote_sha": None, "moved": False, "note": None, "error": "no such ref"}
    found[:] = [CHECKED, SKIPPED, gone, SKIPPED | {"project": None, "note": "skipped: it is still registering"}]
    await page.goto(f"{measured.system.url}/repos")
    await page.get_by_role("button", name="Analyse what moved").click()
    counts = "1 project checked: 1 moved, 0 queued. 1 could not be looked up."
    shop = "example.com/owner/shop"
    await expect(page.get_by_text(f"{counts} 2 skipped: {shop} · broken, {shop}.")).to_be_visible()


async def test_settings_and_findings_follow_the_change_of_another_user(measured: Measured, reader: Visitor) -> None:
    """A draft stays. The finding of an earlier check ends."""
    await reader.context.route("**/api/repos/check-updates", lambda route: route.fulfill(json=[CHECKED]))
    page = await reader.open(await measured.repository())
    settings = page.get_by_role("region", name="Settings for all projects")
    await settings.get_by_label("Time limit of an attempt").fill("7m")
    await page.get_by_role("button", name="Check for updates").click()
    finding = page.get_by_text("the latest analysis is of bbbbbbbbbbbb")
    await expect(finding).to_be_visible()
    await measured.system.post("/api/repo-config", {"url": measured.project.url, "git_timeout": "4m"})
    await expect(settings).to_contain_text("in effect: 4m")
    await expect(settings.get_by_label("Time limit of an attempt")).to_have_value("7m")
    await expect(finding).to_have_count(0)
    await measured.system.post("/api/repo-config", {"url": measured.project.url, "git_timeout": None})


async def test_an_analysis_is_rescored(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address(f"?task={measured.project.tasks[1]}"))
    await page.get_by_role("button", name="Rescore").click()
    await expect(page.get_by_text("1 rescore queued.")).to_be_visible()

    async def rescored() -> bool:
        tasks = await measured.system.get("/api/tasks?show_seen=true")
        return any(task.get("rescored_from") == measured.project.tasks[1] for task in tasks)

    await wait_until(rescored, timeout=20, every=0.05)


async def test_a_gate_without_a_base_is_unknown_and_says_why(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(f"/analyses/{await measured.single.id}?task={measured.single.tasks[0]}")
    gate = page.get_by_role("region", name="Gate")
    await expect(gate.get_by_text("unknown", exact=True)).to_be_visible()
    await expect(gate).to_contain_text("is older: name a base")
    await expect(gate.get_by_text("not passed")).to_have_count(0)


async def test_the_limits_of_the_gate_are_set_and_stay_in_the_address(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address(f"?task={measured.project.tasks[1]}"))
    gate = page.get_by_role("region", name="Gate")
    await expect(gate.get_by_text("not passed")).to_be_visible()
    await gate.get_by_text("Limits", exact=True).click()
    await gate.get_by_label("Most new risky functions").fill("5")
    await page.keyboard.press("Enter")
    await expect(gate.get_by_text("passed", exact=True)).to_be_visible()
    await gate.get_by_label("Highest CRAP value").fill("50")
    await page.keyboard.press("Enter")
    await expect(gate.get_by_text("not passed")).to_be_visible()
    await expect(page).to_have_url(re.compile("max_new=5&max_crap=50"))
    await expect(gate).to_contain_text(f"gctd gate {measured.project.url} --max-new 5 --max-crap 50")
    await page.reload()
    await expect(gate.get_by_label("Highest CRAP value")).to_have_value("50")
    await expect(gate.get_by_text("the limit is 50")).to_be_visible()
    await gate.get_by_label("Base: branch, tag or commit").fill("1" * 40)
    await page.keyboard.press("Enter")
    await expect(gate).to_contain_text(f"compared with {'1' * 12} (commit)")
    await gate.get_by_label("Functions that are not measured fail the gate").check()
    await expect(gate).to_contain_text(f"--base {'1' * 40} --require-measured")
    assert await found_by_axe(page) == []
    await page.goto(f"{measured.system.url}{await measured.address(f'?task={measured.project.tasks[1]}&max_new=many')}")
    await expect(gate.get_by_text("left out")).to_contain_text("max_new")
