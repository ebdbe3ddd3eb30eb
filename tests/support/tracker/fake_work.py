"""A worker process whose work is made up: python -m tests.support.tracker.fake_work, with the settings of a real one.

The environment sets the behaviour of a scan (`FakeWork`). The paths of jobs, leases and fences are the real ones, and a scan
takes the time that a test sets.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from eventlog.embedded.die_with_parent import attached_command
from eventlog.support import span_export
from gctd.broker.broker import open_broker
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.events import Progress
from gctd.domain.task.state import Task
from gctd.engines.registry import NAMES
from gctd.scan.isolation.output import OnLog
from gctd.settings import SETTINGS, Settings
from gctd.worker import process
from gctd.worker.main import work
from gctd.worker.work import Discovered, Equipment, OnStage, ResolvedRef, WorkFailed
from terminalkit.logs import configure_logs
from tests.support.tracker.made_up import MadeUp


class FakeWork:
    """Work that takes a time and ends in a way that the environment says.

    FAKE_SECONDS is the time of a scan, FAKE_SLOW the time of one of a repository with "slow" in its URL. FAKE_UNTIL is a file
    without which no scan ends. FAKE_FAILS attempts fail first. In the attempts of FAKE_DIES_AT, with commas between, the
    process kills itself. FAKE_ENGINES are its engines, with commas between, and FAKE_GO is its version of Go. A repository
    has FAKE_PROJECTS projects. With FAKE_CHILD a scan has a child process that keeps a core busy and holds 64 MiB.
    FAKE_ANALYSES is a directory of analyses by ref (`tests.support.tracker.made_up`). FAKE_LINES lines go into the log of an
    attempt, at once, or with FAKE_SLOWLY over the first half of the time. With FAKE_PROGRESS 12 of 31 packages are tested.
    Projects of a repository whose URL ends in `go1.N` ask for that version. With FAKE_RESOLVES it reports the commit of a
    branch first. FAKE_FREE is a file with the free bytes of the disks. An engine or a version that the worker does not have
    fails the scan.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._analyses = Path(os.environ.get("FAKE_ANALYSES", "/nowhere"))
        self._seconds = float(os.environ.get("FAKE_SECONDS", "0"))
        self._slow = float(os.environ.get("FAKE_SLOW", "0"))
        self._until = os.environ.get("FAKE_UNTIL")
        self._fails = int(os.environ.get("FAKE_FAILS", "0"))
        self._dies_at = {int(text) for text in os.environ.get("FAKE_DIES_AT", "").split(",") if text}
        self._child = "FAKE_CHILD" in os.environ
        self._progress = bool(os.environ.get("FAKE_PROGRESS"))
        self._slowly = bool(os.environ.get("FAKE_SLOWLY"))
        self._lines = int(os.environ.get("FAKE_LINES", "0"))
        self._projects = int(os.environ.get("FAKE_PROJECTS", "1"))

    @property
    def equipment(self) -> Equipment:
        """Nothing real."""
        engines = os.environ.get("FAKE_ENGINES", ",".join(("fake", *NAMES))).split(",")
        go_version = os.environ.get("FAKE_GO", "go0")
        return Equipment(engines=dict.fromkeys(engines, "1"), go_version=go_version, sandbox="none", platform="linux/amd64")

    async def discover(self, repo: Repo) -> Discovered:
        """Return projects by number. A repository with "broken" in its URL has none."""
        if "broken" in repo.url:
            raise WorkFailed("there is no go.mod", permanent=True)
        names = [".", *(f"p{number}" for number in range(1, self._projects))]
        asked = re.search(r"go(1\.[0-9.]+)$", repo.url)
        go = asked[1] if asked else ""
        projects = tuple(Project(name=name, module_path=f"example.com/{name}", go_version=go) for name in names)
        return Discovered(commit_sha="c" * 40, default_ref="main", projects=projects)

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Take the time, then fail, die or succeed."""
        if self._child:
            async with _busy_child():
                return await self._scan(task, on_stage, on_log)
        return await self._scan(task, on_stage, on_log)

    async def _scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        if lacks := self.equipment.capabilities.missing(task.needs):
            raise WorkFailed(f"this worker does not have {lacks}", permanent=True)
        if "FAKE_RESOLVES" in os.environ and task.commit is None:
            await on_stage("clone", ResolvedRef(ref=task.ref, commit_sha=_commit_of(task.repo_url, task.ref)))
        await on_stage("test")
        seconds = self._slow if "slow" in task.repo_url and task.rescores is None else self._seconds
        if self._progress:
            await on_stage("test", Progress(done=12, total=31, running=("x/y",)))
        await asyncio.gather(self._say(task, on_log), asyncio.sleep(seconds / 2))
        if task.attempt in self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(seconds / 2)
        while self._until is not None and not Path(self._until).exists():  # noqa: ASYNC110, ASYNC240 - a file sets no event
            await asyncio.sleep(0.02)
        if task.attempt <= self._fails:
            raise WorkFailed(f"attempt {task.attempt} fails on purpose")
        await on_stage("store")
        if (made_up := MadeUp.read(self._analyses, task.commit_sha or task.ref)) is not None:
            if made_up.projects and task.project not in made_up.projects:
                raise WorkFailed(f"there is no project {task.project!r} at {made_up.commit_sha[:12]}", permanent=True)
            async with open_broker(self._settings, name="made-up analyses") as broker:
                return await made_up.reported(task, broker.blobs)
        summary = Summary(average=1.0, combined=float(task.attempt), exceeded=0, total_funcs=1)
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=task.ref,
            commit_sha=task.commit or _commit_of(task.repo_url, task.ref),
            summary=summary,
            measured=summary,
            states={"measured": 1},
            store_source="never",
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
    """Return the commit of a ref in a local repository, a branch before a tag. It is made up for any other repository."""
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
    busy = attached_command(
        [sys.executable, "-c", "kept = bytearray(64 << 20)\nwhile True: pass"]
    )  # also where the worker is killed
    child = await asyncio.create_subprocess_exec(*busy)
    try:
        yield
    finally:
        child.kill()
        await child.wait()


if __name__ == "__main__":
    settings = SETTINGS.load().values
    configure_logs(level=settings.log_level, style="json" if settings.log_format == "json" else "text")
    if "FAKE_FREE" in os.environ:
        setattr(process, "free_bytes", lambda _: int(Path(os.environ["FAKE_FREE"]).read_text()))  # noqa: B010 - of another module
    export_rest = span_export.start("gctd-worker")
    asyncio.run(work(settings, once="--once" in sys.argv, instead=FakeWork(settings)))
    export_rest()
    sys.exit(0)
