"""An open task is shown as it is, and its log names what could not be read."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Route, expect

from tests.pages.conftest import Dashboard
from tests.support.web.browser import Visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

LOG = re.compile("/log/sse")


async def test_a_log_that_is_refused_for_now_is_not_called_missing(dashboard: Dashboard, user: Visitor) -> None:
    """Neither if the first request is refused, nor if a part of the log was read before. The rest follows, each line once."""
    refusals: list[str] = []

    async def refuse(route: Route) -> None:
        refusals.append(route.request.url)
        await route.fulfill(status=503, json={"message": "the tables are away"})

    async def begin(route: Route) -> None:
        line = 'id: 5\nevent: log\ndata: {"text": "line\\n"}\n\n'
        await route.fulfill(body=f"retry: 50\n\n{line}", content_type="text/event-stream")
        await user.context.route(LOG, refuse)

    whole = await text_of(dashboard)
    for first, known in ((refuse, "The log cannot"), (begin, "The rest of the log cannot")):
        await user.context.route(LOG, first)
        page = await user.open(f"/tasks/{dashboard.done}")
        drawer = page.get_by_role("dialog")
        await expect(drawer).to_contain_text(f"{known} be read now. It is tried again.")
        assert refusals
        await expect(drawer).not_to_contain_text("No log is kept")
        await user.context.unroute(LOG)
        await expect(drawer).not_to_contain_text("It is tried again")
        await expect(drawer.get_by_role("log")).to_have_text("line\n" + whole[5:] if first is begin else whole)
        await page.close()
    user.complaints.clear()  # the browser reports the refusals


async def text_of(dashboard: Dashboard) -> str:
    """The log of the first attempt at the completed task."""
    async with dashboard.system.http.get(f"{dashboard.system.url}/api/tasks/{dashboard.done}/attempts/1/log") as answer:
        return await answer.text()


async def test_an_open_task_that_leaves_the_list_is_followed(dashboard: Dashboard, user: Visitor) -> None:
    """A task that is marked as seen is not in the list; it runs or ends all the same. A removed task is gone."""
    task = await dashboard.queued("p2")
    page = await user.open(f"/tasks/{task}")
    drawer = page.get_by_role("dialog")
    state = drawer.get_by_role("region", name="Task", exact=True)
    await expect(state).to_contain_text("queued")
    await expect(page.locator(f'tr[data-key="{task}"]')).to_be_visible()
    await dashboard.system.post(f"/api/tasks/{task}/seen")
    await expect(page.locator(f'tr[data-key="{task}"]')).to_have_count(0)
    await dashboard.system.post(f"/api/tasks/{task}/cancel")
    await expect(state).to_contain_text("failed")
    await dashboard.system.status(f"/api/tasks/{task}", "DELETE")
    await expect(drawer.get_by_role("alert")).to_contain_text(f"there is no {task}")
    await expect(state).to_have_count(0)
    user.complaints.clear()  # the browser reports the refusal
