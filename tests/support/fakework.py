"""A worker process whose work is made up: python -m tests.support.fakework, with the settings of a real one.

The repository's URL says what a scan does, in the query-like words after `#`: see `Plan`. So the paths of jobs, leases and
fences are the real ones, and a scan takes as long as a test wants.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from hashlib import sha256

from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id
from gctd.domain.project import Project
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.settings import load
from gctd.worker.main import work
from gctd.worker.work import Discovered, OnStage, WorkFailed


class FakeWork:
    """Work that takes a time and ends in a way that the environment says.

    FAKE_SECONDS: how long a scan takes; FAKE_FAILS: so many attempts fail first; FAKE_DIES_AT: the attempts, with commas
    between, in which the process kills itself; FAKE_PROJECTS: how many projects a repository has.
    """

    def __init__(self) -> None:
        self._seconds = float(os.environ.get("FAKE_SECONDS", "0"))
        self._fails = int(os.environ.get("FAKE_FAILS", "0"))
        self._dies_at = {int(text) for text in os.environ.get("FAKE_DIES_AT", "").split(",") if text}
        self._projects = int(os.environ.get("FAKE_PROJECTS", "1"))

    async def discover(self, repo: Repo) -> Discovered:
        """Projects by number."""
        del repo
        names = [".", *(f"p{number}" for number in range(1, self._projects))]
        projects = tuple(Project(name=name, module_path=f"example.com/{name}") for name in names)
        return Discovered(commit_sha="c" * 40, default_ref="main", projects=projects)

    async def scan(self, task: Task, on_stage: OnStage) -> Analysis:
        """Take the time, then fail, die or succeed."""
        await on_stage("test")
        await asyncio.sleep(self._seconds / 2)
        if task.attempt in self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(self._seconds / 2)
        if task.attempt <= self._fails:
            raise WorkFailed(f"attempt {task.attempt} fails on purpose")
        await on_stage("store")
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=task.ref,
            commit_sha="c" * 40,
            summary=Summary(average=1.0, combined=float(task.attempt), exceeded=0, total_funcs=1),
            engine="fake",
            engine_version="1",
            crap_version="v0.0.0",
            go_version="go0",
            flags=(),
            report=Blob(digest=sha256(task.id.encode()).hexdigest(), size=0),
            analyzed_at=datetime.now(UTC),
            duration_ms=int(self._seconds * 1000),
        )


if __name__ == "__main__":
    asyncio.run(work(load().settings, instead=FakeWork()))
    sys.exit(0)
