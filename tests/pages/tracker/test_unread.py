"""A page that could not read something claims nothing about it."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Route, expect

from tests.pages.conftest import Dashboard
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.network]


async def test_the_overview_claims_nothing_about_tasks_that_cannot_be_read(user: Visitor) -> None:
    """Neither that all is well, nor that no task runs."""

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json={"message": "the tables are away"})

    tasks = re.compile(r"/api/tasks\?")
    await user.context.route(tasks, refuse)
    page = await user.open("/")
    await expect(page.get_by_role("alert")).to_contain_text("the tables are away")
    attention = page.get_by_role("region", name="Needs attention")
    await expect(attention).to_contain_text("Not known")
    await expect(page.get_by_role("region", name="Last hour")).to_contain_text("Not known")
    await expect(page.get_by_role("link", name="Running")).to_contain_text("\u2013")
    await user.context.unroute(tasks)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("link", name="Running")).to_contain_text("none waiting")
    await expect(attention).to_contain_text("broken")
    user.complaints.clear()  # the browser reports the refusals


async def test_a_task_that_was_cancelled_before_an_attempt_waits_for_no_worker(dashboard: Dashboard, user: Visitor) -> None:
    page = await user.open(f"/tasks/{dashboard.failed}")
    await expect(page.get_by_text("No worker began it.")).to_be_visible()
