"""Each figure, tile, dot and row links to the page below it. Each page has an address, a title and a way back."""

from __future__ import annotations

import re

import attrs
import pytest
from playwright.async_api import Locator, Page, expect

from tests.pages.conftest import FIRST, Measured
from tests.support.web.browser import Visitor, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def leads(page: Page, link: Locator, address: str) -> None:
    """Check that a link opens an address, and that Back then returns to the page."""
    before = page.url
    await link.click()
    await expect(page).to_have_url(re.compile(re.escape(address) + "$"))
    await page.go_back()
    await expect(page).to_have_url(before)


def region(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


async def test_the_figures_of_the_overview_lead_to_analyses(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/")
    analysis = await measured.address()
    await leads(page, page.get_by_role("link", name=re.compile("Average CRAP")), "/analyses?sort=-average")
    await leads(page, page.get_by_role("link", name=re.compile("Risky functions")), "/analyses?sort=-exceeded")
    tile = region(page, "Risk").get_by_role("link", name=re.compile(r"shop, \d+ of \d+ functions risky"))
    await leads(page, tile, analysis)
    await tile.focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(analysis + "$"))
    await page.go_back()
    partial = region(page, "Needs attention").get_by_role("link", name=re.compile("shop"))
    await leads(page, partial, analysis)


async def test_a_regression_leads_to_its_analysis(measured: Measured, reader: Visitor) -> None:
    single = measured.single
    worse = {"order/order.go:Total": (12, 0.0)}
    await single.analyze(attrs.evolve(FIRST, commit_sha="3" * 40, measured={**FIRST.measured, **worse}))
    page = await reader.open("/")
    link = region(page, "Worse this week").get_by_role("link", name=re.compile("single$"))
    await leads(page, link, f"/analyses/{await single.id}")


async def test_a_finished_task_leads_to_its_analysis(measured: Measured, reader: Visitor) -> None:
    first, second = measured.project.tasks
    page = await reader.open("/tasks")
    row = page.locator(f'tr[data-key="{first}"]')
    analysis = f"{await measured.address()}?task={first}"
    await leads(page, row.locator("[data-row]"), analysis)
    await leads(page, row.get_by_role("link", name=re.compile(r"^\d+\.\d\d$")), analysis)
    await row.get_by_role("link", name="completed: open the task").click()
    drawer = page.get_by_role("dialog")
    await leads(page, drawer.get_by_role("link", name="Open the analysis"), analysis)
    worst = drawer.get_by_role("table", name="Worst functions").get_by_role("link").first
    await worst.click()
    await expect(page).to_have_url(re.compile(rf"/functions/[\w:.]+\?task={first}$"))
    await page.goto(measured.system.url + await measured.address())
    await expect(page.get_by_role("link", name="Task", exact=True)).to_have_attribute("href", f"/tasks/{second}")


async def test_the_scores_of_a_repository_lead_to_its_analysis(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/repos")
    row = page.get_by_role("row", name=re.compile("shop"))
    analysis = await measured.address()
    await leads(page, row.get_by_role("link", name=re.compile(r"^\d+\.\d\d$")), analysis)
    await leads(page, row.get_by_role("link", name=re.compile("shop")), await measured.repository())
    await page.goto(measured.system.url + await measured.repository())
    await leads(page, page.get_by_role("link", name=re.compile("^average CRAP")), analysis)
    await leads(page, page.get_by_role("link", name=re.compile(r"of \d+ functions risky")), f"{analysis}?only=risky")
    worst = page.get_by_role("list", name="Worst functions").get_by_role("link").first
    await worst.click()
    await expect(page).to_have_url(re.compile(re.escape(analysis) + "/functions/"))


async def test_the_figures_and_bars_of_an_analysis_lead_to_functions(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address())
    names = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key] .name")
    await expect(names).to_have_count(6)
    await page.get_by_role("link", name=re.compile("risky functions")).click()
    await expect(names).to_have_text(["Added", "Huge"])
    await page.get_by_role("link", name="6 functions").click()
    await expect(names).to_have_count(6)
    await region(page, "Distribution").get_by_role("link", name="to 60").click()
    await expect(names).to_have_text(["Huge"])
    await page.get_by_role("link", name=re.compile("average CRAP")).click()
    await expect(page).to_have_url(re.compile("/history$"))


async def test_an_unmeasured_function_is_not_risky_and_has_a_reason(measured: Measured, reader: Visitor) -> None:
    broken = {"order/order.go:Order.Check": ("build_failed", "undefined: x")}
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="7" * 40, states=broken))
    page = await reader.open(f"/analyses/{await measured.single.id}")
    figures = page.get_by_role("list", name="Figures")
    await expect(figures).to_contain_text("1 risky function")
    await expect(page.locator('g[data-tile="order"]')).to_have_class("risk-1")
    await figures.get_by_role("link", name="1 not measured").click()
    rows = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key]")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text(re.compile(r"Order\.Check.*not measured.*build failed"))
    await expect(rows.get_by_title("build failed: undefined: x")).to_be_visible()
    await figures.get_by_role("link", name="1 risky function").click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Huge")


async def test_no_chart_and_no_value_takes_unmeasured_functions_as_known(measured: Measured, reader: Visitor) -> None:
    broken = {"order/order.go:Order.Check": ("build_failed", "undefined: x")}
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="8" * 40, states=broken))
    page = await reader.open(f"/analyses/{await measured.single.id}")
    await expect(page.locator('g[data-tile="order"]')).to_have_attribute(
        "aria-label", "order, 0 of 1 functions risky, highest CRAP 2.00, complexity 13, 1 not measured"
    )
    await expect(page.get_by_role("group", name=re.compile("^4 functions by complexity and coverage, 1 of them"))).to_be_visible()
    values = region(page, "Distribution")
    await expect(values.get_by_role("row", name=re.compile("over 100"))).to_have_text(re.compile("over 100.*0$"))
    await expect(values.get_by_role("row", name=re.compile("not measured"))).to_have_text(re.compile("not measured.*1$"))
    rows = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key]")
    await page.get_by_label("Coverage to").fill("10")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No function matches")).to_be_visible()
    await values.get_by_role("link", name="not measured").click()
    await expect(rows).to_have_text([re.compile(r"^\s*Order\.Check\s*not measured\s*11\s*not measured")])
    await page.goto(f"{measured.system.url}/tasks/{measured.single.tasks[-1]}")
    row = page.get_by_role("table", name="Worst functions").get_by_role("row", name=re.compile(r"Order\.Check"))
    await expect(row).to_contain_text(re.compile(r"not measured\s*11\s*build failed"))


async def test_each_page_has_a_title_that_tells_it_apart_and_a_way_back(measured: Measured, reader: Visitor) -> None:
    first, second = measured.project.tasks
    analysis, repository = await measured.address(), await measured.repository()
    name = measured.project.url.removeprefix("https://")
    page = await reader.open("/")
    seen: list[str] = []
    for address, title in {
        "/": "Overview",
        "/repos": "Repositories",
        repository: name,
        "/analyses": "Analyses",
        analysis: f"{name} 222222222222",
        f"{analysis}?task={first}": f"{name} 111111111111, 20",
        f"{analysis}/history": f"History of {name}",
        f"{analysis}/compare/{first}...{second}": f"{name}: 111111111111 to 222222222222",
        "/tasks": "Tasks",
        "/tasks?q=status:failed": "Tasks: status:failed",
        f"/tasks/{first}": f"{name}: {first} completed",
        "/workers": "Workers",
        "/log": "Event log",
        "/log?kind=task": "Event log: task",
        "/log/1": "Event 1: WorkerStarted",
        "/projections": "Projections",
    }.items():
        await page.goto(measured.system.url + address)
        await expect(page).to_have_title(re.compile(rf"^{re.escape(title)}.* · gctd$"))
        seen.append(await page.title())
        if address.startswith(("/repos/", "/analyses/")):
            assert await page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").count() >= 1, address
    assert len(set(seen)) == len(seen), "no two pages have one title"


async def test_the_way_back_leads_up_page_by_page(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(f"{await measured.address()}/history")
    crumbs = page.get_by_role("navigation", name="Breadcrumb")
    await crumbs.get_by_role("link").last.click()
    await expect(page).to_have_url(re.compile(await measured.address() + "$"))
    await crumbs.get_by_role("link").last.click()
    await expect(page).to_have_url(re.compile(await measured.repository() + "$"))
    await crumbs.get_by_role("link").last.click()
    await expect(page).to_have_url(re.compile("/repos$"))


async def test_the_page_has_an_icon(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/")
    address = await page.locator('link[rel="icon"]').get_attribute("href")
    assert address is not None
    icon = await page.request.get(measured.system.url + address)
    assert (icon.status, icon.headers["content-type"].partition(";")[0]) == (200, "image/svg+xml")


async def test_an_unknown_address_answers_a_browser_with_a_page(measured: Measured, reader: Visitor) -> None:
    page = await reader.context.new_page()
    for address in ("/no/such/page", "/analysis", "/api/nothing"):
        answer = await page.goto(measured.system.url + address)
        assert answer is not None
        assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        await expect(page.get_by_role("heading", name="No such page")).to_be_visible()
        await expect(page).to_have_title("No such page · gctd")
    assert await found_by_axe(page) == []
    await page.get_by_role("main").get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_attached()
    assert all("404" in text for text in reader.complaints), "the browser itself names the status, and nothing else is said"
    reader.complaints.clear()
    status, document = await measured.system.status("/no/such/page")
    assert (status, document["detail"]) == (404, "no resource has this path")
