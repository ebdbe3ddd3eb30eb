"""Charts that people can read: values by pointer and by keyboard, names, single points, one time zone, one scale, tables."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import attrs
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.pages.conftest import FIRST, Dashboard, Measured
from tests.support.tracker.made_project import Project
from tests.support.web.browser import Profiles, Visitor, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

FAR_FROM_UTC = "Asia/Kathmandu"
_PIXELS = """(canvas, [left, width]) => {
  const { data } = canvas.getContext("2d").getImageData(left, 0, width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) found.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
  return [...found];
}"""


def tip(figure: Locator) -> Locator:
    """Return the description of the selected point."""
    return figure.locator(".tip-box p")


async def ticks(page: Page) -> None:
    """Have every text that a canvas is given kept in `window.drawn`."""
    await page.add_init_script(
        "window.drawn = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
        " window.drawn.push(text); return fill.call(this, text, ...rest); }"
    )


async def test_a_chart_says_its_values_by_pointer_and_by_keyboard(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address("/history"))
    figure = page.get_by_role("group", name=re.compile("^Average CRAP over 2 analyses"))
    canvas = figure.locator("canvas")
    await expect(canvas).to_be_visible()
    box = await figure.bounding_box()
    assert box is not None
    await figure.hover(position={"x": 0.75 * box["width"], "y": 100})
    await expect(tip(figure).first).to_contain_text("222222222222")
    await expect(tip(figure).last).to_have_text(re.compile(r"^go1\.26\.7, fake 1: \d+\.\d\d$"))
    await page.mouse.move(1, 1)
    await expect(tip(figure)).to_have_count(0)
    await figure.focus()
    await page.keyboard.press("Home")
    await expect(tip(figure).first).to_have_text(re.compile(r"^111111111111, \d{4}-\d\d-\d\d \d\d:\d\d UTC$"))
    await expect(figure.get_by_role("status")).to_contain_text("111111111111")
    await page.keyboard.press("ArrowRight")
    await expect(tip(figure).first).to_contain_text("222222222222")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(rf"\?task={measured.project.tasks[0]}$"))


async def test_a_single_point_is_drawn(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(f"/analyses/{await measured.single.id}/history")
    canvas = page.locator(".chart canvas")
    await expect(canvas).to_be_visible()
    accent = await page.evaluate(
        "(() => { const probe = document.body.appendChild(document.createElement('i'));"
        " probe.style.color = 'var(--accent)'; return getComputedStyle(probe).color; })()"
    )
    width = await canvas.evaluate("canvas => canvas.width")
    assert accent.removeprefix("rgb(").removesuffix(")").replace(" ", "") in await canvas.evaluate(_PIXELS, [60, width - 60])


async def test_a_dot_says_which_functions_it_is_and_opens_them(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address())
    plot = page.get_by_role("group", name=re.compile("functions by complexity and coverage"))
    await plot.focus()
    await page.keyboard.press("ArrowRight")
    await expect(tip(plot)).to_have_text(["Added, CRAP 90.00", "complexity 9, 0 % covered"])
    await expect(plot.get_by_role("status")).to_contain_text("Added, CRAP 90.00")
    await page.keyboard.press("ArrowRight")
    await expect(tip(plot).first).to_have_text("Huge, CRAP 40.00")
    ring = await plot.locator(".ring").bounding_box()
    assert ring is not None
    await page.keyboard.press("Escape")
    await page.mouse.move(ring["x"] + ring["width"] / 2 + 3, ring["y"] + ring["height"] / 2 + 3)
    await expect(tip(plot).first).to_have_text("Huge, CRAP 40.00")
    await page.mouse.down()
    await page.mouse.up()
    await expect(page).to_have_url(re.compile("/functions/pricing:Huge$"))


async def test_a_tile_says_how_many_of_its_functions_are_risky(measured: Measured, reader: Visitor) -> None:
    page = await reader.open(await measured.address())
    tile = page.locator('g[data-tile="pricing"]')
    await tile.hover()
    await expect(tip(page.locator(".treemap"))).to_have_text(
        ["pricing", "1 of 2 functions risky", "highest CRAP 40.00", "complexity 51"]
    )
    await page.mouse.move(1, 1)
    await tile.focus()
    await expect(tip(page.locator(".treemap")).first).to_have_text("pricing")


async def test_all_maps_colour_by_the_share_of_risky_functions(measured: Measured, reader: Visitor) -> None:
    """The same project has one colour as a tile of the overview, and its calm packages are calm."""
    page = await reader.open("/")
    legend = "risky functionsnoneto 2 %to 5 %to 10 %more"
    await expect(page.locator(".treemap .legend")).to_have_text(legend)
    whole = page.locator(f'g[data-tile="{await measured.project.id}"]')
    await expect(whole).to_have_class("risk-5")  # 2 of 6 functions
    await page.goto(measured.system.url + await measured.address())
    await expect(page.locator(".treemap .legend")).to_have_text(legend)
    await expect(page.locator('g[data-tile="order"]')).to_have_class("risk-1")
    await expect(page.locator('g[data-tile="pricing"]')).to_have_class("risk-5")


async def test_bars_stand_on_each_other(dashboard: Dashboard, user: Visitor) -> None:
    ended = {"updated_at": datetime.now(UTC).isoformat()}

    async def in_the_same_minute(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json=[task | ended for task in await answer.json()])

    await user.context.route("**/api/tasks?*", in_the_same_minute)
    page = await user.open("/")
    figure = page.get_by_role("group", name=re.compile("^In the last hour 3 tasks completed, 1 failed"))
    canvas = figure.locator("canvas")
    await expect(canvas).to_be_visible()
    heights = await canvas.evaluate(
        """(canvas, names) => {
          const pick = name => { const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = `var(--${name})`; return getComputedStyle(probe).color.match(/\\d+/g).map(Number); };
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return names.map(name => { const [r, g, b] = pick(name); const rows = new Set();
            for (let at = 0; at < data.length; at += 4)
              if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255)
                rows.add(Math.floor(at / 4 / canvas.width));
            return [Math.min(...rows), Math.max(...rows), rows.size]; });
        }""",
        ["failed", "completed"],
    )
    (top, bottom, failed), (start, end, completed) = heights
    assert failed
    assert completed
    assert top < bottom <= start < end, "the failed ones stand on the completed ones"
    assert 2 < completed / failed < 4.5, "three completed, one failed"


async def test_no_tick_is_there_twice_and_times_are_utc_in_any_zone(
    dashboard: Dashboard, measured: Measured, profiles: Profiles
) -> None:
    async with profiles.visitor(dashboard.system.url, timezone_id=FAR_FROM_UTC) as someone:
        page = await someone.context.new_page()
        await ticks(page)
        await page.goto(dashboard.system.url)
        figure = page.get_by_role("group", name=re.compile("^In the last hour"))
        await expect(figure.locator("canvas")).to_be_visible()
        await expect(page.locator(".chart .note")).to_have_text("times in UTC")
        drawn = await page.evaluate("window.drawn")
        times = [text for text in dict.fromkeys(drawn) if ":" in text]
        now = await page.evaluate("new Date().toISOString().slice(11, 13)")
        assert times
        assert all(text.endswith("0") for text in times), "Kathmandu is 5:45 from UTC"
        assert any(text.startswith(now) for text in times) or all(text > now for text in times)
        await figure.focus()
        await page.keyboard.press("End")
        await expect(tip(figure).first).to_have_text(re.compile(r"^\d\d:\d\d UTC$"))
        others = await someone.context.new_page()
        await ticks(others)
        await others.goto(f"{measured.system.url}{await measured.address('/history')}?by=time&metric=combined")
        await expect(others.locator(".chart canvas")).to_be_visible()
        drawn = await others.evaluate("window.drawn")
        last = drawn[-len(drawn) // max(1, drawn.count("0")) :] if "0" in drawn else drawn
        labels = [text for text in last if text]
        assert len(set(labels)) >= 3
        assert [text for text in labels if ":" in text] == list(dict.fromkeys(text for text in labels if ":" in text))
        someone.others.clear()  # the second page is of another system


async def test_the_labels_of_large_values_are_whole(measured: Measured, reader: Visitor) -> None:
    large = {f"p/f.go:F{number}": (900, 0.0) for number in range(4)}
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="4" * 40, measured=large))
    page = await reader.open(f"/analyses/{await measured.single.id}/history?metric=combined")
    canvas = page.locator(".chart canvas")
    await expect(canvas).to_be_visible()
    outside = await canvas.evaluate(_PIXELS, [0, 3])
    assert outside == [], "nothing is drawn at the edge, so no label is cut"


async def test_each_chart_has_a_table_of_the_same_values(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/")
    for address, tables in {
        "/": ("Projects by size and risk", "In the last hour"),
        await measured.address(): ("Packages by risk", "6 functions by complexity and coverage"),
        await measured.address("/history"): ("Average CRAP over 2 analyses",),
    }.items():
        await page.goto(measured.system.url + address)
        await expect(page.locator("details.as-table")).to_have_count(len(tables))
        for name in tables:
            table = page.get_by_role("table", name=re.compile(f"^{name}"))
            await expect(table).to_have_count(0)
            details = page.locator("details.as-table").nth(tables.index(name))
            await details.locator("summary").click()
            await expect(table).to_be_visible()
            assert await table.locator("tbody tr").count() >= 1
        assert await found_by_axe(page) == [], address
    row = page.get_by_role("table", name=re.compile("^Average CRAP over 2 analyses")).locator("tbody tr").first
    await expect(row).to_contain_text("111111111111")
    await page.goto(measured.system.url + await measured.address())
    await page.locator("details.as-table summary").first.click()
    await page.get_by_role("table", name=re.compile("^Packages by risk")).get_by_role("button", name="pricing").click()
    await expect(page).to_have_url(re.compile("in=pricing"))


async def test_the_package_at_the_root_of_a_module_has_a_name(measured: Measured, reader: Visitor) -> None:
    places = {"main.go:main": (40, 0.0), "p/f.go:F": (3, 0.0)}
    await measured.single.analyze(attrs.evolve(FIRST, commit_sha="5" * 40, measured=places))
    page = await reader.open(f"/analyses/{await measured.single.id}")
    await page.get_by_role("link", name=re.compile("^root")).click()
    await expect(page.get_by_role("heading", name="Files of root")).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile(r"^main\.go"))).to_be_visible()


async def test_the_use_of_a_worker_says_its_values(measured: Measured, reader: Visitor) -> None:
    page = await reader.open("/workers")
    spark = page.get_by_role("group", name=re.compile("^Cores used in the last ten minutes"))
    await spark.focus()
    await page.keyboard.press("End")
    await expect(tip(spark)).to_have_text([re.compile(r"^\d+\.\d\d cores$"), re.compile(r"^\d\d:\d\d:\d\d UTC$")])
    box = await spark.bounding_box()
    assert box is not None
    await page.keyboard.press("Escape")
    await expect(tip(spark)).to_have_count(0)
    await spark.hover(position={"x": box["width"] - 4, "y": 20})
    await expect(tip(spark).first).to_contain_text("cores")
    await page.locator("details.as-table summary").click()
    await expect(page.get_by_role("table", name=re.compile("^Cores used"))).to_contain_text("UTC")
    assert await found_by_axe(page) == []


async def test_a_trend_is_of_the_project_and_not_of_the_bases_of_comparisons(measured: Measured, reader: Visitor) -> None:
    """The base is an old commit that is analysed last: it is in the list, and the trend does not end there."""
    project = await Project.registered(measured.system, measured.single.directory, "bases")
    await project.analyze(FIRST)
    base = attrs.evolve(FIRST, commit_sha="e" * 40)
    base.write(project.directory, base.commit_sha)
    path = f"/analyses/{await project.id}/history"
    asked = await measured.system.post(f"/api/repos/{await project.id}/gate", {"base": base.commit_sha})
    await measured.system.until_task(asked["base"]["task_id"], "completed")
    page = await reader.open(path)
    await expect(page.get_by_role("link", name=f"since {FIRST.commit_sha[:12]}")).to_be_visible()
    await expect(page.get_by_role("group", name=re.compile("^Average CRAP: one analysis,"))).to_be_visible()
