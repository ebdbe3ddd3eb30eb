"""Codes on photos are read by the page itself: of all kinds, turned and blurred, with no file from another host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from pantry.domain.gtin import codes_of
from tests.support.pantry.system import pantry_system
from tests.support.waiting import wait_until
from tests.support.web.barcodes import CODES, POSES, Pose, picture
from tests.support.web.browser import visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

LEAST = 0.95


async def _shown(page: Page) -> dict[str, Any]:
    """The code that the page took from the last photo."""
    return dict(
        await page.evaluate(
            """() => ({
              code: new URLSearchParams(location.search).get("pack") ?? new URLSearchParams(location.search).get("product"),
              problems: document.querySelectorAll('[aria-label="Problems"] li').length,
            })"""
        )
    )


async def test_thirty_photos_of_codes_are_read(browser: Browser, tmp_path: Path) -> None:
    assert len(CODES) == 30
    async with pantry_system(tmp_path) as system, visitor(browser, system.one.url) as cook:
        page = await cook.open()
        photo = page.locator('input[type="file"]')
        read, missed, problems = 0, [], 0
        for number, (digits, modules) in enumerate(CODES):
            made = await picture(page, modules(digits), POSES[number % len(POSES)])
            before = (await _shown(page))["code"]
            await photo.set_input_files({"name": "code.png", "mimeType": "image/png", "buffer": made})

            async def is_done(before: str | None = before, problems: int = problems) -> bool:
                now = await _shown(page)
                return bool(now["code"] != before or now["problems"] > problems)

            await wait_until(is_done, timeout=60, every=0.02)
            now = await _shown(page)
            problems = now["problems"]
            if now["code"] in codes_of(digits):
                read += 1
            else:
                missed.append((digits, POSES[number % len(POSES)]))
        assert read >= LEAST * len(CODES), missed
        made = await picture(page, "0" * 95, Pose())
        await photo.set_input_files({"name": "none.png", "mimeType": "image/png", "buffer": made})
        await page.get_by_text("No barcode was found on the photo").first.wait_for()
