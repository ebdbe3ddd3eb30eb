"""The words of the pages: one term of the glossary for each concept. Also the size of the first view of each page."""

from __future__ import annotations

import gzip
import re
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Response, expect

from tests.pages.conftest import Dashboard, Measured
from tests.pages.tracker.test_screens import addresses
from tests.support import ROOT
from tests.support.web.browser import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")

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


async def test_each_page_uses_the_terms_of_the_glossary(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open("/")
    for address, text in (await addresses(dashboard)).items():
        await page.goto(dashboard.system.url + address)
        await expect(page.get_by_text(text).first).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        shown = await page.locator("body").inner_text()
        labels = await page.locator("[aria-label], [title], [placeholder]").evaluate_all(
            "all => all.flatMap(one => ['aria-label', 'title', 'placeholder'].map(name => one.getAttribute(name) ?? ''))"
        )
        assert wrong("\n".join([shown, *labels])) == [], address


async def test_an_analysis_uses_them_too(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/")
    rest = ("", "/history", f"/compare/{'...'.join(measured.project.tasks)}", "/functions/pricing:Huge")
    for address in (*[await measured.address(each) for each in rest], await measured.repository()):
        await page.goto(measured.system.url + address)
        await expect(page.locator("h1")).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        assert wrong(await page.locator("body").inner_text()) == [], address


async def test_the_glossary_has_each_term_once() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8"), re.MULTILINE
    )
    terms = [term.strip() for row in rows[1:] for term in row.split(",") if not row.startswith("---")]
    assert len(terms) > 20
    assert len(set(terms)) == len(terms)


async def weight_of(dashboard: Dashboard, address: str, text: str) -> int:
    """Bytes, compressed, of all that a browser without a cache asks for, but for data; charts that are read later included."""
    files: dict[str, Response] = {}

    def heard(answer: Response) -> None:
        if not urlsplit(answer.url).path.startswith(("/api/", "/livez")):
            files[answer.url] = answer

    context = await dashboard.browser.new_context()
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


async def test_the_first_view_of_each_page_asks_for_at_most_60_kb(dashboard: Dashboard) -> None:
    weights = {address: await weight_of(dashboard, address, text) for address, text in (await addresses(dashboard)).items()}
    assert max(weights.values()) <= MOST, weights
