"""Every screen of the dashboard: axe finds nothing, nothing scrolls sideways, the console is silent, words are terms."""

from __future__ import annotations

import gzip
import re
from urllib.parse import urlsplit

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Response, expect

from gctd.domain.analysis import analysis_id
from gctd.http.api import SCREENS
from tests.pages.conftest import Dashboard, Measured
from tests.pages.tracker import test_function as functions
from tests.support.tracker.made_project import Project
from tests.support.web.browser import Profiles, Scheme, accessible, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

MOST = 60 * 1024
INSTEAD = {
    r"over the threshold|over 30\b|exceeded": "risky",
    r"measured (otherwise|in another way)": "measured differently",
    r"to be green|divide it": "what helps, split it",
    r"\bis so\b": "matches",
    r"heard of": "heartbeat",
    r"\bholds\b": "in effect",
    r"works on nothing|\d places? (free|taken)": "idle, slot",
    r"go on\b": "resume",
    r"what it says": "data",
    r"looked at sequences|look again|look further": "sequences, read",
    r"\banew\b|\bnobody\b|none of": "plain words",
}
"""Words that the pages do not use, and the term of the glossary that they use."""


def wrong(text: str) -> list[str]:
    """Return the parts of a text that use another term."""
    plain = re.sub(r"\(CRAP over 30\)|^over 30$|CRAP over 30", "", text, flags=re.MULTILINE)
    return [f"{found[0]!r} ({term})" for words, term in INSTEAD.items() for found in re.finditer(words, plain, re.IGNORECASE)]


async def addresses(dashboard: Dashboard) -> dict[str, str]:
    """An address for each screen, and a text that is there once all of it is."""
    repos = await dashboard.system.get("/api/repos/registered")
    [shop] = [repo["ID"] for repo in repos if repo["Status"] == "ready"]
    analysis = f"/analyses/{analysis_id(shop, '.')}"
    return {
        "/": "of 12 functions",
        "/tasks": "shop · p1",
        f"/tasks/{dashboard.done}": "Worst functions",
        f"/tasks/{dashboard.failed}": "cancelled",
        "/analyses": "56.48",
        analysis: "Gate",
        f"{analysis}/functions/Order.Check": "the setting store_source of the project is never",
        f"{analysis}/history": "One analysis so far",
        f"{analysis}/compare/{dashboard.done}...{dashboard.done}": "No function changed",
        "/workers": "worker-1",
        "/repos": "owner/broken",
        f"/repos/{shop}?project=p1": "Flags of go test",
        "/log": "TaskCompleted",
        "/log/1": "as WorkerStarted at 1 left it",
        "/projections": "No aggregate is parked",
    }


@attrs.frozen
class Screen:
    """A screen of one of the systems, and a text that is there once all of it is."""

    url: str
    text: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def screens(dashboard: Dashboard, measured: Measured) -> list[Screen]:
    """Each screen, then the screens of a project with two analyses, and of functions with and without source."""
    source = await Project.registered(measured.system, measured.single.directory, "source")
    await source.analyze(functions.FIRST, functions.SECOND, ref="main")
    function = f"/analyses/{await source.id}/functions"
    more = {
        "/analyses": "2222222222",
        await measured.address(): "functions that are worse",
        await measured.address("/history"): "measured differently",
        await measured.address(f"/compare/{'...'.join(measured.project.tasks)}"): "not passed",
        await measured.address("/functions/pricing:Huge"): "What helps",
        await measured.repository(): "Set the limits of the gate",
        f"{function}/{functions.KEY}": "code changed",
        f"{function}/Huge": "is not kept",
        f"{function}/Lost": "panicked: boom",
    }
    return [
        *(Screen(dashboard.system.url + address, text) for address, text in (await addresses(dashboard)).items()),
        *(Screen(measured.system.url + address, text) for address, text in more.items()),
    ]


async def test_each_screen_is_looked_at(dashboard: Dashboard) -> None:
    shown = {address.partition("?")[0] for address in await addresses(dashboard)}
    for screen in SCREENS:
        pattern = re.compile(re.sub(r"{\w+}", "[^/]+", screen) + "$")
        assert any(pattern.match(address) for address in shown), screen


@pytest.mark.parametrize(
    "schemes",
    [("light", "dark"), pytest.param(("dark", "light"), marks=pytest.mark.long)],
    ids=["wide and light, narrow and dark", "wide and dark, narrow and light"],
)
async def test_axe_finds_nothing_at_any_width_and_the_words_are_those_of_the_glossary(
    screens: list[Screen], dashboard: Dashboard, profiles: Profiles, schemes: tuple[Scheme, Scheme]
) -> None:
    async with profiles.visitor(dashboard.system.url, reduced_motion="reduce") as user:
        page = await user.open("/")
        for screen in screens:
            await page.goto(screen.url)
            await expect(page.get_by_text(screen.text).first).to_be_visible()
            await expect(page.locator(".skeleton")).to_have_count(0)
            labels = await page.locator("[aria-label], [title], [placeholder]").evaluate_all(
                "all => all.flatMap(one => ['aria-label', 'title', 'placeholder'].map(name => one.getAttribute(name) ?? ''))"
            )
            assert wrong("\n".join([await page.locator("body").inner_text(), *labels])) == [], screen
            await accessible(page, schemes)
        user.others.clear()  # the second system
        await page.goto(f"{user.url}/workers")
        await expect(page.get_by_text("worker-1").first).to_be_visible()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        assert await found_by_axe(page) == []
        file = await page.get_by_role("link", name="Licences of bundled packages").get_attribute("href")
        notices = await page.request.get(f"{user.url}{file}")
        assert (notices.status, notices.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert "Copyright (c) 2022 Leon Sorokin" in await notices.text()


async def weight_of(browser: Browser, dashboard: Dashboard, address: str, text: str) -> int:
    """Bytes, compressed, of all that a browser without a cache asks for, but for data; charts that are read later included."""
    files: dict[str, Response] = {}

    def heard(answer: Response) -> None:
        if not urlsplit(answer.url).path.startswith(("/api/", "/livez")):
            files[answer.url] = answer

    context = await browser.new_context()
    page = await context.new_page()
    page.on("response", heard)
    await page.goto(dashboard.system.url + address)
    await expect(page.get_by_text(text).first).to_be_visible()
    await expect(page.locator(".skeleton")).to_have_count(0)
    if address == "/" or address.endswith("/history"):
        await expect(page.locator("canvas")).to_be_visible()
    assert len(files) > 3
    weight = sum([len(gzip.compress(await answer.body(), 9)) for answer in files.values()])
    await context.close()
    return weight


@pytest.mark.long
async def test_the_first_view_of_each_page_asks_for_at_most_60_kb(browser: Browser, dashboard: Dashboard) -> None:
    weights = {
        address: await weight_of(browser, dashboard, address, text) for address, text in (await addresses(dashboard)).items()
    }
    assert max(weights.values()) <= MOST, weights
