"""Scans on the kitchen's page: of a scanner that types, of the camera, of packs, and of codes that are not known."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Route, expect

from pantry.domain import gtin
from tests.pages.kitchen.cooking import DILL, EGGS, OATS, SALT, code, product, scan, stocked
from tests.support.pantry.system import FLOUR, MILK, PantrySystem
from tests.support.web.barcodes import ean_13
from tests.support.web.browser import Visitor, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


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


async def test_a_scanned_text_is_one_text_and_its_end_books_no_product(kitchen: PantrySystem, cook: Visitor) -> None:
    """The code of a lot is the code of a product: only the item of GS1 counts."""
    spelt = code(971)
    short = "0000096385074"
    await stocked(kitchen.one, short, "Mints", 5)
    await stocked(kitchen.one, spelt, "Spelt", 5)
    page = await cook.open("/?scan=out")
    await expect(page.get_by_text("Mints")).to_be_visible()
    texts = ("LOT-96385074", f"https://id.gs1.org/01/0{spelt}/10/96385074", f"]C110{spelt}", "]d21096385074")
    for text in texts:
        await scan(page, text)
    problems = page.get_by_role("region", name="Problems").get_by_role("listitem")
    await expect(problems).to_contain_text([f"{text} is not a barcode" for text in reversed(texts)])
    await expect(page.get_by_role("searchbox")).to_have_value("")
    await scan(page, f"]C1010{spelt}10LOT-96385074")
    await expect(product(page, "Spelt").get_by_text("4 piece", exact=True)).to_be_visible()
    await page.get_by_role("searchbox").focus()
    await scan(page, f"]d2010{spelt}172601311096385074")
    await expect(product(page, "Spelt").get_by_text("3 piece", exact=True)).to_be_visible()
    assert (await kitchen.one.stock(short), await kitchen.one.stock(spelt)) == (5, 3)


async def test_a_quantity_with_a_comma_that_may_separate_thousands_is_not_booked(kitchen: PantrySystem, cook: Visitor) -> None:
    before = await kitchen.one.stock(MILK)
    page = await cook.open(f"/?product={MILK}")
    quantity = page.get_by_label("Quantity")
    await quantity.fill("1,000")
    await page.get_by_role("button", name="In", exact=True).click()
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("1,000 is ambiguous: write 1000 or 1.000.")
    await quantity.fill("1,5")
    await page.get_by_role("button", name="In", exact=True).click()
    await expect(page.get_by_text("Milk: 1.5 l in", exact=False).first).to_be_visible()
    assert await kitchen.one.stock(MILK) == before + 1.5


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


async def test_a_code_is_not_taken_for_a_new_one_while_the_codes_cannot_be_read(kitchen: PantrySystem, cook: Visitor) -> None:
    """It may name a product. With the next scan the codes are read."""
    case = code(996)
    await kitchen.one.ask("PUT", f"/api/v1/codes/{case}", {"product_ean13": MILK, "factor": 1})

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json={"message": "the tables are away"})

    await cook.context.route(re.compile("/api/v1/codes"), refuse)
    page = await cook.open()
    await expect(page.locator(f'tr[data-key="{MILK}"]')).to_be_visible()
    problems = page.get_by_role("region", name="Problems").get_by_role("listitem")
    await scan(page, case)
    await expect(problems).to_contain_text([f"It is not known what {case} names: the codes could not be read."])
    await expect(product(page, "New product")).to_have_count(0)
    await page.get_by_role("link", name="Stocktake").click()
    await scan(page, case)
    await expect(problems).to_contain_text([f"It is not known what {case} names"] * 2)
    await expect(page.get_by_text("names no product")).to_have_count(0)
    await cook.context.unroute(re.compile("/api/v1/codes"), refuse)
    await scan(page, case)
    await expect(page.get_by_text("Milk: one more counted")).to_be_visible()
    await page.get_by_role("link", name="Stock", exact=True).click()
    await scan(page, case)
    await expect(product(page, "Milk")).to_be_visible()
    await kitchen.one.ask("DELETE", f"/api/v1/codes/{case}")
    cook.complaints.clear()  # the browser reports the refusals


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
    await cook.begin_with(FILMED.replace("MODULES", f'"{ean_13(MILK)}"'))
    if has_own:
        await cook.begin_with(DETECTOR.replace("CODE", MILK))
    page = await cook.open()
    await page.get_by_role("button", name="Camera").click()
    await expect(product(page, "Milk")).to_be_visible()
    await expect(page.get_by_label("Camera picture")).to_have_count(0)


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
