"""The page for queries: completion, errors in place, documentation, tabs, history, prettify, without a file of another host."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Response, expect

from tests.support.web.browser import Profiles, Scheme, Visitor, accessible, visitor
from tests.support.web.graphql import Gateway, gateway

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

MOST = 200 * 1024


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """The gateway with the page that is built for browsers."""
    assert browser.is_connected()
    async with gateway(tmp_path_factory.mktemp("queries")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def guest(served: Gateway, profiles: Profiles) -> AsyncIterator[Visitor]:
    """Somebody who writes queries."""
    async with profiles.visitor(served.url, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        yield visitor
        # the browser itself names the status of a query with errors
        visitor.complaints[:] = [text for text in visitor.complaints if "status of 400" not in text]


@pytest_asyncio.fixture(loop_scope="session")
async def page(guest: Visitor) -> Page:
    """The page of the function, when its schema is read."""
    return await opened(guest, "/function/graphql")


async def opened(guest: Visitor, path: str) -> Page:
    tab = await guest.tab()
    await tab.goto(path)
    await expect(tab.get_by_role("heading", name="Root types")).to_be_visible()
    return tab


def query(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Query")


async def written(page: Page, text: str) -> None:
    """Replace the query by a text, typed."""
    await query(page).focus()
    await page.keyboard.press("Control+A")
    await page.keyboard.press("Delete")
    await page.keyboard.insert_text(text)


def result(page: Page) -> Locator:
    return page.get_by_label("Result", exact=True).last


async def test_a_query_is_completed_and_run_by_keys(page: Page) -> None:
    await written(page, "{ ")
    await page.keyboard.type("hel")
    up_to_date = page.locator(".cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled)")  # until then Enter begins a line
    await expect(up_to_date.get_by_role("option", name=re.compile("hello"))).to_be_visible()
    await page.keyboard.press("Enter")
    await page.keyboard.type(" }")
    await expect(query(page)).to_contain_text("{ hello }")
    await page.keyboard.press("Control+Enter")
    await expect(result(page)).to_contain_text('"hello": "Hello world! from OpenFaaS"')
    await expect(page.get_by_text(re.compile(r"^200, \d+ ms, \d+ bytes$"))).to_be_visible()


async def test_an_error_is_shown_at_its_place_before_and_after_a_run(page: Page) -> None:
    await written(page, "{\n  helo\n}")
    await expect(page.locator(".cm-lintRange-error")).to_have_text("helo")
    await expect(page.get_by_text('Line 2: Cannot query field "helo" on type "Query". Did you mean "hello"?')).to_be_visible()
    await written(page, "{ hello")
    await expect(page.get_by_text(re.compile("^Line 1: .*Expected Name, found <EOF>"))).to_be_visible()
    await page.get_by_role("button", name="Run").click()
    await expect(result(page)).to_contain_text('"errors"')
    await page.get_by_role("button", name="Prettify").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not prettified")


async def test_an_error_is_shown_in_no_other_query(guest: Visitor, page: Page) -> None:
    await guest.stop_the_clock()
    error = page.get_by_text(re.compile("^Line 1: Cannot query field .helo"))
    await written(page, "{ helo }")
    await page.get_by_role("button", name="Run").click()
    await expect(result(page)).to_contain_text('"errors"')
    await expect(error).to_be_visible()
    await page.get_by_role("button", name="New query").click()
    await expect(query(page)).to_have_text("")
    await page.clock.fast_forward(10_000)
    await page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    await expect(error).to_have_count(0)
    await page.get_by_role("button", name=re.compile("^Close 2")).click()
    await expect(error).to_be_visible()


_SILENT = """() => {
  const real = window.fetch;
  window.asked = [];
  window.fetch = (address, options) => {
    if (options?.headers?.Accept !== "text/event-stream") return real(address, options);
    window.asked.push(options.headers["Last-Event-ID"] ?? "");
    const isFirst = window.asked.length === 1;
    const event = isFirst ? 'id: 7\\nevent: next\\ndata: {"data": {"changed": 1}}\\n\\n' : "event: complete\\n\\n";
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(new TextEncoder().encode(event));
        options.signal.addEventListener("abort", () => stream.error(options.signal.reason));
      },
    });
    return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  };
}"""
"""The first stream gives one event, and then nothing: neither a comment nor an end."""


@pytest.mark.long
async def test_a_subscription_over_a_dead_connection_is_resumed(guest: Visitor, page: Page) -> None:
    await guest.stop_the_clock()
    await page.evaluate(_SILENT)
    await written(page, "subscription { changed }")
    await page.get_by_role("button", name="Run").click()
    await expect(page.get_by_text("listening, events: 1")).to_be_visible()
    await page.clock.fast_forward(60_000)
    await expect(page.get_by_text("connection lost, trying again, events: 1")).to_be_visible()
    await page.clock.fast_forward(10_000)
    await expect(page.get_by_text("ended, events: 1")).to_be_visible()
    assert await page.evaluate("window.asked") == ["", "7"]


async def test_the_documentation_is_a_click_away_and_leads_back(page: Page) -> None:
    docs = page.get_by_role("region", name="Documentation")
    await docs.get_by_role("button", name="Query", exact=True).first.click()
    await docs.get_by_role("button", name="hello").click()
    await expect(docs).to_contain_text("A greeting, always the same.")
    await docs.get_by_role("button", name="Back").click()
    await docs.get_by_role("button", name="Back").click()
    await docs.get_by_label("Search types and fields").fill("hel")
    await docs.get_by_role("button", name="Query.hello").click()
    await expect(docs.get_by_role("heading", name="Query.hello")).to_be_visible()
    await docs.get_by_role("button", name="Back").click()
    await written(page, "{ hello }")
    await query(page).locator(".cm-line").click(position={"x": 40, "y": 10}, modifiers=["Control"])
    await expect(docs.get_by_role("heading", name="Query.hello")).to_be_visible()


async def test_prettify_keeps_comments_and_undo_takes_it_back(page: Page) -> None:
    await written(page, "# first\nquery Named($a:Int=1){hello} # last\n")
    await page.keyboard.press("Shift+Alt+F")
    lines = query(page).locator(".cm-line")
    await expect(lines).to_have_text(["# first", "query Named($a: Int = 1) {", "  hello", "}", "", "# last", ""])
    await page.keyboard.press("Control+Z")
    await expect(lines.first).to_have_text("# first")
    await expect(lines.nth(1)).to_contain_text("$a:Int=1")


async def test_tabs_and_the_history_outlive_the_page_and_headers_do_not(page: Page) -> None:
    await written(page, "query Kept { hello }")
    await page.keyboard.press("Control+Enter")
    await expect(result(page)).to_contain_text("Hello world")
    tabs = page.get_by_role("group", name="Queries")
    await tabs.get_by_role("button", name="New query").click()
    await written(page, "query Other { __typename }")
    await page.get_by_role("button", name="Headers").click()
    await page.get_by_role("textbox", name="Headers, as JSON").fill('{"X-Secret": "s3cret"}')
    await page.reload()
    await expect(tabs.get_by_role("button", name="1: Kept", exact=True)).to_be_visible()
    await expect(tabs.get_by_role("button", name="2: Other", exact=True)).to_have_attribute("aria-pressed", "true")
    assert "s3cret" not in await page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    await page.get_by_role("button", name="History").click()
    await page.get_by_role("button", name="Kept", exact=True).click()
    await expect(query(page)).to_contain_text("query Kept")
    await tabs.get_by_role("button", name="Close 2: Other").click()
    await expect(tabs.get_by_role("button", name=re.compile(r"^\d: "))).to_have_count(2)


async def test_variables_and_headers_are_sent(page: Page) -> None:
    await written(page, "query Q($yes: Boolean!) { hello @include(if: $yes) }")
    variables = page.get_by_role("textbox", name="Variables, as JSON")
    await variables.fill('{"yes": ')
    await page.get_by_role("button", name="Run").click()
    await expect(page.get_by_role("alert")).to_have_text("The variables are not JSON.")
    await variables.fill('{"yes": true}')
    await page.get_by_role("button", name="Headers").click()
    await page.get_by_role("textbox", name="Headers, as JSON").fill('{"X-Team": "blue"}')
    async with page.expect_request(lambda one: one.method == "POST" and "Named" not in (one.post_data or "")) as asked:
        await page.get_by_role("button", name="Run").click()
    request = await asked.value
    assert (await request.all_headers())["x-team"] == "blue"
    assert json.loads(request.post_data or "")["variables"] == {"yes": True}
    await expect(result(page)).to_contain_text("Hello world")


async def test_a_link_opens_the_query_as_a_tab(page: Page) -> None:
    await written(page, "query Shared { hello }")
    await page.get_by_role("button", name="Copy link").click()
    address = await page.evaluate("navigator.clipboard.readText()")
    await page.goto(address)
    await expect(query(page)).to_contain_text("query Shared { hello }")
    await expect(page.get_by_role("group", name="Queries").get_by_role("button", name=re.compile(r"^\d: Shared"))).to_have_count(
        1
    )


async def test_a_gateway_with_a_token_asks_for_it_once(browser: Browser, tmp_path: Path) -> None:
    async with gateway(tmp_path, GRAPHQL_AUTH_TOKEN="a token of the gateway") as guarded, visitor(browser, guarded.url) as found:
        tab = await found.context.new_page()
        await tab.goto("/function/graphql")
        await tab.get_by_label("Token", exact=True).fill("a token of the gateway")
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("heading", name="Root types")).to_be_visible()
        await tab.reload()
        await tab.get_by_role("button", name="Run").click()
        await expect(result(tab)).to_contain_text("Hello world")
        assert all("status of 401" in text for text in found.complaints), found.complaints
        found.complaints.clear()


@pytest.mark.parametrize(
    "schemes",
    [("light", "dark"), pytest.param(("dark", "light"), marks=pytest.mark.long)],
    ids=["wide and light, narrow and dark", "wide and dark, narrow and light"],
)
async def test_axe_finds_nothing_at_any_width(served: Gateway, profiles: Profiles, schemes: tuple[Scheme, Scheme]) -> None:
    async with profiles.visitor(served.url, reduced_motion="reduce") as guest:
        tab = await opened(guest, "/")
        await tab.get_by_role("button", name="Run").click()
        await expect(result(tab)).to_contain_text("Hello world")
        await accessible(tab, schemes, narrow=390)


async def test_all_that_it_loads_is_at_most_200_kb(served: Gateway, browser: Browser) -> None:
    files: list[Response] = []
    async with visitor(browser, served.url) as found:
        found.context.on("response", lambda answer: files.append(answer))  # noqa: PLW0108 - Playwright marks its listeners
        await opened(found, "/function/graphql")
        sizes = [
            len(gzip.compress(await one.body(), 9)) for one in files if one.request.method == "GET" and "/api/" not in one.url
        ]
    assert len(sizes) >= 3
    assert sum(sizes) <= MOST
