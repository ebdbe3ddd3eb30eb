"""A worker process whose work is made up: python -m tests.support.tracker.fake_work, with the settings of a real one.

The environment says what a scan does (`FakeWork`). So the paths of jobs, leases and fences are the real ones, and a scan takes as
long as a test wants.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from eventlog.embedded.die_with_parent import attached
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id
from gctd.domain.project import Project
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.scan.isolation.output import OnLog
from gctd.settings import Settings, load
from gctd.wiring.broker import open_broker
from gctd.worker.main import work
from gctd.worker.work import Discovered, Equipment, OnStage, WorkFailed
from terminalkit.logs import configure
from tests.support.tracker.made_up import MadeUp


class FakeWork:
    """Work that takes a time and ends in a way that the environment says.

    FAKE_SECONDS: how long a scan takes; FAKE_UNTIL: a file without which none ends; FAKE_FAILS: so many attempts fail first;
    FAKE_DIES_AT: the attempts, with commas between, in which the process kills itself; FAKE_PROJECTS: how many projects a
    repository has; FAKE_CHILD: a scan has a child process that keeps a core busy and holds 64 MiB; FAKE_ANALYSES: a directory of
    analyses by ref (`tests.support.tracker.made_up`); FAKE_LINES: so many lines go into the log of an attempt, at once, or with
    FAKE_SLOWLY over the first half of the time.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._analyses = Path(os.environ.get("FAKE_ANALYSES", "/nowhere"))
        self._seconds = float(os.environ.get("FAKE_SECONDS", "0"))
        self._until = os.environ.get("FAKE_UNTIL")
        self._fails = int(os.environ.get("FAKE_FAILS", "0"))
        self._dies_at = {int(text) for text in os.environ.get("FAKE_DIES_AT", "").split(",") if text}
        self._child = "FAKE_CHILD" in os.environ
        self._slowly = bool(os.environ.get("FAKE_SLOWLY"))
        self._lines = int(os.environ.get("FAKE_LINES", "0"))
        self._projects = int(os.environ.get("FAKE_PROJECTS", "1"))

    @property
    def equipment(self) -> Equipment:
        """Nothing real."""
        return Equipment(engines={"fake": "1"}, go_version="go0", sandbox="none")

    async def discover(self, repo: Repo) -> Discovered:
        """Projects by number; none in a repository whose URL says that it is broken."""
        if "broken" in repo.url:
            raise WorkFailed("there is no go.mod", permanent=True)
        names = [".", *(f"p{number}" for number in range(1, self._projects))]
        projects = tuple(Project(name=name, module_path=f"example.com/{name}") for name in names)
        return Discovered(commit_sha="c" * 40, default_ref="main", projects=projects)

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Take the time, then fail, die or succeed."""
        if self._child:
            async with _busy_child():
                return await self._scan(task, on_stage, on_log)
        return await self._scan(task, on_stage, on_log)

    async def _scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        await on_stage("test")
        await asyncio.gather(self._say(task, on_log), asyncio.sleep(self._seconds / 2))
        if task.attempt in self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(self._seconds / 2)
        while self._until is not None and not Path(self._until).exists():  # noqa: ASYNC110, ASYNC240 - a file sets no event
            await asyncio.sleep(0.02)
        if task.attempt <= self._fails:
            raise WorkFailed(f"attempt {task.attempt} fails on purpose")
        await on_stage("store")
        if (made_up := MadeUp.read(self._analyses, task.ref)) is not None:
            async with open_broker(self._settings, name="made-up analyses") as broker:
                return await made_up.reported(task, broker.blobs)
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=task.ref,
            commit_sha=task.commit_sha or _commit_of(task.repo_url, task.ref),
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

    async def _say(self, task: Task, on_log: OnLog) -> None:
        for number in range(self._lines):
            on_log(f"attempt {task.attempt} line {number}")
            if self._slowly:
                await asyncio.sleep(self._seconds / 2 / self._lines)


def _commit_of(repo_url: str, ref: str) -> str:
    """The commit that a ref of a local repository leads to, a branch before a tag; made up for any other repository."""
    if not repo_url.startswith("file://"):
        return "c" * 40
    for name in (f"refs/heads/{ref}", ref):
        asked = ["git", "-C", urlsplit(repo_url).path, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    raise WorkFailed(f"there is no {ref}", permanent=True)


@asynccontextmanager
async def _busy_child() -> AsyncIterator[None]:
    busy = attached([sys.executable, "-c", "kept = bytearray(64 << 20)\nwhile True: pass"])  # also where the worker is killed
    child = await asyncio.create_subprocess_exec(*busy)
    try:
        yield
    finally:
        child.kill()
        await child.wait()


if __name__ == "__main__":
    settings = load().settings
    configure(level=settings.log_level, style="json" if settings.log_format == "json" else "text")
    asyncio.run(work(settings, once="--once" in sys.argv, instead=FakeWork(settings)))
    sys.exit(0)
