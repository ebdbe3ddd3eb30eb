"""Stored profiles are scored again by a real worker: another engine's numbers from the same test run, and no test is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.log.nats import plain_client
from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import make
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = pytest.mark.real

RESCORE = "/api/repos/rescore"
PROVENANCE = ("profile_digest", "profile_path", "go_version", "uncovered", "repo_info")


def unusable_go(directory: Path) -> Path:
    """Make a `go` that prints its version. On any other command it leaves a file `ran` next to it."""
    program = directory / "go"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = env ] && printf "go1.21.0\\n/nowhere\\n" && exit 0\necho "$@" >> {directory}/ran\nexit 1\n'
    )
    program.chmod(0o755)
    return program


async def analysed(system: TrackerSystem, url: str) -> Any:
    """The analysis of the only project, made now."""
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url})
    done = await system.until_task(task["id"], "completed", "failed", timeout=110)
    assert done["status"] == "completed", done["reason"]
    return await system.get(f"/api/tasks/{task['id']}/result")


async def test_stored_profiles_are_scored_again_and_no_test_is_run(tmp_path: Path) -> None:
    repo = make(tmp_path / "source", kind="single")
    async with tracker_system(tmp_path) as system:
        status, problem = await system.status(RESCORE, "POST", json={"repo_url": repo.url})
        assert (status, "not registered" in problem["message"]) == (404, True)
        tester = await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)
        status, problem = await system.status(RESCORE, "POST", json={"repo_url": repo.url})
        assert (status, "analyse it first" in problem["message"]) == (409, True)
        await system.post("/api/repo-config", {"url": repo.url, "go_flags": "-tags=x", "crap_args": ["--threshold=3"]})
        first = await analysed(system, repo.url)
        repo.write({"more.go": "package single\n\n// More is not covered.\nfunc More() {}\n"}).commit()
        second = await analysed(system, repo.url)
        assert await tester.stop() == 0

        await system.post("/api/repo-config", {"url": repo.url, "go_flags": "-tags=y", "crap_args": ["--threshold=29"]})
        go = unusable_go(tmp_path)
        scorer = await system.start_worker(2, program=REAL_WORKER, GCTD_GO=str(go))
        told = await gctd("repo", "rescore", repo.url, "--engine", "native-compat", "--json", url=system.url, home=tmp_path)
        assert told.code == 0, told.err
        (task,), (again,) = told.json["tasks"], told.json["analyses"]
        assert (task["rescored_from"], task["commit_sha"], task["ref"]) == (second["task_id"], repo.head(), "main")
        assert (again["engine"], again["rescored_from"], again["id"]) == ("native-compat", second["task_id"], second["id"])
        assert {name: again[name] for name in PROVENANCE} == {name: second[name] for name in PROVENANCE}
        assert (second["flags"][-1], "-tags=x" in second["flags"]) == ("--threshold=3", True)
        assert again["flags"] == [*second["flags"][:-1], "--threshold=29"]
        assert [entry["name"] for entry in again["entries"]] == [entry["name"] for entry in second["entries"]]
        stages = [
            event.data.stage for event in await system.events(f"gctd.task.{task['id']}") if event.type == "TaskStageReached"
        ]
        assert stages == ["clone", "analyse", "store"]
        assert not (tmp_path / "ran").exists()

        tasks = await system.post(RESCORE, {"repo_url": repo.url, "project": ".", "all_history": True})
        assert {(task["rescored_from"], task["commit_sha"]) for task in tasks} == {
            (analysis["task_id"], analysis["repo_info"]["commit_sha"]) for analysis in (first, second)
        }
        for task in tasks:
            await system.until_task(task["id"], "completed")
        # The latest analysis still belongs to the last test run, though an earlier run may have been scored after it.
        (latest,) = await system.get("/api/repos")
        assert (latest["rescored_from"], latest["repo_info"]["commit_sha"]) == (second["task_id"], repo.head())
        (update,) = await system.post("/api/repos/check-updates", {})
        assert (update["moved"], update["recorded_sha"]) == (False, repo.head())
        assert await scorer.stop() == 0

        await remove_blobs(system)
        await system.start_worker(3, program=REAL_WORKER, GCTD_GO=str(go))
        (task,) = await system.post(RESCORE, {"repo_url": repo.url, "engine": "native"})
        failed = await system.until_task(task["id"], "failed")
        assert failed["attempt"] == 1
        assert failed["reason"].startswith(f"the coverage profile of {second['task_id']} is gone: ")


async def remove_blobs(system: TrackerSystem) -> None:
    """Lose every body in the blob store."""
    async with plain_client(system.nats.url) as client:
        jetstream = client.jetstream()
        for stream in await jetstream.streams_info():
            if (stream.config.name or "").startswith("OBJ_"):
                await jetstream.purge_stream(stream.config.name or "")
