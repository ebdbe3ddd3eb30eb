"""The six states of a task and the moves between them, by their causes on the running system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"


async def schedule(system: TrackerSystem) -> str:
    (task,) = await system.post("/api/repos/analyze", {"repo_url": REPO})
    id_: str = task["id"]
    return id_


async def let_worker(system: TrackerSystem, what: str, status: str) -> None:
    """Pause or unpause the worker, and wait until it has heard of it."""
    await system.post(f"/api/workers/worker-1/{what}")

    async def heard() -> bool:
        return bool((await system.get("/api/workers"))[0]["status"] == status)

    await wait_until(heard, every=0.05)


async def states(system: TrackerSystem, id_: str) -> Sequence[str]:
    """The states that a task has been in, in order."""
    seen: list[str] = []
    async with system.log() as log:
        head = await log.head()
        async for commits in log.follow(after=0, until=head.last):
            of_task = [commit.state.status.value for commit in commits if commit.subject == f"gctd.task.{id_}"]
            for status in of_task:
                if seen[-1:] != [status]:
                    seen.append(status)
    return seen


async def post(system: TrackerSystem, path: str, key: str | None = None) -> tuple[int, Any]:
    return await system.status(path, "POST", headers={"Idempotency-Key": key} if key else {})


async def test_every_state_and_retry_from_failed_and_from_expired(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_QUEUE_TIMEOUT="3s") as system:
        await system.start_worker(1, FAKE_FAILS="3")
        await system.register(REPO)
        id_ = await schedule(system)
        failed = await system.until_task(id_, "failed")
        assert (failed["attempt"], failed["max_attempts"], failed["reason"]) == (3, 3, "attempt 3 fails on purpose")
        assert await states(system, id_) == ["queued", "running", "pending", "running", "pending", "running", "failed"]

        attempts = await system.get(f"/api/tasks/{id_}/attempts")
        assert [(one["attempt"], one["worker"], one["outcome"]) for one in attempts] == [
            (number, "worker-1", "failed") for number in (1, 2, 3)
        ]
        assert attempts[1]["reason"] == "attempt 2 fails on purpose"
        assert attempts[1]["log"]["size"] > 0
        (stage,) = attempts[1]["stages"]
        assert attempts[1]["started_at"] < stage["started_at"] < attempts[1]["ended_at"] < attempts[2]["started_at"]
        assert stage["stage"] == "test"
        assert 0 < stage["duration_ms"] < 5000

        await system.post("/api/tasks/hide-all")
        status, task = await post(system, f"/api/tasks/{id_}/retry", "once")
        assert (status, task["status"], task["attempt"], task["max_attempts"]) == (202, "queued", 3, 6)
        assert (task["reason"], task["hidden"]) == ("", False)
        completed = await system.until_task(id_, "completed")
        assert completed["attempt"] == 4
        last = (await system.get(f"/api/tasks/{id_}/attempts"))[3]
        assert (last["outcome"], [stage["stage"] for stage in last["stages"]]) == ("completed", ["test", "store"])
        assert last["log"] is None, "nothing was said"
        assert (await post(system, f"/api/tasks/{id_}/retry", "once"))[0] == 202
        assert await system.get(f"/api/tasks/{id_}") == completed
        for command in ("retry", "cancel"):
            status, problem = await post(system, f"/api/tasks/{id_}/{command}")
            assert (status, "completed" in problem["message"]) == (409, True)

        await let_worker(system, "pause", "paused")
        other = await schedule(system)
        status, problem = await post(system, f"/api/tasks/{other}/retry")
        assert (status, "queued" in problem["message"]) == (409, True)
        expired = await system.until_task(other, "expired")
        assert await system.get(f"/api/tasks/{other}/attempts") == []
        assert (expired["attempt"], expired["reason"]) == (0, "no worker took it up in time")
        assert (await post(system, f"/api/tasks/{other}/cancel"))[0] == 409
        assert (await post(system, f"/api/tasks/{other}/retry"))[0] == 202
        await let_worker(system, "unpause", "idle")
        assert (await system.until_task(other, "failed"))["attempt"] == 3
        assert (await states(system, other))[:5] == ["queued", "expired", "queued", "running", "pending"]
        assert system.serve is not None
        await system.serve.stop()
        assert await system.difference_from_a_fold() is None


async def test_a_task_can_be_cancelled_while_it_waits_and_while_it_runs(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_RETRY_DELAY="1h") as system:
        worker = await system.start_worker(1, FAKE_FAILS="1")
        await system.register(REPO)
        pending = await schedule(system)
        await system.until_task(pending, "pending")
        await let_worker(system, "pause", "paused")
        queued = await schedule(system)
        for id_, attempt, outcomes in ((pending, 1, ["failed"]), (queued, 0, [])):
            assert (await post(system, f"/api/tasks/{id_}/cancel", f"stop-{id_}"))[0] == 204
            assert (await post(system, f"/api/tasks/{id_}/cancel", f"stop-{id_}"))[0] == 204
            assert (await post(system, f"/api/tasks/{id_}/cancel", "another"))[0] == 409
            task = await system.get(f"/api/tasks/{id_}")
            assert (task["status"], task["reason"], task["attempt"]) == ("failed", "cancelled", attempt)
            assert [one["outcome"] for one in await system.get(f"/api/tasks/{id_}/attempts")] == outcomes
        assert {task["id"] for task in await system.get("/api/tasks?status=failed")} == {pending, queued}

        await worker.stop()
        await let_worker(system, "unpause", "gone")
        await system.start_worker(1, FAKE_SECONDS="600")
        assert (await post(system, f"/api/tasks/{queued}/retry"))[0] == 202
        await system.until_task(queued, "running")
        (attempt,) = await system.get(f"/api/tasks/{queued}/attempts")
        assert (attempt["outcome"], attempt["ended_at"], attempt["log"]) == (None, None, None)
        assert (await post(system, f"/api/tasks/{queued}/cancel"))[0] == 204

        async def idle() -> bool:
            return not (await system.get("/api/workers"))[0]["tasks"]

        await wait_until(idle, timeout=30, every=0.05)
        task = await system.get(f"/api/tasks/{queued}")
        assert (task["status"], task["reason"], task["attempt"]) == ("failed", "cancelled", 1)
        (attempt,) = await system.get(f"/api/tasks/{queued}/attempts")
        assert (attempt["outcome"], attempt["reason"]) == ("cancelled", "cancelled")
        assert attempt["ended_at"] is not None
        assert await system.status(f"/api/tasks/{queued}", "DELETE") == (204, "")
        assert (await system.status(f"/api/tasks/{queued}/attempts"))[0] == 404
        assert system.serve is not None
        await system.serve.stop()
        assert await system.difference_from_a_fold() is None
