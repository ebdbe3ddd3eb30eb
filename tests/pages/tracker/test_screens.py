"""The dashboard in a browser, on a running system: each screen and its actions, by keyboard, in both colours, on a phone."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.pages.conftest import REPO, Dashboard
from tests.support.programs import warm
from tests.support.tracker.system import tracker_system
from tests.support.waiting import wait_until
from tests.support.web.browser import Visitor, found_by_axe, visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


def row(page: Page, task: str) -> Locator:
    """The row of a task."""
    return page.locator(f'tr[data-key="{task}"]')


async def keys(page: Page, *pressed: str) -> None:
    """Press keys, one after the other."""
    for key in pressed:
        await page.keyboard.press(key)


LONG_UNDO = (
    "const set = setTimeout; window.setTimeout = (act, after, ...rest) => set(act, after === 6000 ? 120000 : after, ...rest)"
)
"""The six seconds for an undo become two minutes, because a machine under load is slow."""


# Tasks


async def test_nothing_moves_on_the_list_while_no_task_runs(dashboard: Dashboard, user: Visitor) -> None:
    """Not the sign of the filter either: a browser repaints it all the time."""
    page = await user.open("/tasks")
    await expect(row(page, dashboard.done)).to_contain_text("completed")
    await expect(page.get_by_role("button", name="running")).to_be_visible()
    moving = await page.evaluate("() => document.getAnimations().map(({ effect }) => effect.target.outerHTML)")
    assert [html for html in moving if "running" in html] == []


async def test_a_task_comes_into_the_list_by_itself_and_changes_in_it(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/tasks")
    await expect(row(page, dashboard.done)).to_contain_text("completed")
    await expect(row(page, dashboard.done)).to_contain_text("56.48")
    task = await dashboard.queued()
    await expect(row(page, task)).to_contain_text("queued")
    await dashboard.system.post(f"/api/tasks/{task}/cancel")
    await expect(row(page, task)).to_contain_text("failed")
    await expect(page.get_by_role("button", name="queued")).to_contain_text("0")


async def test_filter_and_open_task_are_in_the_address_and_back_works(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/tasks")
    await expect(row(page, dashboard.done)).to_be_visible()
    await keys(page, "/")
    await page.keyboard.type("status:completed p2")
    await expect(page).to_have_url(re.compile(r"q=status%3Acompleted\+p2"))
    await expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    await page.reload()
    await expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    await page.get_by_role("link", name="completed: open the task").click()
    await expect(page.get_by_role("dialog", name="shop · p2")).to_contain_text("Worst functions")
    await expect(page).to_have_url(re.compile(r"/tasks/task-\d+\?q="))
    await page.go_back()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_label("Filter tasks").fill("status:expired")
    await expect(page.get_by_text("No tasks match status:expired")).to_be_visible()
    await page.get_by_role("button", name="Clear the filter").click()
    await expect(row(page, dashboard.done)).to_be_visible()
    await page.get_by_role("button", name="Status", exact=True).click()
    await expect(page).to_have_url(re.compile(r"sort=-status"))
    await expect(page.get_by_role("columnheader", name="Status")).to_have_attribute("aria-sort", "descending")


async def test_rows_stay_where_they_are_under_the_pointer(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/tasks")
    await row(page, dashboard.done).hover()
    before = await page.locator("tbody tr[data-key]").evaluate_all("rows => rows.map(row => row.dataset.key)")
    task = await dashboard.queued()
    news = page.get_by_role("button", name="1 new")
    await expect(news).to_be_visible()
    assert await page.locator("tbody tr[data-key]").evaluate_all("rows => rows.map(row => row.dataset.key)") == before
    await keys(page, "n")
    await expect(row(page, task)).to_be_visible()
    await page.mouse.move(0, 0)
    another = await dashboard.queued()
    await expect(row(page, another)).to_be_visible()
    await keys(page, "p")
    third = await dashboard.queued()
    await expect(page.get_by_role("button", name="queued")).to_contain_text(re.compile("[12]"))
    await expect(row(page, third)).to_have_count(0)
    await keys(page, "p")
    await expect(row(page, third)).to_be_visible()


async def test_all_of_a_task_by_keyboard_alone(dashboard: Dashboard, user: Visitor) -> None:
    """Go to the list, to a row, open and close it, select, cancel with a question, retry, mark as seen and undo."""
    await user.begin_with(LONG_UNDO)
    page = await user.open("/")
    task = await dashboard.queued("p2")
    await keys(page, "g", "t")
    await expect(row(page, task)).to_be_visible()
    await keys(page, "/")
    await page.keyboard.type(task)
    await expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    await keys(page, "Escape", "j")
    await expect(row(page, task).locator("[data-row]")).to_be_focused()
    await keys(page, "Enter")
    drawer = page.get_by_role("dialog", name="shop · p2")
    await expect(drawer).to_contain_text(task)
    await keys(page, "Escape")
    await expect(drawer).to_have_count(0)
    await expect(row(page, task).locator("[data-row]")).to_be_focused()
    await keys(page, "x")
    await expect(page.get_by_text("1 task selected")).to_be_visible()
    await keys(page, "c")
    question = page.get_by_role("dialog", name="Cancel the analysis of example.com/owner/shop · p2?")
    await expect(question.get_by_role("button", name="Keep")).to_be_focused()
    await keys(page, "Escape")
    await expect(question).to_have_count(0)
    assert (await dashboard.system.get(f"/api/tasks/{task}"))["status"] == "queued", "nothing was asked for"
    await keys(page, "c")
    await expect(question.get_by_role("button", name="Keep")).to_be_focused()
    await keys(page, "Tab", "Enter")
    await dashboard.system.until_task(task, "failed")
    await expect(row(page, task)).to_contain_text("failed")
    await keys(page, "r")
    await expect(page.get_by_role("button", name="Keep")).to_be_focused()
    await keys(page, "Tab", "Enter")
    await dashboard.system.until_task(task, "queued")
    await keys(page, "s")
    await expect(page.get_by_text("marked as seen")).to_be_visible()
    await expect(row(page, task)).to_have_count(0)
    await page.get_by_role("button", name="Undo").focus()
    await keys(page, "Enter")
    await expect(row(page, task)).to_be_visible()
    assert (await dashboard.system.get(f"/api/tasks/{task}"))["seen"] is False


async def test_seen_takes_effect_also_where_the_page_is_left_at_once(dashboard: Dashboard, user: Visitor) -> None:
    task = await dashboard.queued()
    page = await user.open(f"/tasks/{task}")
    await page.get_by_role("dialog").get_by_role("button", name="Seen").click()
    await page.close()

    async def seen() -> bool:
        return bool((await dashboard.system.get(f"/api/tasks/{task}"))["seen"])

    await wait_until(seen, timeout=20, every=0.05)


async def test_a_running_task_shows_its_stage_and_its_log(dashboard: Dashboard, user: Visitor) -> None:
    for waiting in await dashboard.system.get("/api/tasks?show_seen=true&status=queued"):
        await dashboard.system.post(f"/api/tasks/{waiting['id']}/cancel")
    task = await dashboard.queued("p1")
    page = await user.open(f"/tasks/{task}")
    drawer = page.get_by_role("dialog")
    await expect(drawer).to_contain_text("waits for a worker")
    worker = await dashboard.system.start_worker(2, FAKE_SECONDS="600", FAKE_LINES="3000", FAKE_SLOWLY="1")
    try:
        await dashboard.system.until_task(task, "running", timeout=60)
        await expect(drawer.get_by_role("list", name="Stages")).to_contain_text("test")
        log = drawer.get_by_role("log")
        await expect(log).to_contain_text("attempt 1 line 5")
        await page.goto(f"{dashboard.system.url}/workers")
        card = page.locator('[data-worker="worker-2"]')
        await expect(card).to_contain_text("busy")
        await expect(card.get_by_role("link").first).to_have_attribute("href", re.compile("/tasks/task-"))
    finally:
        await worker.kill()


async def test_hide_all_hides_ended_tasks_of_the_filter_and_can_be_undone(dashboard: Dashboard, user: Visitor) -> None:
    await user.begin_with(LONG_UNDO)
    other, waiting, earlier = [await dashboard.queued(project) for project in ("p1", "p2", "p2")]
    for ended in (other, earlier):
        await dashboard.system.post(f"/api/tasks/{ended}/cancel")
    page = await user.open("/tasks?q=p2")
    await expect(row(page, earlier)).to_be_visible()
    await page.get_by_role("button", name="Hide all").click()
    question = page.get_by_role("dialog", name=re.compile(r"Hide \d+ tasks?\?"))
    await expect(question).to_contain_text("all users")
    await question.get_by_role("button", name="Keep").click()
    await expect(row(page, earlier)).to_be_visible()
    await page.get_by_role("button", name="Hide all").click()
    await question.get_by_role("button", name=re.compile("Hide")).click()
    await expect(row(page, earlier)).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(row(page, earlier)).to_be_visible()
    await page.get_by_role("button", name="Hide all").click()
    await question.get_by_role("button", name=re.compile("Hide")).click()
    await expect(question).to_have_count(0)
    await expect(row(page, waiting)).to_be_visible()
    await page.close()  # what can still be undone is done then

    async def hidden() -> bool:
        return bool((await dashboard.system.get(f"/api/tasks/{earlier}"))["hidden"])

    await wait_until(hidden, timeout=20, every=0.05)
    for kept in (waiting, other):
        assert (await dashboard.system.get(f"/api/tasks/{kept}"))["hidden"] is False


@pytest.mark.parametrize("width", [640, 720, 768, 1024])
async def test_every_column_of_the_tasks_can_be_read(dashboard: Dashboard, user: Visitor, width: int) -> None:
    page = await user.open("/tasks")
    await page.set_viewport_size({"width": width, "height": 700})
    for heading in await page.get_by_role("table", name="Tasks").get_by_role("columnheader").all():
        box = await heading.bounding_box()
        assert box is not None
        assert box["width"] >= 30, await heading.inner_text()
    project = await page.get_by_role("columnheader", name="Project").bounding_box()
    assert project is not None
    assert project["width"] >= 100
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only the table scrolls"


async def test_figures_of_a_repository_stand_beside_their_commit(dashboard: Dashboard, user: Visitor) -> None:
    """The projects were found at another commit."""
    repos = [repo | {"CommitSHA": "e" * 40} for repo in await dashboard.system.get("/api/repos/registered")]
    await user.context.route("**/api/repos/registered*", lambda route: route.fulfill(json=repos, headers={"Event-Sequence": "1"}))
    page = await user.open("/repos")
    shown = page.get_by_role("row").filter(has=page.locator(f'[title="{REPO}"]'))
    await expect(shown).to_contain_text("main cccccccccccc")


async def test_the_overview_makes_claims_only_of_compared_analyses(dashboard: Dashboard, user: Visitor) -> None:
    """It compares averages, and a gate can be red all the same."""
    page = await user.open("/")
    worse = page.get_by_role("region", name="Worse this week")
    await expect(worse).to_contain_text("The average of no project rose.")
    await expect(worse.locator(".good")).to_have_count(0)


async def test_ten_thousand_tasks_are_scrolled_with_few_rows_in_the_document(dashboard: Dashboard, user: Visitor) -> None:
    one = await dashboard.system.get(f"/api/tasks/{dashboard.done}")
    shown = one | {"hidden": False, "seen": False}
    many = [shown | {"id": f"task-{10**18 - number}", "project": f"n{number}"} for number in range(10_000)]
    await user.context.route("**/api/tasks?*", lambda route: route.fulfill(json=many, headers={"Event-Sequence": "1"}))
    page = await user.open("/tasks")
    await expect(page.locator("table")).to_have_attribute("aria-rowcount", "10001")
    assert await page.locator("tr").count() < 80
    await page.locator(".table-box").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    await expect(page.get_by_text("shop · n9999")).to_be_visible()
    assert await page.locator("tr").count() < 80


# Workers and repositories


async def test_a_worker_is_paused_and_goes_on(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/workers")
    card = page.locator('[data-worker="worker-1"]')
    await expect(card).to_contain_text("paused")
    await expect(card).to_contain_text(re.compile(r"Heartbeat(just now|\d+ s ago)"))
    here = [one for one in await dashboard.system.get("/api/workers") if one["status"] != "gone"]
    slots = sum(one["concurrency"] + one["fast_concurrency"] for one in here)
    await expect(page.get_by_text(re.compile(rf"of {slots} slots taken"))).to_be_visible()
    await card.get_by_role("button", name="Resume worker-1").click()
    await dashboard.system.until_worker("worker-1", "idle")
    await expect(card).to_contain_text(re.compile("idle|busy"))
    await card.get_by_role("button", name="Pause worker-1").click()
    await dashboard.system.until_worker("worker-1", "paused")
    await expect(card).to_contain_text("paused")


async def test_a_repository_is_registered_once_its_address_can_be_right(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/repos")
    await expect(page.get_by_label("Add a repository")).to_be_visible()
    await keys(page, "a")
    await page.get_by_label("Add a repository").fill("http://example.com/owner/new")
    await keys(page, "Enter")
    await expect(page.get_by_text("use https")).to_be_visible()
    await page.get_by_label("Add a repository").fill("example.com/owner/new.git")
    await expect(page.get_by_text("Will be known as https://example.com/owner/new")).to_be_visible()
    await keys(page, "Enter")
    await expect(page).to_have_url(re.compile("/repos/[0-9a-f]{32}"))
    await expect(page.get_by_role("heading", name="example.com/owner/new")).to_be_visible()
    await expect(page.get_by_text("registering")).to_be_visible()


async def test_settings_show_their_values_their_origins_and_refusals(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/repos?project=p1")
    await page.get_by_role("link", name="owner/shop").click()
    drawer = page.get_by_role("main")
    await drawer.get_by_role("button", name="Settings of p1").click()
    await expect(drawer.get_by_text("example.com/p2")).to_be_visible()
    project = drawer.locator("[data-project=p1]")
    timeout = project.get_by_label("Time limit of an attempt")
    await timeout.fill("never")
    await project.get_by_role("button", name="Save").click()
    await expect(timeout).to_have_attribute("aria-invalid", "true")
    [told] = user.complaints
    assert "400" in told, "what the browser itself says of a refusal"
    user.complaints.clear()
    await timeout.fill("7m")
    await project.get_by_role("button", name="Save").click()
    await expect(project.get_by_text("in effect: 7m (set here)")).to_be_visible()
    config = await dashboard.system.get(f"/api/repo-config?url={REPO}&subdir=p1")
    assert (config["effective"]["timeout"], config["origin"]["timeout"]) == ("7m", "project")
    await drawer.get_by_label("Ref").last.fill("next")
    async with page.expect_response(lambda answer: answer.request.method != "GET" and "config" in answer.url):
        await drawer.get_by_role("button", name="Save").last.click()
    await drawer.get_by_role("button", name="Settings of p1").click()
    await drawer.get_by_role("button", name="Settings of p2").click()
    await expect(drawer.get_by_text("in effect: next (from the repository)")).to_be_visible()


async def test_a_personal_token_signs_in_and_the_head_signs_out(dashboard: Dashboard, tmp_path: Any) -> None:
    async with (
        tracker_system(tmp_path, GCTD_REQUIRE_TOKENS="true") as system,
        visitor(dashboard.browser, system.url) as user,
    ):
        created = ("gctd", "token", "create", "anna", "--scope", "write")
        token = (await asyncio.to_thread(warm.run, *created, environment=system.environment)).stdout.strip()
        page = await user.context.new_page()
        await page.goto(f"{system.url}/log")
        await page.get_by_label("Token").fill(token)
        await keys(page, "Enter")
        issued = page.get_by_role("row").filter(has_text="TokenIssued")
        await expect(issued).to_be_visible()
        opened = page.get_by_role("row").filter(has_text="SessionOpened")
        await expect(opened.get_by_title(re.compile("^token:.*:anna$"))).to_have_text("anna")
        cookies = {cookie["name"]: cookie for cookie in await user.context.cookies()}
        assert (cookies["gctd_session"]["httpOnly"], cookies["gctd_session"]["sameSite"]) == (True, "Strict")
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Token", exact=True)).to_be_visible()
        assert not await user.context.cookies()
        caused = [text for text in user.complaints if "401" in text or "ERR_INCOMPLETE" in text]
        assert caused == user.complaints, "what the browser says of a refusal and of a stream that ends with its session"
        user.complaints.clear()


async def test_the_page_asks_for_the_token_and_goes_on_with_it(dashboard: Dashboard, tmp_path: Any) -> None:
    async with (
        tracker_system(tmp_path, GCTD_AUTH_TOKEN="a-token-of-some-length") as system,
        visitor(dashboard.browser, system.url) as user,
    ):
        page = await user.context.new_page()
        await page.goto(f"{system.url}/tasks")
        await page.get_by_label("Token").fill("wrong")
        await keys(page, "Enter")
        await expect(page.get_by_role("alert")).to_contain_text("token")
        assert await found_by_axe(page) == []
        await page.get_by_label("Token").fill("a-token-of-some-length")
        await keys(page, "Enter")
        await expect(page.get_by_text("No task yet")).to_be_visible()
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        refused = [text for text in user.complaints if "401" in text]
        assert refused
        assert refused == user.complaints, "what the browser itself says of a refusal, and nothing else"
        user.complaints.clear()
