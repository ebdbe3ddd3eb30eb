"""The attempts at a task, as its state has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from gctd.domain.task import events


@attrs.frozen(kw_only=True)
class ReachedStage:
    """The time when an attempt entered a stage, and its progress; None: it has none."""

    stage: str
    at: datetime
    progress: events.Progress | None = None


@attrs.frozen(kw_only=True)
class Attempt:
    """An attempt: 1 is the first `number`. `ended_at` and `outcome` are None while it lasts.

    `outcome` is completed, failed, lost (its worker was), expired (its worker was lost, and it was the last) or cancelled. `log`
    is None until its log is stored.
    """

    number: int
    worker: str
    started_at: datetime
    stages: tuple[ReachedStage, ...] = ()
    ended_at: datetime | None = None
    outcome: str | None = None
    reason: str = ""
    log: events.AttemptLog | None = None


def attempts_after(attempts: tuple[Attempt, ...], event: events.TaskEvent) -> tuple[Attempt, ...]:
    """The attempts after an event."""
    match event:
        case events.TaskStarted():
            return (*attempts, Attempt(number=event.attempt, worker=event.worker, started_at=event.at))
        case events.TaskStageReached():
            reached = ReachedStage(stage=event.stage, at=event.at)
            return _changed(attempts, event.attempt, lambda one: attrs.evolve(one, stages=(*one.stages, reached)))
        case events.TaskProgressed():
            return _changed(attempts, event.attempt, lambda one: _progressed(one, event.progress))
        case events.TaskLogStored():
            return _changed(attempts, event.attempt, lambda one: attrs.evolve(one, log=event.log))
        case events.TaskCompleted():
            return _ended(attempts, event.attempt, event.at, "completed", "")
        case events.TaskAttemptFailed() | events.TaskFailed():
            return _ended(attempts, event.attempt, event.at, "failed", event.reason)
        case events.TaskAttemptLost():
            return _ended(attempts, event.attempt, event.at, "lost", event.reason)
        case events.TaskExpired():
            return _ended(attempts, event.attempt, event.at, "expired", event.reason)
        case events.TaskCancelled():
            return _ended(attempts, event.attempt, event.at, "cancelled", "cancelled")
        case _:
            return attempts


def _progressed(one: Attempt, progress: events.Progress) -> Attempt:
    *before, last = one.stages
    return attrs.evolve(one, stages=(*before, attrs.evolve(last, progress=progress)))


def _changed(attempts: tuple[Attempt, ...], number: int, change: Callable[[Attempt], Attempt]) -> tuple[Attempt, ...]:
    return tuple(change(one) if one.number == number else one for one in attempts)


def _ended(attempts: tuple[Attempt, ...], number: int, at: datetime, outcome: str, reason: str) -> tuple[Attempt, ...]:
    """A task that waits may expire or be cancelled: its last attempt had its end already, and keeps it."""

    def end(one: Attempt) -> Attempt:
        return one if one.ended_at is not None else attrs.evolve(one, ended_at=at, outcome=outcome, reason=reason)

    return _changed(attempts, number, end)
