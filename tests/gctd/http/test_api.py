"""The tracker's API on the running system: statuses, fields and transitions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gctd.http.api import SCREENS
from tests.support.pace import within
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    """A system without a worker: nothing moves by itself."""
    async with tracker_system(tmp_path) as running:
        yield running


async def ready_repo(system: TrackerSystem, projects: int = 3) -> None:
    """Register a repository with the given number of projects. Its worker is paused afterwards."""
    await system.start_worker(1, FAKE_PROJECTS=str(projects), FAKE_SECONDS="0.02")
    await system.register(REPO)


async def pause(system: TrackerSystem) -> None:
    await system.post("/api/workers/worker-1/pause")

    async def paused() -> bool:
        return bool((await system.get("/api/workers"))[0]["status"] == "paused")

    await wait_until(paused, every=0.05)


async def test_registering(system: TrackerSystem) -> None:
    status, repo = await system.status("/api/repos", "POST", json={"repo_url": REPO + ".git/"})
    assert status == 202
    assert (repo["Status"], repo["StatusReason"], repo["CommitSHA"], repo["ProfiledAt"]) == ("registering", "", "", None)
    assert repo["Profile"] == {"projects": []}
    again, known = await system.status("/api/repos", "POST", json={"repo_url": "https://EXAMPLE.com/owner/name"})
    assert (again, known["ID"]) == (202, repo["ID"])
    assert await system.get(f"/api/repos/status?url={REPO}") == repo
    assert [event.type for event in await system.events()] == ["RepoRegistered"]
    status, problem = await system.status("/api/repos/analyze", "POST", json={"repo_url": REPO})
    assert (status, "still registering" in problem["message"]) == (409, True)


REFUSALS: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/api/repos", {}, 400, "repo_url"),
    ("POST", "/api/repos", {"repo_url": "file:///etc"}, 400, "repo_url"),
    ("POST", "/api/repos", {"repo_url": "https://127.0.0.1/a"}, 400, "repo_url"),
    ("POST", "/api/repos", {"repo_url": 7}, 400, "repo_url"),
    ("POST", "/api/repos/analyze", {"repo_url": REPO}, 404, "not registered"),
    ("POST", "/api/repos/analyze", {"repo_url": REPO, "engine": "none"}, 400, "engine"),
    ("POST", "/api/tasks", {"repo_url": REPO}, 404, "not registered"),
    ("GET", f"/api/repos/status?url={REPO}", None, 404, "not registered"),
    ("GET", "/api/repos/status", None, 400, "url"),
    ("GET", "/api/repos/00000000", None, 404, "no analysis"),
    ("GET", f"/api/repos/{'0' * 32}/gate?base=", None, 400, "base: must not be empty"),
    ("GET", f"/api/repos/{'0' * 32}/diff?base=", None, 400, "base: must not be empty"),
    ("POST", f"/api/repos/{'0' * 32}/gate", {"base": ""}, 400, "base: must not be empty"),
    ("GET", "/api/tasks?status=bogus", None, 400, "status"),
    ("GET", "/api/tasks?limit=0", None, 400, "limit"),
    ("GET", "/api/tasks?cursor=bogus", None, 400, "cursor"),
    ("GET", "/api/tasks/task-1", None, 404, "task-1"),
    ("GET", "/api/tasks/else", None, 404, ""),
    ("GET", "/api/tasks/task-1/result", None, 404, "task-1"),
    ("DELETE", "/api/tasks/task-1", None, 404, "no such task"),
    ("POST", "/api/tasks/task-1/seen", None, 404, "no such task"),
    ("POST", "/api/workers/nobody/pause", None, 404, "no such worker"),
    ("PUT", "/api/tasks", {}, 405, ""),
    ("GET", "/api/nothing", None, 404, ""),
]


async def test_refusals(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_ALLOW_LOCAL="false") as system:
        for method, path, body, status, says in REFUSALS:
            async with system.http.request(method, system.url + path, json=body) as answer:
                problem = await answer.json(content_type=None)
            where = f"{method} {path}"
            assert (where, answer.status, answer.content_type) == (where, status, "application/problem+json")
            assert problem["status"] == status
            assert says in str(problem), where
            assert problem["message"], where


async def test_scheduling_and_results(system: TrackerSystem) -> None:
    await ready_repo(system)
    await pause(system)
    status, first = await system.status("/api/tasks", "POST", json={"repo_url": REPO, "project": "p1", "ref": "dev"})
    assert status == 201
    assert (first["project"], first["ref"], first["status"], first["attempt"], first["max_attempts"]) == (
        "p1",
        "dev",
        "queued",
        0,
        3,
    )
    assert (first["engine"], first["seen"], first["hidden"]) == ("native", False, False)
    assert "analysis_id" not in first
    assert await system.get(f"/api/tasks/{first['id']}") == first
    status, problem = await system.status(f"/api/tasks/{first['id']}/result")
    assert (status, "queued" in problem["message"]) == (409, True)
    status, problem = await system.status("/api/repos/analyze", "POST", json={"repo_url": REPO, "project": "nope"})
    assert (status, "p1" in problem["message"]) == (404, True)
    status, problem = await system.status("/api/repos/analyze", "POST", json={"repo_url": REPO, "project": "../x"})
    assert (status, problem["errors"][0]["pointer"]) == (400, "#/project")
    tasks = await system.post("/api/repos/analyze", {"repo_url": REPO})
    assert [(task["project"], task["ref"]) for task in tasks] == [(".", "dev"), ("p1", "dev"), ("p2", "dev")]


async def test_lists_page_and_filter(system: TrackerSystem) -> None:
    await ready_repo(system)
    await pause(system)
    for _ in range(3):
        await system.post("/api/repos/analyze", {"repo_url": REPO})
    everything = await system.get("/api/tasks")
    assert len(everything) == 9
    assert everything == sorted(everything, key=lambda task: (task["created_at"], task["id"]), reverse=True)
    seen: list[Any] = []
    url: str | None = f"{system.url}/api/tasks?limit=4"
    while url:
        async with system.http.get(url) as answer:
            seen += await answer.json()
            link = answer.links.get("next")
            url = str(link["url"]) if link else None
    assert seen == everything
    assert await system.get("/api/tasks?status=running") == []
    assert await system.get("/api/tasks?status=queued") == everything


async def test_seen_hidden_and_deleted_tasks_leave_the_lists(system: TrackerSystem) -> None:
    await ready_repo(system, projects=4)
    await pause(system)
    ids = [task["id"] for task in await system.post("/api/repos/analyze", {"repo_url": REPO})]

    async def listed(query: str = "") -> set[str]:
        return {task["id"] for task in await system.get(f"/api/tasks{query}")}

    assert (await system.status(f"/api/tasks/{ids[0]}/seen", "POST"))[0] == 204
    assert await listed() == set(ids[1:])
    assert await listed("?show_seen=true") == set(ids)
    assert (await system.status(f"/api/tasks/{ids[1]}", "DELETE"))[0] == 204
    assert (await system.status(f"/api/tasks/{ids[1]}"))[0] == 404
    assert await listed() == set(ids[2:])
    [newer] = [task["id"] for task in await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "p1"})]
    await system.post("/api/tasks/hide-all")
    assert await listed("?show_seen=true") == {ids[0], *ids[2:], newer}, "what waits may fail later, in no list"
    assert await listed("?under_way=true") == {ids[0], *ids[2:], newer}, "seen tasks wait all the same"
    for ended in (*ids[2:], newer):
        await system.post(f"/api/tasks/{ended}/cancel")
    await system.post("/api/tasks/hide-all", {"ids": [newer, ids[0], "task-1"]})
    assert await listed("?show_seen=true") == {ids[0], *ids[2:]}, "only the tasks that the body names, if they have ended"
    assert await listed("?under_way=true&status=queued&limit=9") == {ids[0]}
    assert await listed("?under_way=true&status=failed") == set()
    await system.post("/api/tasks/hide-all")
    assert await listed("?show_seen=true") == {ids[0]}
    assert (await system.get(f"/api/tasks/{ids[2]}"))["hidden"] is True


async def test_deleting_a_running_task_ends_it_and_its_worker_goes_on(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_SECONDS="60")
    await system.register(REPO)
    (task,) = await system.post("/api/repos/analyze", {"repo_url": REPO})
    await system.until_task(task["id"], "running")
    assert (await system.status(f"/api/tasks/{task['id']}", "DELETE"))[0] == 204

    async def idle() -> bool:
        return bool((await system.get("/api/workers"))[0]["tasks"] == [])

    await wait_until(idle, timeout=30, every=0.05)
    types = [event.type for event in await system.events(f"gctd.task.{task['id']}")]
    assert types[-2:] == ["TaskCancelled", "TaskDeleted"]


async def test_an_answer_names_the_position_it_is_true_for(system: TrackerSystem) -> None:
    async with system.http.post(f"{system.url}/api/repos", json={"repo_url": REPO}) as answer:
        written = int(answer.headers["Event-Sequence"])
        assert answer.headers["X-Request-Id"]
    async with system.http.get(f"{system.url}/api/repos/status?url={REPO}&min_seq={written}") as answer:
        assert answer.status == 200
        assert int(answer.headers["Event-Sequence"]) >= written
    with within(2):  # what the log does not have is not waited for
        status, problem = await system.status(f"/api/tasks?min_seq={written + 1_000_000}")
    assert (status, "the log ends at" in problem["message"]) == (409, True)


async def test_a_repeated_request_with_its_key_is_answered_as_before(system: TrackerSystem) -> None:
    await ready_repo(system)
    await pause(system)
    headers = {"Idempotency-Key": "0123456789"}
    answers = await asyncio.gather(
        *(system.status("/api/repos/analyze", "POST", json={"repo_url": REPO}, headers=headers) for _ in range(8))
    )
    assert [status for status, _ in answers] == [202] * 8
    assert all([task["id"] for task in tasks] == [task["id"] for task in answers[0][1]] for _, tasks in answers)
    assert len(await system.get("/api/tasks")) == 3
    status, problem = await system.status("/api/repos/analyze", "POST", json={"repo_url": REPO, "project": "p1"}, headers=headers)
    assert (status, "another request" in problem["message"]) == (422, True)


async def test_health_tells_the_truth(system: TrackerSystem) -> None:
    assert await system.get("/livez") == await system.get("/health") == {"status": "ok"}
    assert await system.get("/readyz") == {"status": "ok", "reads": "ok", "writes": "ok"}
    await system.nats.kill()

    async def unready() -> Any:
        status, document = await system.status("/readyz")
        return document if status == 503 else None

    document = await wait_until(unready, timeout=30, every=0.05)
    assert document["status"] == "error"
    assert "broker" in document["reason"]
    assert (await system.status("/livez"))[0] == 200
    assert (await system.status("/api/tasks"))[0] == 200
    request = {"json": {"repo_url": REPO}, "timeout": aiohttp.ClientTimeout(total=60)}
    with within(20):
        status, problem = await system.status("/api/repos", "POST", **request)
    assert status == 503, problem
    await system.nats.start()
    await system.ready()


async def test_foreign_pages_and_names_are_refused(system: TrackerSystem) -> None:
    body = {"repo_url": REPO}
    status, _ = await system.status("/api/repos", "POST", json=body, headers={"Origin": "https://evil.example"})
    assert status == 403
    status, _ = await system.status("/api/tasks", headers={"Host": "evil.example"})
    assert status == 421


async def test_the_page_and_the_description_are_served(system: TrackerSystem) -> None:
    async with system.http.get(system.url) as answer:
        page = await answer.text()
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    for kind in ("src", "href"):
        [address] = re.findall(rf'{kind}="(/[^"]*)"', page)[:1]
        assert (await system.status(address))[0] == 200
    for screen in SCREENS:
        async with system.http.get(system.url + screen.format(id="task-1", position=1, pair="a...b", key="Add")) as answer:
            assert await answer.text() == page, f"{screen} is a deep link"
    document = await system.get("/api/openapi.json")
    assert document["openapi"].startswith("3.1")
    assert {"/api/tasks", "/api/repos/analyze", "/api/sse"} <= set(document["paths"])
    metrics = (await system.status("/metrics"))[1]
    assert "projection_lag_events" in metrics
