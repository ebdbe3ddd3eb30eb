"""The server itself checks for updates: a push is analysed without a request, once, also with two servers and after a restart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker.go_repo import make
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def analysed(system: TrackerSystem, commit: str) -> list[Any]:
    """Wait until a commit has been analysed; all analyses of the project."""

    async def there() -> Any:
        listed = await system.get("/api/repos")
        if not listed:
            return None
        history = await system.get(f"/api/repos/{listed[0]['id']}/history")
        return history if any(one["commit_sha"] == commit for one in history) else None

    found: list[Any] = await wait_until(there, timeout=60, every=0.1)
    return found


async def rounds(system: TrackerSystem, kind: str) -> list[Any]:
    """The events of this type, in order."""
    return [event.data for event in await system.events("gctd.schedule.updates") if event.type == kind]


async def until_ended(system: TrackerSystem, number: int) -> None:
    """Wait until this number of rounds has ended."""

    async def ended() -> bool:
        return len(await rounds(system, "UpdateCheckEnded")) >= number

    await wait_until(ended, timeout=60, every=0.1)


async def test_a_push_is_analysed_once_by_two_servers_and_after_a_restart(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo")
    async with tracker_system(tmp_path, GCTD_CHECK_UPDATES_EVERY="1s") as system:
        database = {"GCTD_DATABASE_URL": f"sqlite:{tmp_path / 'second.db'}", "GCTD_PORT": "0", "GCTD_URL": system.url}
        await system.start("second", "gctd", "serve", **database)
        await system.start_worker(1)
        await system.register(repo.url)
        first = repo.commit()
        await analysed(system, first)
        assert system.serve is not None
        await system.serve.kill()
        before = len(await rounds(system, "UpdateCheckEnded"))
        await system.start_serve()
        second = repo.commit()
        history = await analysed(system, second)
        await until_ended(system, before + 3)
        commits = [one["commit_sha"] for one in history]
        assert len(set(commits)) == len(commits), "no commit is analysed twice"
        begun = await rounds(system, "UpdateCheckBegun")
        assert [one.round for one in begun] == list(range(1, len(begun) + 1))
        assert all((later.at - one.at).total_seconds() >= 1 for one, later in pairwise(begun))


async def test_without_the_setting_no_round_begins(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.get("/api/repos")
        assert await rounds(system, "UpdateCheckBegun") == []
