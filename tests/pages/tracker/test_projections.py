"""The screen of projections in a browser: an aggregate that is parked, a copy of the tables that is being made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from gctd.readmodel import MODEL
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.rebuild import confirm, fill
from projections.store import CopyPart
from projections.stores.databases import copies_at
from tests.support.log.nats import plain_client
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.web.browser import Profiles, accessible, found_by_axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def parked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A tracker with an unreadable commit in its log, and others behind it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.admin.scrub._FIRST_AFTER", 0.5)
        async with made(tmp_path_factory) as system:
            yield system


@asynccontextmanager
async def made(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path_factory.mktemp("projections")) as system:
        async with plain_client(system.nats.url) as client:
            await client.jetstream().publish("gctd.task.task-1", b"this is no commit")
        await system.post("/api/repos", {"repo_url": "https://example.com/owner/shop"})
        yield system


async def test_a_parked_aggregate_is_shown_with_why_and_leads_to_its_event(parked: TrackerSystem, profiles: Profiles) -> None:
    async with profiles.visitor(parked.url, reduced_motion="reduce") as user:
        page = await user.open("/projections")
        found = page.get_by_role("region", name="Parked")
        await expect(found).to_contain_text("gctd.task.task-1 in tasks: unreadable")
        await expect(page.get_by_role("table", name="Projections").locator("tr", has_text="tasks")).to_contain_text("1 commit")
        await accessible(page)
        await found.get_by_role("link", name="gctd.task.task-1").first.click()
        await expect(page.get_by_role("dialog")).to_contain_text("this is no commit")
        await expect(page.get_by_role("dialog")).to_contain_text("How it was after 1 cannot be read")
        assert await found_by_axe(page) == []
    status, answer = await parked.status("/api/log/state?aggregate=gctd.task.task-1")
    assert (status, "cannot be read" in answer["detail"]) == (409, True)


async def test_the_findings_of_the_last_pass_over_the_log_are_shown(parked: TrackerSystem, profiles: Profiles) -> None:
    """With the time of the pass, and the command that shows a remedy."""
    async with profiles.visitor(parked.url, reduced_motion="reduce") as user:
        page = await user.open("/projections")
        found = page.get_by_role("region", name="Records of the log")
        await expect(found).to_contain_text("1 record damaged", timeout=30_000)
        await expect(found).to_contain_text("sequence 1, gctd.task.task-1: it was stored without a guard")
        await expect(found).to_contain_text("Last complete pass")
        await expect(found).to_contain_text("projections repair")
        await accessible(page)


async def test_a_rebuild_is_followed_until_its_copy_is_ready(parked: TrackerSystem, profiles: Profiles) -> None:
    async with profiles.visitor(parked.url, reduced_motion="reduce") as user, parked.log() as log:
        page = await user.open("/projections")
        copies = page.get_by_role("region", name="Copies")
        await expect(copies).to_contain_text("There are no copies")
        async with copies_at(f"sqlite:{parked.database}").store(CopyPart.NEW) as copy:
            await Migrations(copy, MODEL).up()
            await Projector(log, copy, MODEL).run(until=1)
            bar = copies.get_by_role("progressbar", name="The copy being rebuilt has reached")
            await expect(copies).to_contain_text("not ready yet")
            await expect(bar).to_have_attribute("aria-valuenow", str(100 // (await log.head()).last))
            await accessible(page)
            await fill(copy, log, MODEL)
            await expect(bar).to_have_attribute("aria-valuenow", "100")
            await confirm(copy, log, MODEL)
        await expect(copies.get_by_text("ready", exact=True)).to_be_visible()
