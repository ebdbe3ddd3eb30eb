"""Removing a repository: its tasks end, its rows leave the tables, the log keeps the history, and it can come again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from eventlog import BlobMissing
from eventlog.commands import Commands
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.blobs import BlobStore
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import RemoveRepo
from gctd.domain.task.state import CATEGORY
from tests.support.programs.cli import gctd
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

OLD = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0})
NEW = attrs.evolve(OLD, commit_sha="b" * 40)


def rows_of(system: TrackerSystem, repo_id: str) -> dict[str, int]:
    """How many rows of each table are about a repository."""
    columns = {"repos": "id", "tasks": "repo_id", "analyses": "repo_id", "verdicts": "repo_id"}
    with closing(sqlite3.connect(f"file:{system.database}?mode=ro", uri=True)) as database:
        return {
            table: database.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (repo_id,)).fetchone()[0]
            for table, column in columns.items()
        }


async def record(project: Project) -> Any:
    return await project.system.get(f"/api/repos/status?url={project.url}")


async def remove(project: Project) -> int:
    return (await project.system.status(f"/api/repos/registered?url={project.url}", "DELETE"))[0]


async def test_a_removed_repository_has_no_row_and_its_history_stays_in_the_log(project: Project, tmp_path: Path) -> None:
    system, id_, path = project.system, (await record(project))["ID"], await project.path
    await project.analyze(OLD, NEW, ref="main")
    assert (await system.post(f"{path}/gate", {}))["result"] == "passed"
    await system.status(f"/api/tasks/{project.tasks[0]}", "DELETE")  # an analysis outlives its task, but not its repository
    assert rows_of(system, id_) == {"repos": 1, "tasks": 1, "analyses": 2, "verdicts": 1}
    shown = await gctd("repo", "rm", project.url, url=system.url, home=tmp_path)
    assert (shown.code, shown.err.strip()) == (0, f"removed {project.url}")
    assert rows_of(system, id_) == dict.fromkeys(("repos", "tasks", "analyses", "verdicts"), 0)
    for gone in (f"/api/repos/status?url={project.url}", path, f"{path}/history", f"/api/tasks/{project.tasks[1]}"):
        status, body = await system.status(gone)
        assert status == 404 or body == [], gone
    assert [event.type for event in await system.events(f"{REPO.category}.{id_}")][-1] == "RepoRemoved"
    task = [event.type for event in await system.events(f"{CATEGORY}.{project.tasks[1]}")]
    assert (task[0], task[-2:]) == ("TaskQueued", ["TaskCompleted", "TaskDropped"])


async def test_a_removed_repository_is_unknown_until_it_is_registered_again_and_begins_without_history(project: Project) -> None:
    system = project.system
    await project.analyze(OLD, NEW, ref="main")
    verdict = (await system.post(f"{await project.path}/gate", {}))["verdict"]
    await system.post("/api/repo-config", {"url": project.url, "test_args": "-short"})
    assert await remove(project) == 204
    assert await remove(project) == 404
    assert (await system.status("/api/repos/analyze", "POST", json={"repo_url": project.url}))[0] == 404
    assert (await system.status("/api/repo-config", "POST", json={"url": project.url, "ref": "x"}))[0] == 404
    again = await system.register(project.url)
    assert again["Status"] == "ready"
    assert (await system.get(f"/api/repo-config?url={project.url}"))["stored"]["test_args"] is None
    assert rows_of(system, again["ID"]) == {"repos": 1, "tasks": 0, "analyses": 0, "verdicts": 0}
    await project.analyze(OLD, NEW, ref="main")
    assert rows_of(system, again["ID"]) == {"repos": 1, "tasks": 2, "analyses": 2, "verdicts": 0}
    found = await system.post(f"{await project.path}/gate", {})
    assert (found["verdict"], found["result"]) == (verdict, "passed")


async def test_running_and_waiting_tasks_are_cancelled_and_the_log_shows_the_removal(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, FAKE_PROJECTS="2") as system:
        await system.start_worker(1, FAKE_UNTIL=str(tmp_path / "never"))
        project = await Project.registered(system, tmp_path)
        tasks = await system.post("/api/repos/analyze", {"repo_url": project.url})
        await system.until_task(tasks[0]["id"], "running")
        id_ = (await record(project))["ID"]
        assert await remove(project) == 204
        assert rows_of(system, id_) == dict.fromkeys(("repos", "tasks", "analyses", "verdicts"), 0)
        for task in tasks:
            types = [event.type for event in await system.events(f"{CATEGORY}.{task['id']}")]
            assert types[-2:] == ["TaskCancelled", "TaskDropped"], types

        async def idle() -> bool:
            return [worker["status"] for worker in await system.get("/api/workers")] == ["idle"]

        await wait_until(idle, timeout=30)
        records = await system.get("/api/log?limit=50")
        assert "RepoRemoved" in {one["type"] for one in records["events"]}


async def test_a_removal_that_was_interrupted_is_finished_by_the_next_server(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(tmp_path / "analyses"))
        project = await Project.registered(system, tmp_path / "analyses")
        await project.analyze(OLD, NEW, ref="main")
        id_ = (await record(project))["ID"]
        assert system.serve is not None
        await system.serve.kill()
        async with system.log() as log:  # as a server leaves it that ends right after the first event
            commands = Commands(log)
            await commands.execute(REPO, id_, RemoveRepo(at=datetime.now(UTC)))
        serve = await system.start_serve()

        async def cleared() -> bool:
            return not any(rows_of(system, id_).values())

        await wait_until(cleared, timeout=10)
        await serve.stop()
        assert await system.difference_from_a_fold() is None


async def test_reports_of_a_removed_repository_leave_the_broker_over_a_kill_and_shared_ones_stay(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_BLOB_GRACE="1s") as system, Connection.open(system.nats.url, name="test") as broker:
        await system.start_worker(1, FAKE_ANALYSES=str(tmp_path / "analyses"))
        gone = await Project.registered(system, tmp_path / "analyses")
        stays = await Project.registered(system, tmp_path / "analyses")
        await gone.analyze(OLD, attrs.evolve(NEW, functions={"b.go:Other": 7.0}), ref="main")
        await stays.analyze(OLD, ref="main")
        shared, own = [await report_of(system, task) for task in gone.tasks]
        assert await report_of(system, stays.tasks[0]) == shared
        assert await remove(gone) == 204
        assert system.serve is not None
        await system.serve.kill()
        await system.start_serve()

        async def removed() -> bool:
            try:
                await BlobStore(broker, "gctd-blobs").get(own)
            except BlobMissing:
                return True
            return False

        await wait_until(removed, timeout=30)
        assert (await system.get(f"/api/tasks/{stays.tasks[0]}/result"))["entries"]
        assert await remove(stays) == 204

        async def empty() -> bool:
            return bool((await call(broker, "STREAM.INFO.OBJ_gctd-blobs"))["state"]["messages"] == 0)

        await wait_until(empty, timeout=30)


async def report_of(system: TrackerSystem, task: str) -> str:
    """The digest of the report of a task."""
    (completed,) = [event.data for event in await system.events(f"{CATEGORY}.{task}") if event.type == "TaskCompleted"]
    digest: str = completed.analysis.report.digest
    return digest
