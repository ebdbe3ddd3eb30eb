"""A page that could not read something claims nothing about it."""

from __future__ import annotations

import asyncio
import re

import attrs
import pytest
from playwright.async_api import Route, expect

from tests.pages.conftest import FIRST, Dashboard, Measured
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def test_the_overview_claims_nothing_about_tasks_that_cannot_be_read(user: Visitor) -> None:
    """Neither that all is well, nor that no task runs."""

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json={"message": "the tables are away"})

    tasks = re.compile(r"/api/tasks\?")
    await user.context.route(tasks, refuse)
    page = await user.open("/")
    await expect(page.get_by_role("alert")).to_contain_text("the tables are away")
    attention = page.get_by_role("region", name="Needs attention")
    await expect(attention).to_contain_text("Not known")
    await expect(page.get_by_role("region", name="Last hour")).to_contain_text("Not known")
    await expect(page.get_by_role("link", name="Running")).to_contain_text("\u2013")
    await user.context.unroute(tasks)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("link", name="Running")).to_contain_text("none waiting")
    await expect(attention).to_contain_text("broken")
    user.complaints.clear()  # the browser reports the refusals


async def test_a_failed_task_that_was_marked_as_seen_makes_no_project_well(dashboard: Dashboard, user: Visitor) -> None:
    """The overview leaves it out, and counts it in place of a claim that all is well."""

    async def ready(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json=[repo for repo in await answer.json() if repo["Status"] == "ready"])

    await user.context.route(re.compile("/api/repos/registered"), ready)
    page = await user.open("/")
    attention = page.get_by_role("region", name="Needs attention")
    await expect(attention.get_by_role("link")).to_have_text("example.com/owner/shop \u00b7 p1")
    await dashboard.system.post(f"/api/tasks/{dashboard.failed}/seen")
    await expect(attention.get_by_role("link")).to_have_count(0)
    await expect(attention).to_have_text("Needs attentionNothing else. Failed and marked as seen: the latest task of 1 project.")


async def test_a_task_seen_by_the_service_is_not_put_back(dashboard: Dashboard, user: Visitor) -> None:
    """Of two tasks, one cannot be marked as seen: only this one returns into the list."""
    kept, seen = await dashboard.queued(), await dashboard.queued("p2")
    other = await user.open("/tasks")

    async def late(route: Route) -> None:
        """Refuse when another page has seen the change of the other task."""
        await expect(other.locator(f'tr[data-key="{seen}"]')).to_have_count(0)
        await route.fulfill(status=503, json={"message": "the log is away"})

    page = await user.open("/tasks")
    await page.route(re.compile(f"/api/tasks/{kept}/seen"), late)
    for task in (kept, seen):
        await page.get_by_label(f"Select {task}").check()
    await page.get_by_role("region", name="Selected tasks").get_by_role("button", name="Seen").click()
    await expect(page.get_by_text("1 of 2 not done: the log is away")).to_be_visible()
    await expect(page.locator(f'tr[data-key="{kept}"]')).to_be_visible()
    await expect(page.locator(f'tr[data-key="{seen}"]')).to_have_count(0)
    user.complaints.clear()  # the browser reports the refusal


async def test_other_pages_claim_nothing_about_repositories_that_cannot_be_read(measured: Measured, reader: Visitor) -> None:
    """The page of a repository with older values, the list of analyses, and the palette."""
    away = False

    async def refuse(route: Route) -> None:
        await (route.fulfill(status=503, json={"message": "the tables are away"}) if away else route.fallback())

    await reader.context.route("**/api/repos/registered?*", refuse)
    await reader.context.route("**/api/repos/registered", refuse)
    page = await reader.open(await measured.repository())
    alert = page.get_by_role("alert")
    for name in ("repository", "analyses"):
        if name == "analyses":
            await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Analyses").click()
        away = True
        await measured.system.post("/api/repos?refresh=true", {"repo_url": measured.single.url})
        await expect(alert).to_contain_text("the tables are away")
        away = False
        await alert.get_by_role("button", name="Try again").click()
        await expect(alert).to_have_count(0)
        await measured.system.until_repo(measured.single.url, "ready")
    away = True
    await page.goto(measured.system.url + "/workers")
    await expect(page.get_by_role("button", name="Find")).to_be_visible()
    await page.keyboard.press("Control+k")
    found = page.get_by_role("dialog", name="Go to")
    await found.get_by_role("combobox").fill("shop repository")
    await expect(found).to_contain_text("Nothing matches. Repositories could not be read: the tables are away.")
    reader.complaints.clear()  # the browser reports the refusals


async def test_pages_of_analyses_follow_a_new_analysis(measured: Measured, reader: Visitor) -> None:
    commit = "9" * 40
    whole = f"/analyses/{await measured.single.id}"
    pages = [await reader.open(address) for address in ("/analyses", whole, f"{whole}/history")]
    for page in pages:
        await expect(page.get_by_text("1" * 12).first).to_be_visible()
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha=commit))
    await expect(pages[0].get_by_text("9" * 12)).to_be_visible()
    for page in pages[1:]:
        await expect(page.get_by_text("The project has a newer analysis.")).to_be_visible()
        await page.get_by_role("button", name="Read again").click()
        await expect(page.get_by_text("9" * 12).first).to_be_visible()
        await expect(page.get_by_text("The project has a newer analysis.")).to_have_count(0)


async def test_the_log_counts_events_that_came_while_it_was_read(dashboard: Dashboard, user: Visitor) -> None:
    tasks, page = await user.open("/tasks"), await user.open("/workers")
    queued: list[str] = []

    async def late(route: Route) -> None:
        answer = await route.fetch()
        if not queued:
            queued.append(await dashboard.queued())
            await expect(tasks.locator(f'[data-key="{queued[0]}"]')).to_be_visible()
        await route.fulfill(response=answer)

    await page.route("**/api/log?*", late)
    await page.get_by_role("link", name="Event log").click()
    newer = page.get_by_role("button", name=re.compile("since: read again"))
    await newer.click()
    await expect(page.get_by_role("table", name="Events")).to_contain_text(f"gctd.task.{queued[0]}")
    await expect(newer).to_have_count(0)


async def test_a_verdict_is_followed_by_the_gate_and_counted_by_the_log(measured: Measured, reader: Visitor) -> None:
    """The gate was unknown when its page was opened: the base was not analysed yet."""
    asked = False

    async def early(route: Route) -> None:
        answer = await route.fetch()
        early = {} if asked else {"result": "unknown", "reason": "the base is being analysed"}
        await route.fulfill(response=answer, json=await answer.json() | early)

    log = await reader.open("/log")
    await expect(log.get_by_role("table", name="Events")).to_be_visible()
    await reader.context.route(re.compile(r"/gate\?"), early)
    page = await reader.open(await measured.address(f"?task={measured.project.tasks[1]}"))
    gate = page.get_by_role("region", name="Gate")
    await expect(gate).to_contain_text("the base is being analysed")
    asked = True
    await measured.system.post(f"{await measured.project.path}/gate", {"to": measured.project.tasks[1], "base": "1" * 40})
    await expect(gate.get_by_text("not passed")).to_be_visible()
    await expect(gate).not_to_contain_text("the base is being analysed")
    await log.get_by_role("button", name="since: read again").click()
    await expect(log.get_by_role("table", name="Events")).to_contain_text("VerdictAsked")


async def test_a_task_that_was_cancelled_before_an_attempt_waits_for_no_worker(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open(f"/tasks/{dashboard.failed}")
    await expect(page.get_by_text("No worker began it.")).to_be_visible()


async def test_a_list_that_is_cut_names_its_limit(dashboard: Dashboard, user: Visitor) -> None:
    one = await dashboard.system.get(f"/api/tasks/{dashboard.done}")
    last: int | None = None

    async def page_of(route: Route) -> None:
        """A thousand tasks for each page, and a link to the next one."""
        number = int((re.findall(r"cursor=(\d+)", route.request.url) or [0])[0])
        body = [one | {"id": f"task-{10**18 - 1000 * number - each}", "project": f"n{number}-{each}"} for each in range(1000)]
        following = {} if number == last else {"Link": f'</api/tasks?limit=1000&cursor={number + 1}>; rel="next"'}
        await route.fulfill(json=body, headers={"Event-Sequence": "1", **following})

    await user.context.route("**/api/tasks?*", page_of)
    page = await user.open("/tasks")
    note = page.get_by_text("These are the newest 20,000 tasks")
    await expect(note).to_be_visible()
    await expect(page.get_by_role("button", name="all 20,000")).to_be_visible()
    await page.get_by_role("link", name="gctd").click()
    await expect(page.get_by_text("Figures of tasks are of the newest 20,000 tasks.")).to_be_visible()
    last = 19
    await page.goto(f"{dashboard.system.url}/tasks")
    await expect(page.get_by_role("button", name="all 20,000")).to_be_visible()
    await expect(note).to_have_count(0)


async def test_the_overview_shows_no_former_number_of_workers(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/")
    workers = page.get_by_role("link", name="Workers").last
    await expect(workers).to_contain_text("1 paused")
    await user.context.route("**/api/workers", lambda route: route.fulfill(status=503, json={"message": "the broker is away"}))
    await expect(workers).to_have_text(re.compile(r"Workers\s*\u2013\s*could not be read"))
    await user.context.unroute("**/api/workers")
    await expect(workers).to_contain_text("1 paused")
    user.complaints.clear()  # the browser reports the refusals


async def test_an_error_is_shown_for_no_other_function(measured: Measured, reader: Visitor) -> None:
    """The page of a function that the analysis has is being read, after the page of one that it does not have."""
    answered = asyncio.Event()

    async def late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    functions = f"/analyses/{await measured.single.id}/functions"
    page = await reader.open(f"{functions}/order:Order.Check")
    await expect(page.get_by_role("heading", name="Order.Check")).to_be_visible()
    await page.evaluate(
        "address => { history.pushState(null, '', address); dispatchEvent(new Event('popstate')); }", f"{functions}/Gone"
    )
    missing = page.get_by_text("The analysis has no such function")
    await expect(missing).to_be_visible()
    await page.route(re.compile("/functions/order"), late)
    await page.go_back()
    await expect(page).to_have_url(re.compile("order:Order.Check$"))
    await expect(missing).to_have_count(0)
    answered.set()
    await expect(page.get_by_role("heading", name="Order.Check")).to_be_visible()
    reader.complaints.clear()  # the browser reports the refusal


async def test_an_error_goes_with_the_next_success(measured: Measured, reader: Visitor) -> None:
    """The overview reads the regressions for each new analysis, and the palette the functions for each word."""
    reads = re.compile(r"/history\?ref=|/api/functions\?search=")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json={"message": "the tables are away"})

    await reader.context.route(reads, refuse)
    page, other = await reader.open("/"), await reader.open("/workers")
    worse = page.get_by_role("region", name="Worse this week")
    await expect(worse).to_contain_text("the tables are away")
    await expect(other.get_by_role("button", name="Find")).to_be_visible()
    await other.keyboard.press("Control+k")
    found = other.get_by_role("dialog", name="Go to")
    await found.get_by_role("combobox").fill("check")
    await expect(found).to_contain_text("Functions could not be read: the tables are away")
    await reader.context.unroute(reads)
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="7" * 40))
    await expect(worse).not_to_contain_text("the tables are away")
    await found.get_by_role("combobox").fill("order")
    await expect(found).not_to_contain_text("could not be read")
    await expect(found).to_contain_text("Functions of all projects are searched.")
    reader.complaints.clear()  # the browser reports the refusals
