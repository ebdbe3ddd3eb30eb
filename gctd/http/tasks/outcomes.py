"""Figures of the outcomes of tasks, counted from the commits that become visible while this process runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import attrs
from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from eventlog import Commit, UndecodableCommit
from gctd.domain.task import TASK
from gctd.domain.task.events import (
    STAGES,
    TaskAttemptFailed,
    TaskAttemptLost,
    TaskCancelled,
    TaskCompleted,
    TaskExpired,
    TaskFailed,
    TaskStageReached,
    TaskStarted,
)

_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_ENDING: dict[type, tuple[str, str | None]] = {
    TaskCompleted: ("completed", "completed"),
    TaskAttemptFailed: ("failed", None),
    TaskFailed: ("failed", "failed"),
    TaskAttemptLost: ("lost", None),
    TaskExpired: ("expired", "expired"),
    TaskCancelled: ("cancelled", "cancelled"),
}
"""Events that end an attempt: its outcome, and the status of the task if the task has also ended."""
_OF_ATTEMPTS = frozenset({"completed", "failed", "lost"})
"""Outcomes that only an attempt has; a task may expire or be cancelled while it waits."""
_COUNTED = frozenset({"TaskStarted", "TaskStageReached", *(event.__name__ for event in _ENDING)})


@attrs.frozen
class _UnderWay:
    """An attempt that began while this process ran: its stage (none yet: empty), and since when."""

    stage: str
    since: datetime


class Outcomes(Collector):
    """Attempts by outcome, ended tasks by status, seconds of each stage. Counting begins with `start`."""

    def __init__(self) -> None:
        self._after: int | None = None
        self._under_way: dict[str, _UnderWay] = {}
        self._attempts = Counter("attempts", "Attempts at tasks that ended.", ("outcome",), registry=None)
        self._ended = Counter("tasks_ended", "Tasks that ended.", ("status",), registry=None)
        self._stages = Histogram(
            "attempt_stage_duration_seconds", "Time that a stage of an attempt took.", ("stage",), buckets=_BUCKETS, registry=None
        )
        for outcome, status in _ENDING.values():
            self._attempts.labels(outcome)
            if status is not None:
                self._ended.labels(status)
        for stage in STAGES:
            self._stages.labels(stage)

    def start(self, sequence: int) -> None:
        """Count the commits after this sequence. Another process has counted the earlier ones."""
        self._after = sequence

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now. Called by the projector, after each of its transactions."""
        if self._after is None or commits[-1].sequence <= self._after:
            return
        for commit in commits:
            if commit.sequence > self._after and commit.category == TASK.category:
                with suppress(UndecodableCommit):  # the projector parks it, and reports it
                    self._count(commit)

    def _count(self, commit: Commit) -> None:
        if _COUNTED.isdisjoint(event.type for event in commit.body.events):
            return
        id_ = commit.aggregate.id
        for recorded in commit.events:
            event = recorded.data
            if isinstance(event, TaskStarted):
                self._under_way[id_] = _UnderWay("", event.at)
            elif isinstance(event, TaskStageReached):
                self._leave_stage(id_, event.at)
                self._under_way[id_] = _UnderWay(event.stage, event.at)
            elif type(event) in _ENDING:
                self._end(id_, event.at, *_ENDING[type(event)])

    def _leave_stage(self, id_: str, at: datetime) -> None:
        before = self._under_way.pop(id_, None)
        if before is not None and before.stage in STAGES:
            # The end of a lost attempt is by another clock than its stages.
            self._stages.labels(before.stage).observe(max(0.0, (at - before.since).total_seconds()))

    def _end(self, id_: str, at: datetime, outcome: str, status: str | None) -> None:
        """End an attempt, if one runs. With `status`, its task has also ended."""
        if outcome in _OF_ATTEMPTS or id_ in self._under_way:
            self._attempts.labels(outcome).inc()
        if status is not None:
            self._ended.labels(status).inc()
        self._leave_stage(id_, at)

    def collect(self) -> Iterator[Metric]:
        """The figures since the start."""
        for metric in (self._attempts, self._ended, self._stages):
            yield from metric.collect()
