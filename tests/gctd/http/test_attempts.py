"""The attempts at a task, as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

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
from tests.support.tracker.queued import queued_task

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
def test_what_an_attempt_came_to(end: TaskEvent, outcome: str) -> None:
    (one,) = attempts(STARTED, end, TaskLogStored(attempt=1, log=LOG, at=at(4)))
    assert (one.outcome, one.ended_at, one.log) == (outcome, timestamp_text(at(3)), LOG)


@pytest.mark.parametrize("end", [TaskExpired(attempt=1, reason="nobody", at=at(9)), TaskCancelled(attempt=1, at=at(9))])
def test_the_end_of_a_task_that_waits_is_not_that_of_the_attempt_before(end: TaskEvent) -> None:
    (one,) = attempts(STARTED, TaskAttemptLost(attempt=1, reason="gone", at=at(3)), end)
    assert (one.outcome, one.ended_at) == ("lost", timestamp_text(at(3)))


@pytest.mark.parametrize("end", [TaskExpired(attempt=0, reason="nobody", at=at(9)), TaskCancelled(attempt=0, at=at(9))])
def test_a_task_that_nobody_took_up_has_no_attempt(end: TaskEvent) -> None:
    assert attempts(end) == []
