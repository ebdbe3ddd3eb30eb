"""The main job with real parts: a repository is registered and analysed through the command line, by a worker with git and go."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import warm
from tests.support.tracker.go_repo import make
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

ADD = {
    "go.mod": "module example.com/sums\n\ngo 1.21\n",
    "sums.go": """package sums

func Add(a, b int) int { return a + b }

func Risky(n int) int {
	if n > 0 && n < 10 {
		return 1
	}
	switch n {
	case 11, 12:
		return 2
	case 13:
		return 3
	}
	return 0
}
""",
    "sums_test.go": """package sums

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal("wrong")
	}
}
""",
    "broken/broken.go": "package broken\n\nfunc Broken() int { return 1 }\n",
    "broken/broken_test.go": 'package broken\n\nimport "testing"\n\nfunc TestBroken(t *testing.T) { undefined() }\n',
    "tool/go.mod": "module example.com/sums/tool\n\ngo 1.21\n",
    "tool/tool.go": "package tool\n\nfunc Run() {}\n",
    "LICENSE": "// SPDX-License-Identifier: BSD-3-Clause\n",
}


async def gctd(system: TrackerSystem, *arguments: str) -> tuple[int, str, str]:
    """Run the command line as a user would: exit code, standard output, standard error."""
    done = await asyncio.to_thread(warm.run, "gctd", *arguments, environment=system.environment, seconds=110)
    return done.returncode, done.stdout, done.stderr


async def test_from_an_address_to_scores(tmp_path: Path) -> None:
    repo = make(tmp_path / "source", files=ADD)
    async with tracker_system(tmp_path) as system:
        worker = await system.start_worker(1, program=REAL_WORKER)
        code, output, errors = await gctd(system, "repo", "add", repo.url, "--json")
        assert code == 0, errors
        added = json.loads(output)
        assert added["Status"] == "ready"
        assert [project["name"] for project in added["Profile"]["projects"]] == [".", "tool"]
        assert added["CommitSHA"] == repo.head()

        code, output, errors = await gctd(system, "repo", "analyze", repo.url, "--project", ".", "--json")
        assert code == 0, errors
        (task,) = await system.get("/api/tasks")
        assert task["status"] == "completed", task
        result = await system.get(f"/api/tasks/{task['id']}/result")
        check_result(result, repo.head())
        assert await system.get(f"/api/repos/{result['id']}") == result
        (latest,) = await system.get("/api/repos")
        assert (latest["id"], latest["summary"]) == (result["id"], result["summary"])
        assert result["profile_path"] == f"coverage/{result['repo_id']}/./{repo.head()}.out"
        profile = await system.get(f"/api/tasks/{task['id']}/profile")
        assert profile.startswith("mode: set\nexample.com/sums/sums.go:")
        stages = [e.data.stage for e in await system.events() if e.type == "TaskStageReached"]
        assert stages == ["clone", "modules", "stdlib", "test", "analyse", "store"]
        (completed,) = [e.data for e in await system.events() if e.type == "TaskCompleted"]
        assert completed.analysis.projects == (".", "tool")
        assert await worker.stop() == 0


def check_result(result: dict[str, Any], commit: str) -> None:
    """The documented fields, and scores that can be worked out by hand."""
    info = result["repo_info"]
    assert info["commit_sha"] == commit
    assert info["metadata"] == {"stars": 0, "forks": 0, "language": "Go", "license": "BSD-3-Clause"}
    entries = {entry["function"]: entry for entry in result["entries"]}
    assert set(entries) == {"Add", "Risky", "Broken"}
    assert (entries["Add"]["cyclomatic"], entries["Add"]["coverage"], entries["Add"]["crap"]) == (1, 100, 1)
    # if, && and two cases: 5; not covered: 5² + 5.
    assert (entries["Risky"]["cyclomatic"], entries["Risky"]["coverage"], entries["Risky"]["crap"]) == (5, 0, 30)
    assert (entries["Risky"]["file"], entries["Risky"]["line"]) == ("sums.go", 5)
    assert entries["Broken"]["crap"] == 2
    assert result["summary"] == {"average": 11.0, "combined": 33.0, "exceeded": 0, "total_funcs": 3}
    assert [(one["path"], one["reason"].partition(":")[0]) for one in result["uncovered"]] == [
        ("example.com/sums/broken", "build failed")
    ]
    assert result["raw_output"]["version"] == "1.1.0"
    assert result["raw_output"]["summary"]["total_funcs"] == 3
    assert len(result["raw_output"]["entries"]) == 3
    assert result["crap_version"].startswith("v")
    assert result["go_version"].startswith("go1.")
    assert len(result["profile_digest"]) == 64


async def test_a_failed_analysis_has_its_reason(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER)
        code, _, errors = await gctd(system, "repo", "add", str(tmp_path / "nothing"))
        assert code == 1
        assert "error:" in errors
        leaving = make(tmp_path / "leaving", files={"go.mod": ADD["go.mod"], "go.work": "go 1.21\n\nuse ../outside\n"})
        code, _, errors = await gctd(system, "repo", "add", leaving.url)
        assert code == 1
        assert "go.work uses ../outside, which is outside the repository" in errors
        repo = await system.get(f"/api/repos/status?url={leaving.url}")
        assert (repo["Status"], "outside the repository" in repo["StatusReason"]) == ("error", True)
        code, _, errors = await gctd(system, "repo", "analyze", "https://example.com/never/registered")
        assert code == 3
        assert "not registered" in errors
        code, _, errors = await gctd(system, "repo", "add", "ext::sh -c touch% /tmp/pwned")
        assert code in {1, 2}
        assert "error:" in errors


async def test_a_worker_that_was_killed_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    repo = make(tmp_path / "source", kind="slow")
    async with tracker_system(tmp_path) as system:
        worker = await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)
        (task,) = await system.post("/api/repos/analyze", {"repo_url": repo.url})

        async def tests_run() -> bool:
            return bool((await system.get(f"/api/tasks/{task['id']}"))["stage"] == "test")

        await wait_until(tests_run, timeout=60, every=0.1)
        await worker.kill()
        jobs = tmp_path / "cache" / "jobs"
        assert any(path.is_dir() for path in jobs.iterdir())
        again = await system.start_worker(1, program=REAL_WORKER)
        await system.status(f"/api/tasks/{task['id']}", "DELETE")
        assert await again.stop() == 0
        assert not any(path.is_dir() for path in jobs.iterdir())
