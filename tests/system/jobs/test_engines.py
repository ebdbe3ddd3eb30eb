"""Engines through a worker: a project's flags reach them, go-crap is run if it is installed, and missing coverage is reported."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.gocrap import install
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

FILES = {
    "go.mod": gorepo.module("example.com/mixed"),
    **gorepo.under("good", gorepo.tested("good")),
    **gorepo.under("panics", gorepo.with_test("panics", 'panic("as it must")')),
    **gorepo.under("slow", gorepo.with_test("slow", "time.Sleep(time.Hour)", "time")),
    **gorepo.under("untested", {"untested.go": "package untested\n\n// Two is 2.\nfunc Two() int { return 2 }\n"}),
    **gorepo.under("broken", {"broken.go": "package broken\n\nfunc Broken() int { return undefinedName }\n"}),
}


async def analysed(system: TrackerSystem, url: str, engine: str) -> tuple[Any, Any]:
    """The task that analyses the only project with an engine, ended, and its result, None if it failed."""
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url, "engine": engine})
    task = await system.until_task(task["id"], "completed", "failed", timeout=200)
    return task, await system.get(f"/api/tasks/{task['id']}/result") if task["status"] == "completed" else None


def only_go_and_git(directory: Path) -> str:
    """A directory for PATH that has no more than these."""
    directory.mkdir()
    for name in ("go", "git"):
        if found := shutil.which(name):
            (directory / name).symlink_to(found)
    return str(directory)


def numbers(result: Any) -> list[tuple[Any, ...]]:
    return sorted((e["file"], e["line"], e["function"], e["cyclomatic"], e["coverage"], e["crap"]) for e in result["entries"])


@pytest.mark.timeout(300)
async def test_each_engine_scores_by_the_flags_of_the_project_and_says_what_has_no_coverage(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "source", files=FILES)
    if shutil.which("go-crap") is None:
        install(tmp_path / "bin")
    path = f"{os.environ['PATH']}{os.pathsep}{tmp_path / 'bin'}"
    async with tracker_system(tmp_path) as system:
        worker = await system.start_worker(1, program=REAL_WORKER, PATH=path)
        await system.register(repo.url)
        flags = ["--exclude=^Two$", "-t", "1.5"]
        await system.post("/api/repo-config", {"url": repo.url, "test_args": "-timeout=3s", "crap_args": flags})

        _, native = await analysed(system, repo.url, "native")
        assert {entry["function"] for entry in native["entries"]} == {"Sign", "Never", "One", "Broken"}
        assert native["flags"][-2:] == ["--threshold=1.5", "--exclude=^Two$"]
        assert native["summary"]["exceeded"] == sum(entry["crap"] > 1.5 for entry in native["entries"])
        assert {one["path"].rpartition("/")[2]: one["reason"].partition(":")[0] for one in native["uncovered"]} == {
            "panics": "panicked",
            "slow": "timed out",
            "untested": "no tests",
            "broken": "build failed",
        }

        (again,) = await system.post("/api/repos/rescore", {"repo_url": repo.url, "engine": "go-crap"})
        await system.until_task(again["id"], "completed", timeout=60)
        program = await system.get(f"/api/tasks/{again['id']}/result")
        assert (program["engine"], program["flags"]) == ("go-crap", native["flags"])
        assert program["crap_version"].startswith("v")
        assert numbers(program) == [(*row[:4], row[4] or 0, row[5]) for row in numbers(native)]
        assert program["uncovered"] == native["uncovered"]
        (here,) = await system.get("/api/workers")
        assert set(here["engines"]) == {"native", "native-compat", "go-crap"}
        assert list((tmp_path / "cache" / "parsed").glob("*/sources"))
        assert not list((tmp_path / "cache").rglob(".go-crap-cover.out"))
        assert await worker.stop() == 0


async def test_a_task_for_go_crap_waits_and_says_so_if_no_worker_has_it(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "source")
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER, PATH=only_go_and_git(tmp_path / "bin"))
        await system.register(repo.url)
        (task,) = await system.post("/api/repos/analyze", {"repo_url": repo.url, "engine": "go-crap"})

        async def waiting() -> bool:
            found = await system.get(f"/api/tasks/{task['id']}")
            return (found["status"], found["reason"]) == ("queued", "no worker has the engine go-crap")

        await wait_until(waiting, timeout=30)
