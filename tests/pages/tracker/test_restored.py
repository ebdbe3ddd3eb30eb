"""A page that stays open while the tracker's log is restored from a backup shows the restored tasks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.tracker.system import tracker_system
from tests.support.web.browser import visitor

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.real]

REPO = "https://example.com/owner/shop"


@pytest.mark.long
async def test_an_open_page_shows_the_restored_tasks(browser: Browser, tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system, visitor(browser, system.url) as user:
        nats, backup = tmp_path / "nats", tmp_path / "backup"
        worker = await system.start_worker(1)
        await system.register(REPO)
        assert await worker.stop() == 0
        [first] = await system.post("/api/repos/analyze", {"repo_url": REPO})
        await system.nats.stop()
        shutil.copytree(nats, backup)
        await system.nats.start()
        await system.ready()
        await system.post(f"/api/tasks/{first['id']}/cancel")
        [second] = await system.post("/api/repos/analyze", {"repo_url": REPO})
        page = await user.open("/tasks")
        await expect(page.locator(f'[data-key="{first["id"]}"]')).to_contain_text("failed")
        await expect(page.locator(f'[data-key="{second["id"]}"]')).to_contain_text("queued")
        await expect(page.locator('[data-live="live"]')).to_be_visible()
        log = await user.open("/log")
        events = log.get_by_role("table", name="Events")
        await expect(events).to_contain_text(f"gctd.task.{second['id']}")
        assert system.serve is not None
        await system.serve.kill()
        await system.nats.stop()
        shutil.rmtree(nats)
        shutil.copytree(backup, nats)
        system.remove_database()
        await system.nats.start()
        await system.start_serve()
        await expect(page.locator(f'[data-key="{first["id"]}"]')).to_contain_text("queued", timeout=30_000)
        await expect(page.locator(f'[data-key="{second["id"]}"]')).to_have_count(0)
        await expect(events).not_to_contain_text(f"gctd.task.{second['id']}")
        await expect(events).to_contain_text(f"gctd.task.{first['id']}")
        user.complaints.clear()  # the browser reports the lost connections
