"""The kitchen's page in a browser, on a running pantry: find, scan, book, undo, live, by keyboard, both colours, on a phone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from pantry.domain import gtin
from pantry.domain.ean13 import check_digit
from tests.support.pantry.system import FLOUR, MILK, PantrySystem, Server, pantry_system
from tests.support.waiting import wait_until
from tests.support.web.barcodes import ean_13
from tests.support.web.browser import Visitor, fits, found_by_axe, killed_chromium, visitor

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.network]

PHONE: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}


def code(number: int) -> str:
    """An EAN-13 that no other test has."""
    first = f"40000000{number:04d}"
    return f"{first}{check_digit(first)}"


TEA, JAM, SALT, RICE, OATS, BEANS, PEAS, CORN, NUTS, DILL, EGGS = (code(number) for number in range(11))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kitchen(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A pantry with some products, two of them low."""
    async with pantry_system(tmp_path_factory.mktemp("kitchen")) as system:
        for ean13, name, unit, stock in (
            (FLOUR, "Flour", "kg", 10.3),
            (MILK, "Milk", "l", 1),
            (TEA, "Tea, black", "pack", 0),
            (JAM, "A jam of which the name is longer than any phone is wide, with apricots and a bit of lemon", "jar", 4),
        ):
            await system.one.create(ean13, name=name, unit=unit, min_stock=1)
            if stock:
                await system.one.moved("in", stock, ean13)
        yield system


@pytest_asyncio.fixture(loop_scope="module")
async def cook(kitchen: PantrySystem, browser: Browser) -> AsyncIterator[Visitor]:
    """Somebody in the kitchen."""
    async with visitor(browser, kitchen.one.url) as found:
        yield found


def product(page: Page, name: str) -> Any:
    """The panel of a product."""
    return page.get_by_role("region", name=name)


async def stocked(server: Server, ean13: str, name: str, stock: float) -> None:
    """Create a product with the given stock."""
    await server.create(ean13, name=name, unit="piece", min_stock=1)
    await server.moved("in", stock, ean13)


async def scan(page: Page, digits: str) -> None:
    """Scan a code as a scanner does: type it at the focus."""
    await page.keyboard.type(digits)
    await page.keyboard.press("Enter")


async def only_said_of_itself(cook: Visitor, *texts: str) -> None:
    """Check that the browser only reported a refusal or a lost connection."""
    assert [text for text in cook.complaints if not any(each in text for each in texts)] == []
    cook.complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_and_the_console_is_silent(kitchen: PantrySystem, browser: Browser, scheme: Any) -> None:
    async with visitor(browser, kitchen.one.url, color_scheme=scheme, reduced_motion="reduce") as cook:
        page = await cook.open()
        await expect(page.get_by_text("Milk")).to_be_visible()
        assert await found_by_axe(page) == []
        for address, there in (
            (f"?product={FLOUR}", "in 10.3 kg"),
            (f"?product={code(999)}", "There is no product with"),
            ("?low=1", "Milk"),
        ):
            await page.goto(f"{kitchen.one.url}/{address}")
            await expect(page.get_by_text(there)).to_be_visible()
            assert await found_by_axe(page) == [], address


async def test_a_phone_shows_all_of_it_without_scrolling_sideways(kitchen: PantrySystem, browser: Browser) -> None:
    async with visitor(browser, kitchen.one.url, **PHONE) as cook:
        page = await cook.open()
        await expect(page.get_by_text("Milk")).to_be_visible()
        await fits(page, 320, "html, main, .table-box, .product")
        await page.get_by_role("link", name="A jam").tap()
        panel = product(page, "A jam")
        await expect(panel).to_contain_text("4 jar")
        await expect(page.get_by_role("table", name="Products")).to_have_count(0)
        await fits(page, 320, "html, main, .table-box, .product")
        for name in ("Out", "In", "More", "Less", "Close the product"):
            box = await panel.get_by_role("button", name=name, exact=True).bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44, name
        await panel.get_by_role("button", name="In", exact=True).tap()
        await expect(page.get_by_role("status").get_by_text("5 jar there now")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("table", name="Products")).to_be_visible()
        await page.goto(f"{kitchen.one.url}/?product={code(999)}")
        await expect(page.get_by_text("There is no product with")).to_be_visible()
        await fits(page, 320, "html, main, .table-box, .product")


async def test_a_product_is_found_by_a_part_of_its_name_and_what_is_low_by_a_button(cook: Visitor) -> None:
    page = await cook.open()
    rows = page.locator("tbody tr[data-key]")
    await expect(rows.nth(2)).to_be_visible()
    await expect(page.get_by_role("searchbox", name="Name or barcode")).to_be_focused()
    await page.keyboard.type("BLACK")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(product(page, "Tea, black")).to_contain_text("0 pack")
    await expect(page).to_have_url(re.compile(f"product={TEA}"))
    await page.keyboard.press("Escape")
    await expect(product(page, "Tea, black")).to_have_count(0)
    await page.get_by_role("button", name=re.compile("^low")).click()
    await expect(rows.filter(has_text="Tea, black")).to_be_visible()
    await expect(rows.filter(has_text="Flour")).to_have_count(0)


async def test_a_scanned_code_is_shown_wherever_one_is_and_a_wrong_one_refused(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open()
    await expect(page.get_by_text("Milk")).to_be_visible()
    await scan(page, FLOUR)
    await expect(product(page, "Flour")).to_be_visible()
    assert await page.get_by_role("searchbox").input_value() == ""
    await page.get_by_role("button", name="Out", exact=True).focus()
    await scan(page, code(998))
    await expect(product(page, "New product")).to_be_visible()
    await page.get_by_label("Unit").focus()
    await scan(page, MILK)
    await expect(product(page, "Milk")).to_be_visible()
    await page.get_by_label("Quantity").focus()
    await scan(page, FLOUR)
    await expect(product(page, "Flour")).to_be_visible()
    await scan(page, f"{FLOUR[:-1]}0")
    await expect(page.get_by_role("alert").get_by_text("its last digit does not fit")).to_be_visible()
    await scan(page, f"{MILK[:-1]}0")
    problems = page.get_by_role("region", name="Problems").get_by_role("listitem")
    await expect(problems).to_have_count(2)
    await expect(problems.nth(0)).to_contain_text(MILK[:-1])
    await expect(problems.nth(1)).to_contain_text(FLOUR[:-1])
    await page.get_by_role("button", name=f"Dismiss {MILK[:-1]}").click()
    await expect(problems).to_have_count(1)
    assert (await kitchen.one.stock(FLOUR), await kitchen.one.stock(MILK)) == (10.3, 1), "no scan has pressed a button"


async def test_scans_go_out_and_come_in_at_once_one_after_the_other(kitchen: PantrySystem, cook: Visitor) -> None:
    await stocked(kitchen.one, SALT, "Salt", 5)
    page = await cook.open("/?scan=out")
    await expect(page.get_by_text("Salt")).to_be_visible()
    for _ in range(3):
        await scan(page, SALT)
    await expect(product(page, "Salt").get_by_text("2 piece", exact=True)).to_be_visible()
    await page.get_by_label("comes in").check()
    await scan(page, SALT)
    await expect(product(page, "Salt").get_by_text("3 piece", exact=True)).to_be_visible()
    assert await kitchen.one.stock(SALT) == 3
    await scan(page, f"{SALT[:-1]}{(int(SALT[-1]) + 1) % 10}")
    await expect(page.get_by_role("region", name="Problems")).to_be_visible()
    undo = page.get_by_role("button", name="Undo", exact=True)
    await expect(undo).to_have_attribute("title", "Undo Salt: 1 piece in (u)")
    await undo.click()
    await expect(page.get_by_text("Salt: 1 piece out again, undone")).to_be_visible()
    assert await kitchen.one.stock(SALT) == 2
    await expect(undo).to_have_attribute("title", "Undo Salt: 1 piece out (u)")


async def test_what_is_booked_and_undone_by_keyboard_and_what_is_refused_in_the_words_of_the_server(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    await stocked(kitchen.one, RICE, "Rice", 10.3)
    page = await cook.open(f"/?product={RICE}")
    panel = product(page, "Rice")
    await expect(panel.get_by_role("heading", name="Rice")).to_be_visible()
    await page.get_by_label("Quantity").fill("99")
    await page.keyboard.press("Escape")
    await page.keyboard.press("o")
    refusal = "insufficient stock: available 10.300, requested 99.000"
    await expect(page.get_by_role("alert").get_by_text(refusal)).to_be_visible()
    await expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(0)
    await only_said_of_itself(cook, "status of 422")
    await page.get_by_role("button", name="Dismiss Rice: 99 piece out").click()
    await page.get_by_label("Quantity").fill("0,3")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").get_by_text("Rice: 0.3 piece in, 10.6 piece there now")).to_be_visible()
    await expect(page.get_by_text(refusal)).to_have_count(0)
    await expect(panel.locator(".lately li").first).to_contain_text("in 0.3 piece")
    await page.keyboard.press("u")
    await expect(page.get_by_text("0.3 piece out again, undone, 10.3 piece there now")).to_be_visible()
    await expect(panel.locator(".lately li").nth(1)).to_contain_text("undone")
    assert await kitchen.one.stock(RICE) == 10.3
    await panel.get_by_role("button", name="Undo in 10.3 piece").click()
    await expect(panel).to_contain_text("0 piece")
    assert await kitchen.one.stock(RICE) == 0


async def test_a_code_that_is_not_known_becomes_a_product(kitchen: PantrySystem, cook: Visitor) -> None:
    page = await cook.open()
    await scan(page, OATS)
    panel = product(page, "New product")
    await panel.get_by_label("Name").fill("Oats")
    await panel.get_by_label("Unit").fill("kg")
    await panel.get_by_label("Low from this stock down").fill("0.5")
    await page.keyboard.press("Enter")
    await expect(product(page, "Oats")).to_contain_text("low at 0.5 kg")
    await expect(page.locator(f'tr[data-key="{OATS}"]')).to_contain_text("0 kg")
    assert (await kitchen.one.get(f"/products/{OATS}"))["name"] == "Oats"
    await kitchen.one.ask("DELETE", f"/api/v1/products/{OATS}")
    await expect(page.locator(f'tr[data-key="{OATS}"]')).to_have_count(0)
    await product(page, "Oats").get_by_role("button", name="Keep it again").click()
    await expect(page.locator(f'tr[data-key="{OATS}"]')).to_be_visible()


async def test_what_another_client_does_is_there_at_once_and_stands_still_under_the_pointer(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    page = await cook.open(f"/?product={FLOUR}")
    await expect(product(page, "Flour").get_by_text("10.3 kg", exact=True)).to_be_visible()
    await stocked(kitchen.one, BEANS, "Beans", 3)
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("3 piece")
    await kitchen.one.moved("in", 1, FLOUR)
    await expect(product(page, "Flour").get_by_text("11.3 kg", exact=True)).to_be_visible()
    await expect(product(page, "Flour").locator(".lately li").first).to_contain_text("in 1 kg")
    await kitchen.one.moved("out", 1, FLOUR)
    await page.locator(f'tr[data-key="{BEANS}"]').hover()
    keys = "rows => rows.map(row => row.dataset.key)"
    before = await page.locator("tbody tr[data-key]").evaluate_all(keys)
    await kitchen.one.moved("out", 2, BEANS)
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("low")
    await expect(page.locator(f'tr[data-key="{BEANS}"]')).to_contain_text("1 piece")
    assert await page.locator("tbody tr[data-key]").evaluate_all(keys) == before
    await page.mouse.move(0, 0)
    await expect(page.locator("tbody tr[data-key]").first).to_have_attribute("data-key", BEANS)


FILMED = """if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = () => {
  const canvas = document.createElement("canvas");
  canvas.width = 640;
  canvas.height = 480;
  const context = canvas.getContext("2d");
  const draw = () => {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, 640, 480);
    context.fillStyle = "#000";
    [...MODULES].forEach((module, place) => module === "1" && context.fillRect(120 + 4 * place, 160, 4, 160));
  };
  setInterval(draw, 20);
  return Promise.resolve(canvas.captureStream(20));
};"""
"""A camera that sees a barcode."""
DETECTOR = """globalThis.BarcodeDetector = class {
  static getSupportedFormats() { return Promise.resolve(["ean_13", "ean_8", "upc_a", "upc_e", "itf"]); }
  detect() { return Promise.resolve([{ rawValue: "CODE" }]); }
};"""


@pytest.mark.parametrize("has_own", [False, True], ids=["our decoder", "the browser's"])
async def test_the_camera_reads_codes_by_our_decoder_or_the_browsers(cook: Visitor, has_own: bool) -> None:
    await cook.context.add_init_script(FILMED.replace("MODULES", f'"{ean_13(MILK)}"'))
    if has_own:
        await cook.context.add_init_script(DETECTOR.replace("CODE", MILK))
    page = await cook.open()
    await page.get_by_role("button", name="Camera").click()
    await expect(product(page, "Milk")).to_be_visible()
    await expect(page.get_by_label("Camera picture")).to_have_count(0)


@pytest.mark.fault
async def test_a_killed_server_is_seen_and_no_booking_is_lost_or_made_twice(kitchen: PantrySystem, browser: Browser) -> None:
    await stocked(kitchen.one, PEAS, "Peas", 10)
    async with visitor(browser, kitchen.one.url) as cook:
        page = await cook.open(f"/?product={PEAS}")
        panel = product(page, "Peas")
        await expect(panel.get_by_text("10 piece", exact=True)).to_be_visible()
        await kitchen.one.kill()
        await expect(page.locator('[data-live="stale"]')).to_contain_text("stale since")
        await panel.get_by_role("button", name="Out", exact=True).click()
        await expect(page.get_by_role("region", name="Waiting changes")).to_contain_text("Peas: 1 piece out")
        await kitchen.one.start()
        await expect(page.get_by_text("Peas: 1 piece out, 9 piece there now")).to_be_visible()
        await expect(page.get_by_role("region", name="Waiting changes")).to_have_count(0)
        await kitchen.one.moved("out", 2, PEAS)
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        await expect(panel.get_by_text("7 piece", exact=True)).to_be_visible()
        await expect(panel.locator(".lately li")).to_have_count(3)
        await kitchen.one.moved("in", 5, PEAS)
        await expect(panel.get_by_text("12 piece", exact=True)).to_be_visible()
        await only_said_of_itself(cook, "ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY")


async def test_bookings_without_a_network_are_sent_in_order_and_refusals_are_listed_one_by_one(
    kitchen: PantrySystem, browser: Browser
) -> None:
    await stocked(kitchen.one, CORN, "Corn", 2)
    async with visitor(browser, kitchen.one.url) as cook:
        page = await cook.open(f"/?product={CORN}&scan=out")
        await expect(product(page, "Corn")).to_be_visible()
        await cook.context.set_offline(True)
        for _ in range(3):
            await scan(page, CORN)
        await scan(page, code(997))
        waiting = page.get_by_role("region", name="Waiting changes")
        await expect(waiting.get_by_role("listitem")).to_have_count(4)
        assert await found_by_axe(page) == []
        await waiting.get_by_role("button", name=f"Take back {code(997)}").click()
        await scan(page, code(996))
        await expect(waiting.get_by_role("listitem")).to_have_count(4)
        await cook.context.set_offline(False)
        refused = page.get_by_role("region", name="Refused changes").get_by_role("listitem")
        await expect(refused).to_have_count(2)
        await expect(refused.nth(1)).to_contain_text("Corn: 1 piece out")
        await expect(refused.nth(1)).to_contain_text("insufficient stock: available 0.000, requested 1.000")
        await expect(refused.nth(0)).to_contain_text(code(996))
        await expect(waiting).to_have_count(0)
        assert await found_by_axe(page) == []
        assert await kitchen.one.stock(CORN) == 0
        await page.reload()
        await expect(refused).to_have_count(2)
        await page.get_by_role("button", name=f"Dismiss {code(996)}").click()
        await expect(refused).to_have_count(1)
        await page.get_by_role("textbox", name="Quantity of Corn: 1 piece out").fill("5")
        await page.get_by_role("button", name="Try again Corn: 1 piece out").click()
        await expect(refused.filter(has_text="requested 5.000")).to_have_count(1)
        await page.get_by_role("button", name="Count instead of Corn: 5 piece out").click()
        await expect(refused).to_have_count(0)
        await expect(page.get_by_text("Corn: 5 piece counted, +5 piece booked")).to_be_visible()
        assert await kitchen.one.stock(CORN) == 5
        await only_said_of_itself(cook, "ERR_INTERNET_DISCONNECTED", "status of 4", "ERR_NETWORK")


@pytest.mark.fault
@pytest.mark.timeout(300)
async def test_two_phones_without_a_network_whose_browsers_are_killed_book_each_scan_once(
    kitchen: PantrySystem, tmp_path: Path
) -> None:
    await stocked(kitchen.one, NUTS, "Nuts", 15)
    phones = [tmp_path / "one", tmp_path / "two"]
    for phone in phones:
        async with killed_chromium(phone) as context:
            page = await context.new_page()
            await page.goto(f"{kitchen.one.url}/?product={NUTS}&scan=out")
            await expect(product(page, "Nuts")).to_be_visible()
            await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
            await wait_until(partial(_is_known, page, NUTS), timeout=60)
            await context.set_offline(True)
            for _ in range(10):
                await scan(page, NUTS)
            waiting = page.get_by_role("region", name="Waiting changes").get_by_role("listitem")
            await expect(waiting).to_have_count(10)
            await page.reload()
            await expect(waiting).to_have_count(10)
            await expect(product(page, "Nuts")).to_contain_text(re.compile(r"15 piece\s*\(-10 waiting\)"))
    await kitchen.one.kill()
    refusals = 0
    for phone in phones:
        async with killed_chromium(phone) as context:
            page = await context.new_page()
            answer = await page.goto(kitchen.one.url)
            if phone == phones[0]:  # its browser starts while the service is down
                assert answer is not None
                assert answer.from_service_worker
                await expect(page.get_by_role("region", name="Waiting changes").get_by_role("listitem")).to_have_count(10)
                await page.get_by_role("searchbox").fill("Nuts")  # the list shows the rows that fit
                await expect(page.locator(f'tr[data-key="{NUTS}"]')).to_contain_text(re.compile(r"15 piece\s*\(-10 waiting\)"))
                await kitchen.one.start()
            await expect(page.locator('[data-live="live"]')).to_be_visible()
            await wait_until(partial(_is_settled, page), timeout=60)
            found = page.get_by_role("region", name="Refused changes").get_by_role("listitem")
            assert all("insufficient stock" in text for text in await found.all_inner_texts())
            refusals += await found.count()
    assert (await kitchen.one.stock(NUTS), refusals) == (0, 5)
    movements = await kitchen.one.get(f"/products/{NUTS}/movements?limit=100")
    assert [movement["type"] for movement in movements].count("out") == 15


async def _stored(page: Page, store: str) -> Any:
    """Return what a store of the browser's database has."""
    return await page.evaluate(
        """(store) => new Promise((done) => {
          const opened = indexedDB.open("pantry");
          opened.onsuccess = () => {
            const all = opened.result.transaction(store).objectStore(store).getAll();
            all.onsuccess = () => { opened.result.close(); done(all.result); };
          };
        })""",
        store,
    )


async def _is_settled(page: Page) -> bool:
    """Whether no change of the browser's database waits."""
    return all(change["refusal"] is not None for change in await _stored(page, "changes"))


async def _is_known(page: Page, ean13: str) -> bool:
    """Whether the browser has kept a product."""
    return any(product["ean13"] == ean13 for kept in await _stored(page, "known") for product in kept.get("products", []))


@pytest.mark.parametrize(
    ("typed", "stands_for"),
    [
        ("96385074", "0000096385074"),
        ("]E496385074", "0000096385074"),
        ("04252614", "0042100005264"),
        ("]E04006381333931", "4006381333931"),
        ("04006381333931", "4006381333931"),
        ("036000291452", "0036000291452"),
    ],
    ids=["EAN-8", "EAN-8 with an AIM identifier", "UPC-E", "EAN-13 with an AIM identifier", "GTIN-14", "UPC-A"],
)
async def test_short_codes_and_identifiers_of_scanners_are_understood(cook: Visitor, typed: str, stands_for: str) -> None:
    page = await cook.open()
    await expect(page.get_by_text("Milk")).to_be_visible()
    await press(page, keys(typed, 8), "Enter")
    await expect(page).to_have_url(re.compile(f"product={stands_for}"))
    await expect(page.get_by_role("alert").get_by_text("is not a barcode")).to_have_count(0)


def keys(code: str, gap: float, *, french: bool = False) -> list[dict[str, Any]]:
    """The keys of a scanner that types a code, with the times between them in milliseconds."""
    row = {digit: (character if french else digit) for digit, character in zip("1234567890", "&é\"'(-è_çà", strict=True)}
    places = {"]": "BracketRight"}
    return [
        {
            "key": row.get(character, "$" if french and character == "]" else character),
            "code": places.get(character, f"Digit{character}" if character.isdigit() else f"Key{character.upper()}"),
            "at": number * gap,
        }
        for number, character in enumerate(code)
    ]


async def press(page: Page, pressed: list[dict[str, Any]], end: str) -> None:
    """Press keys with their recorded times, then the last key 5 ms after them."""
    last = {"key": end, "code": end, "at": pressed[-1]["at"] + 5}
    await page.evaluate(
        """(pressed) => {
          document.activeElement.blur();
          const begin = performance.now() + 10_000 * Math.random();
          for (const { key, code, at } of pressed) {
            const event = new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true });
            Object.defineProperty(event, "timeStamp", { value: begin + at });
            document.body.dispatchEvent(event);
          }
        }""",
        [*pressed, last],
    )


@pytest.mark.parametrize(
    ("pressed", "end", "stands_for"),
    [
        (keys("96385074", 8), "Enter", "0000096385074"),
        (keys("96385074", 8), "Tab", "0000096385074"),
        (keys(FLOUR, 12, french=True), "Enter", FLOUR),
        (keys(f"]E0{FLOUR}", 12, french=True), "Enter", FLOUR),
        (keys(f"]d2010{FLOUR}1726013110LOT7", 6), "Enter", FLOUR),
        (keys(FLOUR, 220), "Enter", FLOUR),
        (keys("96385074", 150), "Enter", None),
        (keys(FLOUR, 220), "Tab", None),
    ],
    ids=[
        "EAN-8",
        "ends with Tab",
        "French keyboard",
        "French with AIM",
        "DataMatrix",
        "slow radio",
        "a person",
        "a person's Tab",
    ],
)
async def test_traces_of_scanners_are_scans_and_typing_is_not(
    cook: Visitor, pressed: list[dict[str, Any]], end: str, stands_for: str | None
) -> None:
    page = await cook.open()
    await expect(page.get_by_text("Milk")).to_be_visible()
    await press(page, pressed, end)
    if stands_for is None:
        await press(page, keys(MILK, 8), "Enter")
        stands_for = MILK
    await expect(page).to_have_url(re.compile(f"product={stands_for}"))
    await expect(page.get_by_role("region", name="Problems")).to_have_count(0)


async def test_a_pack_is_asked_for_once_and_books_its_factor_and_another_code_names_the_product(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    await stocked(kitchen.one, EGGS, "Eggs", 4)
    first = f"1{EGGS[:12]}"
    case = f"{first}{gtin.check_digit(first)}"
    page = await cook.open("/?scan=in")
    await expect(page.get_by_text("Milk")).to_be_visible()
    await scan(page, case)
    panel = product(page, "Eggs")
    await expect(panel.get_by_text("is a pack of it. How much is in it?")).to_be_visible()
    await panel.get_by_label("It stands for (piece)").fill("6")
    await panel.get_by_role("button", name="Add the code").click()
    await expect(panel.get_by_role("button", name=f"Remove code {case}")).to_be_visible()
    assert await kitchen.one.stock(EGGS) == 4
    await scan(page, case)
    await expect(panel.get_by_text("10 piece", exact=True)).to_be_visible()
    assert await found_by_axe(page) == []
    await scan(page, code(990))
    await page.get_by_text("It is another code of a product").click()
    await page.get_by_label("Product", exact=True).select_option(label="Eggs")
    await page.get_by_role("button", name="Assign the code").click()
    await expect(panel).to_be_visible()
    await scan(page, code(990))
    await expect(panel.get_by_text("11 piece", exact=True)).to_be_visible()
    assert (await kitchen.one.ask("DELETE", f"/api/v1/codes/{case}")).status == 204
    await panel.get_by_text("Codes").click()
    await expect(panel.get_by_text(code(990))).to_be_visible()
    await expect(panel.get_by_role("button", name=f"Remove code {case}")).to_have_count(0)
    await page.get_by_role("button", name="New", exact=True).click()
    await expect(product(page, "New product").locator("code")).to_contain_text(re.compile("^29"))


async def test_the_page_can_be_installed_and_its_manifest_is_permitted(cook: Visitor) -> None:
    page = await cook.open()
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    session = await cook.context.new_cdp_session(page)
    manifest = await session.send("Page.getAppManifest")
    assert (manifest["errors"], '"short_name":"Pantry"' in manifest["data"]) == ([], True)
    problems = await session.send("Page.getInstallabilityErrors")
    assert [each for each in problems["installabilityErrors"] if each["errorId"] != "in-incognito"] == []


async def test_a_new_code_that_comes_in_is_created_and_booked_and_a_half_filled_form_is_kept(
    kitchen: PantrySystem, cook: Visitor
) -> None:
    page = await cook.open("/?scan=in")
    await expect(page.get_by_text("Milk")).to_be_visible()
    await scan(page, DILL)
    panel = product(page, "New product")
    await panel.get_by_label("Name").fill("Dill")
    await scan(page, FLOUR)
    await expect(product(page, "Flour")).to_be_visible()
    await scan(page, DILL)
    await expect(panel.get_by_label("Name")).to_have_value("Dill")
    await panel.get_by_label("Unit").fill("pot")
    await panel.get_by_role("button", name="Create").click()
    await expect(product(page, "Dill").get_by_text("1 pot", exact=True)).to_be_visible()
    assert await kitchen.one.stock(DILL) == 1
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(product(page, "Dill").get_by_text("0 pot", exact=True)).to_be_visible()


async def test_the_page_asks_for_the_token_and_goes_on_with_it(browser: Browser, tmp_path: Any) -> None:
    async with (
        pantry_system(tmp_path, PANTRY_AUTH_TOKEN="a-token-of-some-length") as system,
        visitor(browser, system.one.url) as cook,
    ):
        page = await cook.context.new_page()
        await page.goto(system.one.url)
        await page.get_by_label("Token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").get_by_text("token")).to_be_visible()
        assert await found_by_axe(page) == []
        await page.get_by_label("Token").fill("a-token-of-some-length")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("There are no products yet")).to_be_visible()
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        await only_said_of_itself(cook, "401")
