"""A phone scans the code that the page shows: it is signed in, once, and its session is seen and ended on the page."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import timedelta

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Request, expect

from httpkit.routes import Scope
from pantry.readmodel.model import ACCESS
from servicekit.access.tokens import TokenOffice
from tests.support.pantry.system import FLOUR, PantrySystem, log_of, pantry_system
from tests.support.web.browser import Profiles, Visitor, fits, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

PHONE = {"viewport": {"width": 390, "height": 800}}
READ = """async (png) => {
  const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (each) => each.charCodeAt(0))]));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const picture = context.getImageData(0, 0, canvas.width, canvas.height);
  const worker = new Worker("./decoder.js", { type: "module" });
  const found = await new Promise((answer, fail) => {
    worker.onmessage = ({ data }) => answer(data);
    worker.onerror = ({ message }) => fail(message);
    worker.postMessage({ id: 1, picture, thorough: true });
  });
  worker.terminate();
  return found.codes;
}"""
"""Read a picture with the decoder of the page."""


@attrs.frozen
class Home:
    """A pantry that wants tokens, and a token of somebody who may do everything."""

    system: PantrySystem
    token: str

    @property
    def url(self) -> str:
        return self.system.one.url


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Home]:
    """A pantry with flour."""
    async with pantry_system(tmp_path_factory.mktemp("devices"), PANTRY_SERVER_REQUIRETOKENS="true") as system:
        async with log_of(system.nats) as log:
            office = TokenOffice(ACCESS, log, actor="operator:test")
            token = (await office.issue("anna", Scope.ADMIN, timedelta(days=30))).text
        made = await system.one.post(f"/products/{FLOUR}", {"name": "Flour", "unit": "kg"}, Authorization=f"Bearer {token}")
        assert made.status == 201
        yield Home(system, token)


async def signed_in(cook: Visitor, home: Home) -> Page:
    """The page of devices, of somebody who has typed the token."""
    page = await cook.context.new_page()
    await page.goto(f"{home.url}/?view=devices")
    await page.get_by_label("Token", exact=True).fill(home.token)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Show code")).to_be_visible()
    return page


async def scanned(page: Page, code: Locator) -> str:
    """The text of a code on the screen, as a camera reads it."""
    png = base64.b64encode(await code.screenshot()).decode()
    [link] = await page.evaluate(READ, png)
    return str(link)


async def only_refusals(*visitors: Visitor) -> None:
    """Close the pages of visitors, and check that the browser only reported the refusals and ends that the test caused."""
    for each in visitors:
        for page in each.context.pages:
            await page.close()  # a page that is signed out asks for events again and again
        caused = ("401", "403", "ERR_INCOMPLETE")  # the last is an event stream that ended with its session
        assert [text for text in each.complaints if not any(word in text for word in caused)] == []
        each.complaints.clear()


async def test_a_phone_that_scans_the_code_is_signed_in_books_and_is_signed_out_by_the_page(
    home: Home, profiles: Profiles
) -> None:
    async with profiles.visitor(home.url) as cook, profiles.visitor(home.url, **PHONE) as anna, profiles.visitor(home.url) as eve:
        page = await signed_in(cook, home)
        await page.get_by_label("Name", exact=True).fill("phone of Anna")
        await page.get_by_role("button", name="Show code").click()
        code = page.get_by_role("img", name="QR code")
        await expect(page.get_by_role("alert").get_by_text("a phone cannot reach 127.0.0.1")).to_be_visible()
        assert await found_by_axe(page) == []
        link = await scanned(page, code)
        secret = link.partition("#pair=")[2]
        assert (link.partition("#")[0], len(secret)) == (f"{home.url}/", 69)

        asked: list[Request] = []
        phone = await anna.context.new_page()
        phone.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - Playwright marks it
        await phone.goto(link)
        await expect(phone.get_by_text("This device is signed in: phone of Anna")).to_be_visible()
        await expect(phone.locator('[data-live="live"]')).to_be_visible()
        assert await phone.evaluate("[location.hash, history.length, document.referrer]") == ["", 2, ""]
        assert [request.url for request in asked if secret in f"{request.url.partition('#')[0]} {request.headers}"] == []
        [cookie] = await anna.context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("pantry_session", True, "Strict")
        await phone.get_by_text("Flour").click()
        await phone.get_by_role("button", name="In", exact=True).click()
        await expect(phone.get_by_role("status").get_by_text("1 kg there now")).to_be_visible()

        await expect(page.get_by_role("status").get_by_text("The device is signed in.")).to_be_visible()
        await expect(code).to_have_count(0)
        stranger = await eve.context.new_page()
        await stranger.goto(link)
        await expect(stranger.get_by_role("alert").get_by_text("was used already or has expired")).to_be_visible()
        await expect(stranger.get_by_label("Token", exact=True)).to_be_visible()
        assert not await eve.context.cookies()

        row = page.get_by_role("listitem").filter(has_text="phone of Anna")
        await expect(row).to_contain_text("may book and change")
        await row.get_by_role("button", name="End phone of Anna").click()
        await page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
        await expect(row).to_have_count(0)
        await phone.reload()
        await expect(phone.get_by_label("Token", exact=True)).to_be_visible()
        await only_refusals(cook, anna, eve)


async def test_a_device_that_is_signed_in_keeps_its_session_and_leaves_the_code(home: Home, profiles: Profiles) -> None:
    async with profiles.visitor(home.url) as cook, profiles.visitor(home.url, **PHONE) as other:
        page = await signed_in(cook, home)
        await page.get_by_label("May").select_option(label="only look")
        await page.get_by_role("button", name="Show code").click()
        link = await scanned(page, page.get_by_role("img", name="QR code"))
        await page.goto(link)  # the page is open: only the part behind the # differs
        await expect(page.get_by_text("This device is signed in already. The code was not used.")).to_be_visible()
        phone = await other.context.new_page()
        await phone.goto(link)
        await expect(phone.get_by_text("This device is signed in: phone")).to_be_visible()
        await phone.goto(f"{home.url}/?view=devices")
        await expect(phone.get_by_label("May").get_by_role("option")).to_have_text(["only look"])
        await expect(phone.get_by_role("listitem").filter(has_text="this device")).to_contain_text("may only look")
        await fits(phone, 390)
        assert await found_by_axe(phone) == []
        await only_refusals(cook, other)
