"""The page of a function in a browser: from an analysis to the lines that no test runs, by pointer and by keyboard."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from gctd.domain.analysis import CommitFacts
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import tracker_system
from tests.support.web.browser import Profiles, Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

CHECK = """// Package order has orders.
package order

// Check decides.
func (o *Order) Check(x int, s string) string {
\tif x > 10 && s != "" {
\t\treturn "both" // a comment
\t}
\tfor i := 0; i < x; i++ {
\t\tif i == 7 { return `seven` }
\t}
\tswitch s {
\tcase "a":
\t\treturn "A\u202e"
\tcase "b":
\t\treturn "B"
\t}
\treturn fmt.Sprint(0x1F, "%s", s)
}
"""
LONG = "package long\n\nfunc Long(x int) int {\n" + "\tx++ // count\n" * 4994 + "\treturn x\n}\n\n"
PLACES = {"5.47,6.23": 1, "6.23,8.3": 0, "9.2,9.25": 1, "9.25,10.13": 1, "10.13,10.29": 0}
PLACES |= {"12.2,12.11": 1, "13.11,14.15": 0, "15.11,16.13": 0, "18.2,18.34": 1}


def profile(covered: int) -> str:
    """Return the profile with this many further blocks covered."""
    lines, left = ["example.com/./long/long.go:3.22,4999.2 4995 1"], covered
    for place, count in PLACES.items():
        runs, left = (count, left) if count else (int(left > 0), left - 1)
        lines.append(f"example.com/./order/order.go:{place} 1 {runs}")
    return "\n".join(["mode: count", *lines, ""])


NEVER_IDLE = "globalThis.requestIdleCallback = () => 0;"
FIRST_PICTURE = (
    NEVER_IDLE
    + """
const look = () => {
  const lines = [...document.querySelectorAll(".code-line")];
  if (lines.length === 0) return requestAnimationFrame(look);
  const isText = ({ className }) => className !== "code-word";
  const text = (line) => [...line.childNodes].filter(isText).map((one) => one.textContent).join("");
  globalThis.firstPicture = {
    texts: lines.map((line) => text(line).replace(/^\\n$/, "")),
    marks: document.querySelectorAll(".code-line.is-covered").length,
    parts: document.querySelectorAll(".code-line [class^=t-]").length,
  };
};
requestAnimationFrame(look);
"""
)
NAME = "order/order.go:*Order.Check"
FIRST = MadeUp(
    commit_sha="1" * 40,
    functions={},
    measured={NAME: (7, 5 / 9 * 100), "huge.go:Huge": (40, 100.0), "long/long.go:Long": (1, 100.0), "other.go:Lost": (12, 0.0)},
    states={"other.go:Lost": ("tests_failed", "panicked: boom")},
    lines={NAME: (5, 19), "long/long.go:Long": (3, 4999)},
    sources={"order/order.go": CHECK, "long/long.go": LONG},
    bodies={NAME: "old"},
    profile=profile(0),
    flags=("--threshold=8",),
)
SECOND = attrs.evolve(
    FIRST,
    commit_sha="2" * 40,
    bodies={NAME: "new"},
    facts=CommitFacts(author="Ada Lovelace", at="2026-11-20T12:00:00Z", subject="Check more", parents=("1" * 40,)),
)
KEY = "order:Order.Check"


@attrs.frozen
class Looked:
    """A project with two analyses, and the browser."""

    project: Project
    browser: Browser

    async def address(self, key: str = KEY, rest: str = "") -> str:
        return f"/analyses/{await self.project.id}/functions/{key}{rest}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def looked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Looked]:
    directory = tmp_path_factory.mktemp("functions")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        project = await Project.registered(system, directory / "analyses", "shop")
        await project.analyze(FIRST, SECOND, ref="main")
        yield Looked(project, browser)


@pytest_asyncio.fixture(loop_scope="session")
async def user(looked: Looked, profiles: Profiles) -> AsyncIterator[Visitor]:
    async with profiles.visitor(looked.project.system.url) as found:
        yield found


def signs(page: Page) -> Any:
    """The lines with a sign, as the style sheet draws them."""
    return page.locator(".code-line").evaluate_all(
        """(lines) => lines.map((line) => getComputedStyle(line, "::before").content.replaceAll('"', "").replace(" ", ""))
          .filter((text) => /[-+~]$/.test(text))"""
    )


async def test_from_an_analysis_to_the_uncovered_lines_of_the_riskiest_function_in_two_clicks(
    looked: Looked, user: Visitor
) -> None:
    page = await user.open(f"/analyses/{await looked.project.id}?q=Check")
    await page.get_by_role("table", name="Functions", exact=True).get_by_role("link", name="*Order.Check").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("*Order.Check")
    await expect(page).to_have_url(re.compile(f"/functions/{KEY}$"))
    assert await signs(page) == ["6+", "7-", "9+", "10~", "12+", "14-", "16-", "18+"]
    await page.get_by_role("button", name="Next").click()
    line = page.locator("#L7")
    await expect(line).to_be_focused()
    await expect(line).to_be_in_viewport()
    await expect(line).to_contain_text('not covered: \t\treturn "both" // a comment')
    value = f"{7 + 49 * (4 / 9) ** 3:.2f}"
    repository = f"example.com/{looked.project.directory.parent.name}/shop"
    assert await page.title() == f"*Order.Check {value}, {repository} {'2' * 12} · gctd"


async def test_the_page_has_the_remedy_and_the_last_author(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address())
    helps = page.get_by_role("region", name="What helps")
    await expect(helps).to_contain_text("Covering 2 blocks brings 11.30 to 7.54. The threshold is 8.")
    await expect(helps.get_by_role("listitem")).to_have_count(2)
    await expect(helps.get_by_role("listitem").first).to_have_text("Reach line 7: at most 8.81")
    await helps.get_by_role("link", name="line 10").click()
    await expect(page).to_have_url(re.compile("#L10$"))
    await expect(page.locator("#L10")).to_be_focused()
    history = page.get_by_role("region", name="History")
    await expect(history).to_contain_text("Its code was last changed by Ada Lovelace on 2026-11-20 in 222222222222: Check more")
    await expect(history.get_by_role("row")).to_have_text(
        [re.compile("Commit"), re.compile("222222222222.*code changed"), re.compile("111111111111.*oldest known")]
    )
    await history.get_by_role("link", name="1" * 12).click()
    await expect(page).to_have_url(re.compile("task=" + looked.project.tasks[0]))
    await expect(page.get_by_text("at 111111111111 main")).to_be_visible()
    await expect(page.get_by_role("region", name="History")).to_contain_text("unchanged since 111111111111 at least")
    await page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="analysis of 111111111111").click()
    await expect(page).to_have_url(re.compile("/analyses/[0-9a-f]+[?]task=" + looked.project.tasks[0]))


async def test_colours_counts_branches_and_hidden_characters_are_there(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address())
    keywords = page.locator("#L5 .t-keyword, #L6 .t-keyword, #L7 .t-keyword")
    await expect(keywords).to_have_text(["func", "if", "return"])
    await expect(page.locator("#L7 .t-string")).to_have_text('"both"')
    await expect(page.locator("#L7 .t-comment")).to_have_text("// a comment")
    await expect(page.locator("#L10 .t-unrun").first).to_have_text(re.compile("^{"))
    assert "".join(await page.locator(".code .t-branch").all_text_contents()) == "if&&forifcasecase"
    await expect(page.locator("#L14 .t-hidden")).to_have_text("U+202E")
    line = await page.locator("#L6").bounding_box()
    assert line is not None
    await page.mouse.move(line["x"] + 30, line["y"] + 10)
    await expect(page.locator("#L6")).to_have_attribute("title", "covered, ran 1 time")
    await page.mouse.move(line["x"] + 200, line["y"] + 10)
    await expect(page.locator("#L6")).to_have_attribute("title", "")
    select = "(range => { range.selectNodeContents(document.querySelector('.code')); getSelection().addRange(range); })"
    await page.evaluate(f"{select}(document.createRange())")
    selected = str(await page.evaluate("String(getSelection())"))
    assert selected.splitlines()[7:9] == ["\t}", "\tfor i := 0; i < x; i++ {"]


async def test_all_of_it_by_keyboard(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address())
    await expect(page.locator("#L7")).to_be_visible()
    for key, line in [("n", 7), ("n", 10), ("n", 14), ("p", 10), ("p", 7), ("p", 16)]:
        await page.keyboard.press(key)
        await expect(page.locator(f"#L{line}")).to_be_focused()
    await expect(page.get_by_role("status").filter(has_text="uncovered place 4 of 4, line 16")).to_be_visible()
    await page.get_by_role("region", name=re.compile("Source of order.order.go")).focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("next uncovered code")


async def test_a_long_file_opens_whole_and_scrolls_to_its_function(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address(rest="?whole=yes"))
    await expect(page.get_by_text("the whole file, 19 lines")).to_be_visible()
    await page.goto(user.url + await looked.address("long:Long"))
    await expect(page.locator(".code-line")).to_have_count(5000)
    await page.goto(user.url + await looked.address("long:Long", "#L4000"))
    await expect(page.locator("#L4000")).to_be_in_viewport()


async def test_a_long_file_is_there_at_once_and_gets_its_colours_where_they_are_seen(looked: Looked, user: Visitor) -> None:
    """Each line has its text and its mark in the first picture, so that search, links and copies have it. Few have colours."""
    await user.begin_with(FIRST_PICTURE)
    page = await user.open(await looked.address("long:Long"))
    coloured = page.locator(".code-line:has(.t-comment)")
    await expect(page.locator("#L20 .t-comment")).to_have_text("// count")
    first = await page.evaluate("firstPicture")
    assert first["texts"] == LONG.splitlines()
    assert first["marks"] == 4995
    assert first["parts"] < 200
    assert await coloured.count() < 500, "without spare time, the others stay as they are"
    await page.locator("#main").evaluate("(main) => (main.scrollTop = main.scrollHeight / 2)")
    await expect(page.locator("#L2500 .t-comment")).to_have_text("// count")
    await page.goto(user.url + await looked.address("long:Long", "#L4000"))
    await expect(page.locator("#L4000 .t-comment")).to_be_in_viewport()
    assert await coloured.count() < 1_000


async def test_a_long_file_gets_all_colours_in_spare_time(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address("long:Long"))
    await expect(page.locator(".code-line .t-comment")).to_have_count(4994)


async def test_a_long_file_prints_whole_with_all_colours(looked: Looked, user: Visitor) -> None:
    await user.begin_with(NEVER_IDLE)
    page = await user.open(await looked.address("long:Long"))
    await expect(page.locator("#L20 .t-comment")).to_be_visible()
    assert await page.locator(".code-line .t-comment").count() < 500
    paper = await page.pdf(format="A4", print_background=True)
    await expect(page.locator(".code-line .t-comment")).to_have_count(4994)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    assert pages > 5000 * 20 / 1123, "of a height of 1,123 pixels"


async def test_nothing_in_a_line_has_a_layer_until_the_code_is_moved_aside(looked: Looked, user: Visitor) -> None:
    """A layer for each line makes scrolling slow. The numbers are in sight wherever the code is."""
    page = await user.open(await looked.address())
    await page.set_viewport_size({"width": 390, "height": 800})
    number = page.locator("#L6")
    position = "(line) => getComputedStyle(line, '::before').position"
    assert await number.evaluate(position) == "static"
    await page.locator(".code").evaluate("(code) => (code.scrollLeft = 60)")
    await expect(page.locator(".code.is-aside")).to_be_visible()
    assert await number.evaluate(position) == "sticky"
    await page.locator(".code").evaluate("(code) => (code.scrollLeft = 0)")
    await expect(page.locator(".code.is-aside")).to_have_count(0)


async def test_each_part_that_cannot_be_shown_has_its_reason(looked: Looked, user: Visitor) -> None:
    page = await user.open(await looked.address("Huge"))
    await expect(page.get_by_role("region", name="What helps")).to_contain_text(
        "Its complexity of 40 alone is above the threshold of 8"
    )
    await expect(page.get_by_role("region", name="Source", exact=True)).to_contain_text("the source of huge.go is not kept")
    await page.goto(user.url + await looked.address("Lost"))
    await expect(page.get_by_text("Not measured, so not risky: tests failed: panicked: boom")).to_be_visible()
    await expect(page.get_by_role("region", name="What helps")).to_contain_text("the coverage is not known: panicked: boom")
    config = {"url": looked.project.url, "store_source": "never"}
    await looked.project.system.post("/api/repo-config", config)
    await page.goto(user.url + await looked.address())
    source = page.get_by_role("region", name="Source", exact=True)
    await expect(source).to_contain_text("the setting store_source of the project is never")
    await expect(page.get_by_role("region", name="What helps")).to_contain_text("Covering 2 blocks")
    await looked.project.system.post("/api/repo-config", config | {"store_source": None})


async def test_a_function_that_the_analysis_does_not_have(looked: Looked) -> None:
    """The browser itself logs the answer 404, so the console is not silent."""
    context = await looked.browser.new_context(base_url=looked.project.system.url)
    page = await context.new_page()
    await page.goto(await looked.address("Nothing"))
    await expect(page.get_by_text("The analysis has no such function")).to_be_visible()
    await page.get_by_role("link", name="All functions of the analysis").click()
    await expect(page).to_have_url(re.compile("/analyses/[0-9a-f]+$"))
    await context.close()


async def test_a_function_prints_with_its_source_and_the_remedy(looked: Looked, profiles: Profiles) -> None:
    async with profiles.visitor(looked.project.system.url, color_scheme="dark") as someone:
        page = await someone.open(await looked.address())
        await expect(page.locator("#L18")).to_be_visible()
        await page.emulate_media(media="print")
        for hidden in (".top", ".crumbs", ".source-steps"):
            await expect(page.locator(hidden).first).to_be_hidden()
        await expect(page.get_by_text(page.url, exact=True)).to_be_visible()
        await expect(page.get_by_role("region", name="What helps")).to_be_visible()
        await page.emulate_media(media="null")
        paper = await page.pdf(format="A4", print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", paper)) >= 1


async def test_names_of_functions_lead_to_their_pages(looked: Looked, user: Visitor) -> None:
    project = looked.project
    base = f"/analyses/{await project.id}/functions/"
    repo = await project.system.get(f"/api/repos/status?url={project.url}")
    page = await user.open(f"/repos/{repo['ID']}")
    await page.get_by_role("list", name="Worst functions").get_by_role("link", name="Huge").click()
    await expect(page).to_have_url(re.compile(f"{base}Huge$"))
    await page.goto(f"{user.url}/tasks/{project.tasks[1]}")
    await page.get_by_role("table", name="Worst functions").get_by_role("link", name="Huge").click()
    await expect(page).to_have_url(re.compile(rf"{base}Huge\?task={project.tasks[1]}$"))
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name=re.compile("^Go to")).fill("order.check")
    await page.get_by_role("option", name=re.compile("Order.Check")).first.click()
    await expect(page).to_have_url(re.compile(f"{base}{KEY}$"))
