"""Ctrl+K finds pages, repositories, functions, tasks and actions, and goes there, by keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.pages.conftest import Measured
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.web.browser import Profiles, Visitor, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


async def find(page: Page, text: str) -> None:
    """Open the palette and type."""
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name=re.compile("^Go to"))).to_be_focused()
    await page.keyboard.type(text)


async def test_everything_is_reached_by_some_letters(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/workers")
    option = page.get_by_role("dialog", name="Go to").get_by_role("option", selected=True)
    for text, shown, address in (
        ("projec page", "Projections", "/projections"),
        ("shop repository", "shop", await measured.repository()),
        ("shop", "repository", await measured.repository()),
        ("shop history", "shop", await measured.address("/history")),
        ("order.check func shop", "Order.Check", await measured.address("/functions/order:Order.Check")),
        (measured.project.tasks[0], "shop", f"/tasks/{measured.project.tasks[0]}"),
    ):
        await find(page, text)
        await expect(option).to_contain_text(shown)
        await expect(page.get_by_role("option")).not_to_have_count(0)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(re.escape(address) + "$"))
        await expect(page.get_by_role("dialog", name="Go to")).to_have_count(0)


async def test_a_function_is_found_by_the_service_and_its_case_decides(measured: Measured, reader: Visitor) -> None:
    """Also if hundreds of functions of its project have higher values."""
    project = await Project.registered(measured.system, measured.project.directory, "router")
    others = {f"p{number}/f.go:Other{number}": 900.0 - number for number in range(300)}
    router = {**others, "mux/tree.go:findRoute": 39.0, "mux/api.go:FindRoute": 700.0}
    await project.analyze(MadeUp(commit_sha="e" * 40, functions=router))
    page = await reader.open("/workers")
    option = page.get_by_role("dialog", name="Go to").get_by_role("option", selected=True)
    for text, address in (("findRoute", "mux:findRoute"), ("FindRoute", "mux:FindRoute")):
        await find(page, text)
        await expect(option).to_contain_text(text)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(f"/functions/{address}$"))


async def test_actions_of_the_page_are_found(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/tasks")
    await expect(page.get_by_role("table", name="Tasks")).to_be_visible()
    await find(page, "pause the list")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()
    await find(page, "resume")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()


async def test_the_key_opens_it_while_it_is_being_closed(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/workers")
    await find(page, "projec page")
    await page.evaluate(
        """() => {
          document.querySelector("dialog.palette").close();
          dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
        }"""
    )
    await expect(page.get_by_role("combobox", name=re.compile("^Go to"))).to_be_focused(timeout=10_000)
    await expect(page.get_by_role("combobox", name=re.compile("^Go to"))).to_have_value("")


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_palette_is_accessible_and_names_missing_results(measured: Measured, width: int, profiles: Profiles) -> None:
    async with profiles.visitor(measured.system.url, viewport={"width": width, "height": 740}) as someone:
        page = await someone.open("/")
        await page.get_by_role("button", name="Find").click()
        palette = page.get_by_role("dialog", name="Go to")
        await expect(palette.get_by_role("option").first).to_be_visible()
        assert await found_by_axe(page) == []
        first = await palette.get_by_role("option", selected=True).inner_text()
        await page.keyboard.press("ArrowDown")
        assert await palette.get_by_role("option", selected=True).inner_text() != first
        await page.keyboard.type("zzzz no such thing")
        await expect(palette.get_by_text("Nothing matches.")).to_contain_text("Functions of all projects are searched.")
        assert await found_by_axe(page) == []
        await page.keyboard.press("Escape")
        await expect(palette).to_have_count(0)
        await expect(page.get_by_role("button", name="Find")).to_be_focused()
