"""Fingers, paper, a service that is away, Escape: ways of use other than pointer and keyboard."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import attrs
import pytest
from playwright.async_api import CDPSession, Page, expect

from tests.pages.conftest import FIRST, Measured
from tests.support.web.browser import Profiles, Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 740}, "has_touch": True, "is_mobile": True}


async def swipe(session: CDPSession, start: tuple[float, float], by: tuple[float, float]) -> None:
    """Swipe with one finger from a place by the given number of pixels, in steps as a hand does."""
    x, y = start
    await session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 9):
        point = {"x": x + by[0] * step / 8, "y": y + by[1] * step / 8}
        await session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    await session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


async def middle_of(page: Page) -> tuple[float, float]:
    """The middle of the scatter plot, scrolled into sight."""
    svg = page.locator(".scatter svg")
    await svg.scroll_into_view_if_needed()
    box = await svg.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def test_a_swipe_over_the_dots_scrolls_and_chooses_nothing(measured: Measured, profiles: Profiles) -> None:
    async with profiles.visitor(measured.system.url, **PHONE) as someone:
        page = await someone.open(await measured.address())
        session = await someone.context.new_cdp_session(page)
        names = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key] .name")
        await expect(names).to_have_count(6)
        start = await middle_of(page)
        before = await page.evaluate("document.querySelector('main').scrollTop")
        await swipe(session, start, (0, -160))
        await expect(page.locator(".scatter .frame")).to_have_count(0)
        scrolled = page.locator("main")
        await expect(scrolled).not_to_have_js_property("scrollTop", before)
        assert "complexity=" not in page.url
        await expect(names).to_have_count(6)


async def test_an_area_is_selected_by_finger_in_a_mode_of_its_own(measured: Measured, profiles: Profiles) -> None:
    async with profiles.visitor(measured.system.url, **PHONE) as someone:
        page = await someone.open(await measured.address())
        session = await someone.context.new_cdp_session(page)
        mode = page.get_by_role("button", name="Select an area")
        await mode.click()
        await expect(page.get_by_role("button", name="Draw the area with a finger")).to_have_attribute("aria-pressed", "true")
        x, y = await middle_of(page)
        await swipe(session, (x, y), (120, 100))
        await expect(page).to_have_url(re.compile("complexity="))
        await expect(mode).to_have_attribute("aria-pressed", "false")


async def test_a_tap_names_the_nearest_dot_and_another_opens_it(measured: Measured, profiles: Profiles) -> None:
    async with profiles.visitor(measured.system.url, **PHONE) as someone:
        page = await someone.open(await measured.address())
        plot = page.locator(".scatter .plot")
        await plot.focus()
        await page.keyboard.press("ArrowRight")
        ring = await page.locator(".scatter .ring").bounding_box()
        assert ring is not None
        await page.keyboard.press("Escape")
        await page.touchscreen.tap(ring["x"] + ring["width"] / 2 + 10, ring["y"] + ring["height"] / 2 + 10)
        await expect(plot.locator(".tip-box p").first).to_have_text("Added, CRAP 90.00")
        assert "complexity=" not in page.url
        await page.touchscreen.tap(ring["x"] + ring["width"] / 2 + 10, ring["y"] + ring["height"] / 2 + 10)
        await expect(page).to_have_url(re.compile("/functions/Added$"))


async def test_the_navigation_shows_the_current_page(measured: Measured, profiles: Profiles) -> None:
    narrow = PHONE | {"viewport": {"width": 260, "height": 640}}
    async with profiles.visitor(measured.system.url, **narrow) as someone:
        page = await someone.open("/")
        for address, name, group in (
            ("/projections", "Projections", "Operations"),
            ("/workers", "Operations", "Pages"),
            ("/", "Overview", "Pages"),
        ):
            await page.goto(measured.system.url + address)
            link = page.get_by_role("navigation", name=group).get_by_role("link", name=name)
            await expect(link).to_have_attribute("aria-current", "page")
            box = await link.bounding_box()
            assert box is not None
            assert box["x"] >= 0, address
            assert box["x"] + box["width"] <= 260, address


async def test_an_analysis_prints_with_its_table_the_gate_and_the_distribution(measured: Measured, profiles: Profiles) -> None:
    """The print is on white also in the dark scheme, and it has all functions, not only the visible ones."""
    many = {f"p{number % 5}/f.go:Function{number}": (1 + number % 40, float(number % 101)) for number in range(120)}
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="5" * 40, measured=many))
    async with profiles.visitor(measured.system.url, color_scheme="dark") as someone:
        page = await someone.open(f"/analyses/{await measured.single.id}")
        await expect(page.get_by_role("region", name="Gate").get_by_text("functions that are worse")).to_be_visible()
        rows = page.get_by_role("table", name="Functions", exact=True).locator("tbody tr[data-key]")
        assert await rows.count() < 120
        await page.emulate_media(media="print")
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        await expect(rows).to_have_count(120)
        for shown in ("Distribution", "Gate", "Coverage", "Functions"):
            await expect(page.get_by_role("region", name=shown, exact=True)).to_be_visible()
        for hidden in (".top", ".toolbar input", ".crumbs", "details.as-table", ".bounds"):
            await expect(page.locator(hidden).first).to_be_hidden()
        await expect(page.get_by_text(page.url, exact=True)).to_be_visible()
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(247, 248, 250)"
        heights = "[document.documentElement.scrollHeight, document.querySelector('main').scrollHeight]"
        assert max(await page.evaluate(heights)) > 120 * 20, "nothing is cut off by a box that scrolls"
        await page.evaluate("dispatchEvent(new Event('afterprint'))")
        await page.emulate_media(media="null")
        paper = await page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", paper)) >= 3, "all rows are on paper, on several sheets"


async def test_a_page_that_cannot_be_read_says_so_and_opens_by_itself(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/")
    await expect(page.locator(".skeleton")).to_have_count(0)
    await reader.context.set_offline(True)
    await page.get_by_role("link", name="Operations").click()
    await expect(page.get_by_text("The service cannot be reached.")).to_be_visible()
    await expect(page.get_by_text(re.compile("dynamically imported module|Failed to fetch"))).to_have_count(0)
    await reader.context.set_offline(False)
    await expect(page.get_by_role("table", name="Tasks")).to_be_visible()
    offline = [text for text in reader.complaints if "ERR_" in text]
    assert offline == reader.complaints, "what the browser itself says of a connection, and nothing else"
    reader.complaints.clear()


async def test_a_draft_of_settings_takes_back_no_change_of_another_user(measured: Measured, reader: Visitor) -> None:
    url = measured.project.url
    page = await reader.open(await measured.repository())
    await page.get_by_label("Time limit of an attempt").fill("9m")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Analyses").click()
    await expect(page.get_by_role("heading", name="Analyses")).to_be_visible()
    await measured.system.post("/api/repo-config", {"url": url, "git_timeout": "4m", "ref": "main"})
    await page.go_back()
    await expect(page.get_by_label("Time limit of an attempt")).to_have_value("9m")
    await expect(page.get_by_label("Time limit of a git command")).to_have_value("4m")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved. Tasks that are queued")).to_be_visible()
    stored = (await measured.system.get(f"/api/repo-config?url={url}"))["stored"]
    assert (stored["timeout"], stored["git_timeout"], stored["ref"]) == ("9m", "4m", "main")
    await measured.system.post("/api/repo-config", {"url": url, "timeout": None, "git_timeout": None, "ref": None})


async def test_a_setting_that_is_typed_while_others_are_saved_stays_as_a_draft(measured: Measured, reader: Visitor) -> None:
    typed = asyncio.Event()

    async def hold(route: Any) -> None:
        if route.request.method == "POST":
            await typed.wait()
        await route.continue_()

    await reader.context.route(re.compile("/api/repo-config"), hold)
    page = await reader.open(await measured.repository())
    await page.get_by_label("Time limit of an attempt").fill("9m")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_label("Time limit of a git command").fill("4m")
    typed.set()
    await expect(page.get_by_text("Saved. Tasks that are queued")).to_be_visible()
    await expect(page.get_by_label("Time limit of a git command")).to_have_value("4m")
    await expect(page.get_by_text("not saved")).to_be_visible()
    await page.get_by_role("button", name="Discard").click()
    await measured.system.post("/api/repo-config", {"url": measured.project.url, "timeout": None})


async def test_escape_in_a_field_keeps_the_typed_text(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.repository())
    field = page.get_by_label("Time limit of an attempt")
    await field.fill("9m")
    await page.keyboard.press("Escape")
    await expect(field).to_have_value("9m")
    await expect(page.get_by_text("not saved")).to_be_visible()
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Analyses").click()
    await expect(page.get_by_role("heading", name="Analyses")).to_be_visible()
    await page.go_back()
    await expect(field).to_have_value("9m")
    await page.get_by_role("button", name="Discard").click()
    await expect(field).to_have_value("")
    await page.goto(f"{measured.system.url}/log/1")
    sequence = page.get_by_role("dialog").get_by_label("at sequence")
    await sequence.focus()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
