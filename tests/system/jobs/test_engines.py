"""Engines through a worker: a project's flags reach them, and missing coverage is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

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


def numbers(result: Any) -> list[tuple[Any, ...]]:
    return sorted((e["file"], e["line"], e["function"], e["cyclomatic"], e["coverage"], e["crap"]) for e in result["entries"])


@pytest.mark.timeout(300)
async def test_each_engine_scores_by_the_flags_of_the_project_and_names_packages_without_coverage(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "source", files=FILES)
    async with tracker_system(tmp_path) as system:
        worker = await system.start_worker(1, program=REAL_WORKER)
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

        (again,) = await system.post("/api/repos/rescore", {"repo_url": repo.url, "engine": "native-compat"})
        await system.until_task(again["id"], "completed", timeout=60)
        compat = await system.get(f"/api/tasks/{again['id']}/result")
        assert (compat["engine"], compat["flags"]) == ("native-compat", native["flags"])
        assert compat["crap_version"].startswith("v")
        assert numbers(compat) == [(*row[:4], row[4] or 0, row[5]) for row in numbers(native)]
        assert compat["uncovered"] == native["uncovered"]
        (here,) = await system.get("/api/workers")
        assert set(here["engines"]) == {"native", "native-compat"}
        assert list((tmp_path / "cache" / "parsed").glob("*/sources"))
        assert await worker.stop() == 0
