"""The attempts at a task, as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gctd.domain.task import TASK
from gctd.domain.task.events import (
    AttemptLog,
    TaskAttemptFailed,
    TaskAttemptLost,
    TaskCancelled,
    TaskEvent,
    TaskExpired,
    TaskFailed,
    TaskLogStored,
    TaskStageReached,
    TaskStarted,
)
from gctd.readmodel.attempts import AttemptView, attempts_of
from gctd.readmodel.views import TaskView
from projections.model import timestamp_text
from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import make
from tests.support.tracker.queued import queued_task
from tests.support.tracker.system import tracker_system
from tests.support.waiting import wait_until

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


QUEUED = queued_task(AT)
STARTED = TaskStarted(attempt=1, worker="w", session="s", at=at(1))
LOG = AttemptLog(digest="d", size=5, cut=0, cut_at=5)


def stage(name: str, seconds: float) -> TaskStageReached:
    return TaskStageReached(attempt=1, stage=name, at=at(seconds))


def attempts(*events: TaskEvent) -> Sequence[AttemptView]:
    """Return the attempts as they are read after these events."""
    state = TASK.fold([QUEUED, *events])
    assert state is not None
    return attempts_of(TaskView.of_state(state, 1).attempts)


def test_one_that_has_just_begun() -> None:
    (one,) = attempts(STARTED)
    assert (one.number, one.worker, one.ended_at, one.outcome, one.stages, one.log) == (1, "w", None, None, (), None)


def test_stages_last_until_the_next_or_the_end() -> None:
    events = (STARTED, stage("clone", 2), stage("modules", 2.5))
    (one,) = attempts(*events)
    assert [(s.stage, s.duration_ms) for s in one.stages] == [("clone", 500), ("modules", None)]
    (one,) = attempts(*events, TaskFailed(attempt=1, reason="no", at=at(7.5)))
    assert [(s.stage, s.duration_ms) for s in one.stages] == [("clone", 500), ("modules", 5000)]
    assert (one.outcome, one.reason, one.ended_at) == ("failed", "no", timestamp_text(at(7.5)))


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (TaskAttemptFailed(attempt=1, reason="no", retry_at=at(9), at=at(3)), "failed"),
        (TaskAttemptLost(attempt=1, reason="gone", at=at(3)), "lost"),
        (TaskExpired(attempt=1, reason="gone", at=at(3)), "expired"),
        (TaskCancelled(attempt=1, at=at(3)), "cancelled"),
    ],
)
def test_each_attempt_has_its_outcome(end: TaskEvent, outcome: str) -> None:
    (one,) = attempts(STARTED, end, TaskLogStored(attempt=1, log=LOG, at=at(4)))
    assert (one.outcome, one.ended_at, one.log) == (outcome, timestamp_text(at(3)), LOG)


@pytest.mark.parametrize("end", [TaskExpired(attempt=1, reason="nobody", at=at(9)), TaskCancelled(attempt=1, at=at(9))])
def test_the_end_of_a_task_that_waits_is_not_that_of_the_attempt_before(end: TaskEvent) -> None:
    (one,) = attempts(STARTED, TaskAttemptLost(attempt=1, reason="gone", at=at(3)), end)
    assert (one.outcome, one.ended_at) == ("lost", timestamp_text(at(3)))


@pytest.mark.parametrize("end", [TaskExpired(attempt=0, reason="nobody", at=at(9)), TaskCancelled(attempt=0, at=at(9))])
def test_a_task_that_nobody_took_up_has_no_attempt(end: TaskEvent) -> None:
    assert attempts(end) == []


@pytest.mark.real
async def test_a_task_of_a_branch_has_its_commit_while_it_runs_and_keeps_it_in_its_next_attempt(tmp_path: Path) -> None:
    repo, until = make(tmp_path / "repo"), tmp_path / "until"
    async with tracker_system(tmp_path, GCTD_RETRY_DELAY="100ms") as system:
        await system.start_worker(1, FAKE_RESOLVES="1", FAKE_UNTIL=str(until), FAKE_FAILS="1")
        await system.register(repo.url)
        (task,) = await system.post("/api/repos/analyze", {"repo_url": repo.url})
        assert "commit_sha" not in task

        async def resolved() -> Any:
            found = await system.get(f"/api/tasks/{task['id']}")
            return found if "commit_sha" in found else None

        found = await wait_until(resolved, timeout=30, every=0.02)
        commit = repo.head()
        assert (found["status"], found["commit_sha"], found["ref"]) == ("running", commit, "main")
        for arguments in (("task", "list"), ("task", "show", task["id"])):
            shown = await gctd(*arguments, url=system.url, home=tmp_path)
            assert commit[:12] in shown.out, arguments
        (row,) = await system.post("/api/repos/check-updates", {"repo_url": repo.url})
        assert row["note"] == f"{task['id']} is running"
        newer = repo.commit()
        (row,) = await system.post("/api/repos/check-updates", {"repo_url": repo.url})
        assert (row["remote_sha"], row["moved"], row["note"]) == (newer, True, None), "the task analyses an older commit"
        until.touch()
        done = await system.until_task(task["id"], "completed")
        (analysis,) = await system.get("/api/repos")
        assert (done["attempt"], done["commit_sha"], analysis["repo_info"]["commit_sha"]) == (2, commit, commit)
        assert [event.type for event in await system.events(f"gctd.task.{task['id']}")].count("TaskCommitResolved") == 1
