"""An upload has the profiles of the uploads before it, whatever the clocks of the servers that took them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import attrs
import pytest

from eventlog import Context
from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.broker.blobs import MemoryBlobs
from gctd.control.requests import tracker
from gctd.control.requests.policy import Policy
from gctd.control.requests.uploads import Uploads
from gctd.domain.analysis import Blob, analysis_id
from gctd.domain.registry import REGISTRY
from gctd.domain.remote.urls import repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import FinishDiscovery, RegisterRepo, StartDiscovery
from gctd.domain.repo.project import Project
from gctd.domain.task import TASK
from gctd.domain.upload import UploadedProfile
from gctd.readmodel.views import RepoView, TaskView

AT = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://example.com/owner/name"
REPO_ID = repo_id(URL)
COMMIT = "c" * 40
PROFILE = "mode: set\nexample.com/name/a.go:3.24,5.2 1 {count}\n"


@attrs.frozen
class Tables:
    """The tables of a log with one repository."""

    log: MemoryLog

    async def repos_by_url(self, *, after: tuple[str, str], limit: int) -> Sequence[RepoView]:
        del limit
        last = await self.log.last(REPO.aggregate(REPO_ID))
        assert last is not None
        return [] if after[0] else [RepoView.of_state(last.state, last.sequence)]

    async def tasks_of_commit(self, _repo: str, _project: str, _commit: str) -> Sequence[TaskView]:
        commits = [commits async for commits in self._all()]
        return [TaskView.of_state(one.state, one.sequence) for one in commits if one.aggregate.category == TASK.category]

    async def analyses_at(self, _analysis: str, _commit: str) -> Sequence[Any]:
        return []

    async def _all(self) -> Any:
        for sequence in range(1, (await self.log.head()).last + 1):
            yield await self.log.at(sequence)


async def registered() -> MemoryLog:
    log = MemoryLog(REGISTRY)
    project = Project(name=".", module_path="example.com/name")
    found = FinishDiscovery(attempt=1, session="s", commit_sha=COMMIT, default_ref="main", projects=(project,), at=AT)
    for command in (
        RegisterRepo(id=REPO_ID, url=URL, clone_url=URL, max_attempts=3, at=AT),
        StartDiscovery(worker="w", session="s", at=AT),
        found,
    ):
        await Commands(log).execute(REPO, REPO_ID, command)
    return log


async def nothing() -> None:
    """The tables have all commits."""


async def test_an_upload_to_a_server_whose_clock_is_behind_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    log = await registered()
    tracking = tracker.Tracker(log, Commands(log), Policy())
    uploads = Uploads(log, cast("Any", Tables(log)), MemoryBlobs(), tracking, caught_up=nothing)
    clocks = {"linux": timedelta(seconds=5), "windows": timedelta(0), "darwin": timedelta(seconds=1)}
    made = []
    for count, (flag, ahead) in enumerate(clocks.items()):
        monkeypatch.setattr(tracker, "_now", lambda ahead=ahead: AT + ahead)
        upload = UploadedProfile(flag=flag, profile=Blob(digest="", size=0), go_version="go1.26.0", platform="linux/amd64")
        made.append(
            await uploads.upload(analysis_id(REPO_ID, "."), COMMIT, PROFILE.format(count=count), upload, context=Context())
        )
    assert [one.flag for one in made[-1].task.uploads] == ["darwin", "linux", "windows"]
