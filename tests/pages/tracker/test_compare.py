"""The page of a comparison: the functions that differ between two analyses, the verdict, and the limits of the comparison."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.pages.conftest import FIRST
from tests.support.tracker.made_project import Project
from tests.support.tracker.system import tracker_system
from tests.support.web.browser import Profiles, Visitor, fits, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

DISCOUNT = "package pricing\n\nfunc Discount(x int) int {\n\tif x > 10 {\n\t\treturn x - 1\n\t}\n\treturn x\n}\n"
CHANGED = DISCOUNT.replace("x - 1", "x - 2").replace("\treturn x\n", "\tx++\n\treturn x\n")
NAME = "pricing/price.go:Discount"
PROFILE = "mode: set\nexample.com/./pricing/price.go:3.26,4.13 1 1\nexample.com/./pricing/price.go:4.13,6.3 1 0\n"
BEFORE = attrs.evolve(
    FIRST,
    uncovered=(),
    measured={**FIRST.measured, NAME: (11, 200 / 3)},
    sources={"pricing/price.go": DISCOUNT},
    lines={NAME: (3, 8)},
    profile=PROFILE + "example.com/./pricing/price.go:7.2,7.10 1 1\n",
)
AFTER = attrs.evolve(
    BEFORE,
    commit_sha="2" * 40,
    measured={
        "order/order.go:Order.Check": (11, 90.0),
        "order/order.go:Total": (2, 100.0),
        NAME: (14, 75.0),
        "pricing/price.go:Huge": (40, 100.0),
        "main.go:Added": (9, 0.0),
    },
    states={"order/order.go:Total": ("build_failed", "undefined: x")},
    sources={"pricing/price.go": CHANGED},
    lines={NAME: (3, 9)},
    profile=PROFILE + "".join(f"example.com/./pricing/price.go:{place} 1 1\n" for place in ("7.2,7.5", "8.2,8.10")),
)

INIT = "package cmd\n\nfunc init() {\n\tadd(%s)\n}\n"
TWO_INITS = attrs.evolve(
    BEFORE,
    measured={"cmd/add.go:init": (1, 100.0), "cmd/serve.go:init": (4, 100.0)},
    sources={"cmd/add.go": INIT % "1", "cmd/serve.go": INIT % "2"},
    lines={"cmd/add.go:init": (3, 5), "cmd/serve.go:init": (3, 5)},
    profile="mode: set\n",
)
ONE_CHANGED = attrs.evolve(
    TWO_INITS,
    commit_sha="4" * 40,
    measured={**TWO_INITS.measured, "cmd/serve.go:init": (31, 100.0)},
    sources={**TWO_INITS.sources, "cmd/serve.go": INIT % "3"},
)


@attrs.frozen
class Compared:
    """A project with two analyses of the ref main, and the browser."""

    project: Project
    browser: Browser

    async def address(self, pair: str | None = None) -> str:
        """The page of the comparison, of the two analyses if no other pair is named."""
        return f"/analyses/{await self.project.id}/compare/{'...'.join(self.project.tasks) if pair is None else pair}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def compared(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Compared]:
    directory = tmp_path_factory.mktemp("compared")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        project = await Project.registered(system, directory / "analyses")
        await project.analyze(BEFORE, AFTER, ref="main")
        yield Compared(project, browser)


@pytest_asyncio.fixture(loop_scope="session")
async def user(compared: Compared, profiles: Profiles) -> AsyncIterator[Visitor]:
    async with profiles.visitor(compared.project.system.url, permissions=["clipboard-read", "clipboard-write"]) as found:
        yield found


def names(page: Page) -> Any:
    """The names in the table of changed functions."""
    return page.get_by_role("table", name="Functions that changed").locator("tbody tr[data-key] .name")


async def test_it_has_each_kind_of_change_and_the_choice_is_in_the_address(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address())
    await expect(page.get_by_role("heading", level=1)).to_contain_text("changes")
    kinds = page.get_by_role("group", name="Change")
    for kind, found in {
        "new 1": ["Added"],
        "worse 1": ["Discount"],
        "fixed 1": ["Order.Check"],
        "gone 1": ["main"],
        "not measured 1": ["Total"],
    }.items():
        await kinds.get_by_role("button", name=kind, exact=True).click()
        await expect(names(page)).to_have_text(found)
    await page.reload()
    await expect(names(page)).to_have_text(["Total"])
    await kinds.get_by_role("button", name=re.compile("^all")).click()
    await expect(names(page)).to_have_count(5)
    await page.get_by_label("Filter functions").fill("pricing")
    await expect(names(page)).to_have_text(["Discount"])
    row = page.get_by_role("table", name="Functions that changed").locator("tbody tr[data-key]")
    await expect(row).to_contain_text(re.compile("complexity 11 → 14, coverage 67 % → 75 %"))


async def test_it_names_unmeasured_functions_and_the_verdict(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address())
    measured = page.get_by_role("region", name="Measurement")
    await expect(measured).to_contain_text("Both analyses were measured in the same way.")
    await expect(measured).to_contain_text("1 function not measured at 222222222222: build failed 1")
    await expect(page.get_by_role("region", name="Gate")).to_contain_text("not passed")
    await expect(page.get_by_role("region", name="Gate")).to_contain_text("This verdict is not stored.")
    await measured.get_by_role("link", name="1 function lost the measurement").click()
    await expect(names(page)).to_have_text(["Total"])
    await names(page).click()
    drawer = page.get_by_role("dialog", name="Total")
    await expect(drawer).to_contain_text("CRAP 2.00, complexity 2, 100.0 % covered")
    await expect(drawer).to_contain_text("CRAP not measured, complexity 2, build failed")
    await page.keyboard.press("Escape")
    await page.get_by_role("list", name="Figures").get_by_role("link").nth(1).click()
    await expect(page).to_have_url(re.compile(f"task={compared.project.tasks[1]}$"))


async def test_every_page_counts_the_functions_that_were_measured(compared: Compared, user: Visitor) -> None:
    """Four of the five functions of the newer analysis: 11.12, 17.06, 40 and 90."""
    project = compared.project
    whole = f"/analyses/{await project.id}"
    page = await user.open(await compared.address())
    for address, texts in {
        await compared.address(): ("→ 39.55", "→ 4"),
        whole: ("39.55 average CRAP", "4 functions", "1 not measured", "No figure counts them"),
        f"{whole}/history": ("39.55",),
        "/": ("39.55", "2 of 4"),
        "/analyses": ("39.55", "158"),
        "/repos": ("39.55",),
        f"/repos/{(await project.system.get(await project.path))['repo_id']}": ("average CRAP 39.55", "2 of 4 functions risky"),
        f"/tasks/{project.tasks[1]}": ("Average CRAP 39.55, 2 of 4 functions risky",),
    }.items():
        await page.goto(project.system.url + address)
        for text in texts:
            await expect(page.locator("body")).to_contain_text(re.compile(re.escape(text).replace("\\ ", r"\s*")))


async def test_it_is_copied_as_markdown(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address())
    await page.get_by_role("button", name="Copy as Markdown").click()
    await expect(page.get_by_text("The comparison is copied as Markdown.")).to_be_visible()
    text = await page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"\| new \| `Added` `main\.go:\d+` \|  \| 90\.00 \| \+90\.00 \|", text), text
    assert "**The gate is not passed" in text


async def test_commits_name_the_two_sides_too_and_others_are_chosen(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address("1111111...2222222"))
    await expect(page).to_have_title(re.compile("111111111111 to 222222222222 · gctd$"))
    await page.get_by_role("button", name="Swap").click()
    await expect(page).to_have_title(re.compile("222222222222 to 111111111111 · gctd$"))
    await expect(page.get_by_role("group", name="Change").get_by_role("button", name="gone 1")).to_be_visible()
    await page.get_by_label("From").select_option(compared.project.tasks[0])
    await expect(page.get_by_text("No function changed")).to_be_visible()
    await expect(page.get_by_role("region", name="Gate")).to_contain_text("Both analyses are of one commit")
    await page.goto(compared.project.system.url + await compared.address("..."))
    await expect(page).to_have_title(re.compile("111111111111 to 222222222222"))


async def test_an_old_address_of_a_comparison_leads_to_it(compared: Compared, user: Visitor) -> None:
    first, second = compared.project.tasks
    page = await user.open(f"/analyses/{await compared.project.id}/history?from={first}&to={second}")
    await expect(page).to_have_url(re.compile(re.escape(await compared.address()) + "$"))
    await expect(names(page)).to_have_count(5)


async def test_a_stored_verdict_is_shown_as_such(compared: Compared, user: Visitor) -> None:
    verdict = await compared.project.system.post(f"{await compared.project.path}/gate", {"base": "1" * 40})
    assert verdict["verdict"], verdict
    page = await user.open(f"{await compared.address()}?base={'1' * 40}")
    await expect(page.get_by_role("region", name="Gate")).to_contain_text("This is the stored verdict on the commit.")


async def test_a_verdict_is_counted_on_the_event_log_and_shown_on_the_overview(compared: Compared, user: Visitor) -> None:
    log = await user.open("/log")
    await expect(log.get_by_role("table", name="Events")).to_be_visible()
    overview = await user.open("/")
    await expect(overview.locator('[data-live="live"]')).to_be_visible()
    verdict = await compared.project.system.post(f"{await compared.project.path}/gate", {"base": "1" * 40, "max_average": 77.5})
    assert verdict["verdict"], verdict
    await expect(log.get_by_role("button", name="2 since: read again")).to_be_visible()
    await expect(overview.get_by_text(re.compile("^gate of [0-9a-f]{12} asked for$"))).to_be_visible()


async def test_a_verdict_that_cannot_be_read_is_not_called_one_that_is_not_stored(compared: Compared, user: Visitor) -> None:
    stored = re.compile(r"/gate\?(?!.*from=)")
    await user.context.route(stored, lambda route: route.fulfill(status=503, json={"message": "the tables are away"}))
    page = await user.open(await compared.address())
    gate = page.get_by_role("region", name="Gate")
    await expect(gate.get_by_role("alert")).to_contain_text("the tables are away")
    await expect(gate).not_to_contain_text("not stored")
    await user.context.unroute(stored)
    await gate.get_by_role("button", name="Try again").click()
    await expect(gate).to_contain_text("not passed")
    await page.goto(f"{compared.project.system.url}{await compared.address()}?base=no-such-branch")
    await expect(gate).to_contain_text("This verdict is not stored.")
    user.complaints.clear()  # the browser reports the refusals


async def test_a_function_opens_with_the_source_of_both_sides(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address())
    await names(page).filter(has_text="Discount").click()
    drawer = page.get_by_role("dialog", name="Discount")
    await expect(drawer.locator(".is-removed")).to_have_text([re.compile("removed: .*return x - 1")])
    await expect(drawer.locator(".is-added")).to_have_text([re.compile("added: .*return x - 2"), re.compile(r"added: .*x\+\+")])
    await expect(drawer.locator(".is-added.is-uncovered")).to_have_count(1)
    await expect(drawer.get_by_role("heading", name="Now, at 222222222222")).to_be_visible()
    await expect(drawer).to_contain_text("complexity 14, 75.0 % covered")
    assert await found_by_axe(page) == []
    await page.reload()
    await expect(drawer.locator(".is-added")).to_have_count(2)
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(drawer.locator(".pair-row > .is-same").first).to_be_hidden()
    await fits(page, 390)
    assert await found_by_axe(page) == []
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.keyboard.press("Escape")
    await expect(drawer).to_have_count(0)
    await names(page).filter(has_text="Added").click()
    added = page.get_by_role("dialog", name="Added")
    await expect(added).to_contain_text("The source is not shown")
    await added.get_by_role("link", name=re.compile("^main.go:")).click()
    await expect(page).to_have_url(re.compile(f"/functions/Added.task={compared.project.tasks[1]}$"))


async def test_functions_with_one_name_in_one_package_are_told_apart(compared: Compared, user: Visitor) -> None:
    project = await Project.registered(compared.project.system, compared.project.directory)
    await project.analyze(TWO_INITS, ONE_CHANGED, ref="inits")
    page = await user.open(f"/analyses/{await project.id}/compare/{'...'.join(project.tasks)}")
    await page.get_by_role("region", name="Gate").get_by_role("link", name="init").click()
    await expect(page).to_have_url(re.compile(f"/functions/cmd:init(@|%40)serve.go.task={project.tasks[1]}$"))
    await page.go_back()
    await names(page).filter(has_text="init").click()
    drawer = page.get_by_role("dialog", name="init")
    await expect(drawer.locator(".is-removed")).to_have_text([re.compile(r"removed: .*add\(2\)")])
    await expect(drawer.locator(".is-added")).to_have_text([re.compile(r"added: .*add\(3\)")])
    await expect(drawer.get_by_role("link", name="cmd/serve.go:3")).to_have_count(2)


async def test_an_analysis_that_does_not_exist_is_named(compared: Compared, user: Visitor) -> None:
    page = await user.open(await compared.address("task-1...task-2"))
    await expect(page.get_by_text("One of these analyses does not exist")).to_be_visible()
    assert all("404" in text for text in user.complaints), user.complaints
    user.complaints.clear()
