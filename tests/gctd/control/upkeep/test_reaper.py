"""The reaper takes an attempt for lost if its worker is gone, was restarted or does not work on it.

It does not do so for one answer of the broker. It lets a task expire that is due and that no worker takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import attrs

from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.control.heartbeat import Heartbeat
from gctd.control.upkeep.reaper import Reaper, ReaperTimeouts
from gctd.domain.options import LONGEST
from gctd.domain.registry import REGISTRY
from gctd.domain.task import TASK
from gctd.domain.task.commands import FailTask, QueueTask, StartTask
from gctd.domain.task.state import Task, TaskStatus
from gctd.readmodel.views import TaskView
from tests.support.tracker.queued import queued_task

WORKER = "worker-1"


@attrs.frozen
class Tables:
    """The tasks of a log that run or wait."""

    log: MemoryLog

    async def task(self) -> TaskView:
        """The only task."""
        commit = await self.log.last(TASK.aggregate("task-1"))
        assert commit is not None
        state: Task = commit.state
        return TaskView.of_state(state, commit.sequence)

    async def tasks_running(self) -> Sequence[TaskView]:
        found = await self.task()
        return [found] if found.status == TaskStatus.RUNNING else []

    async def repos_waiting(self) -> Sequence[Any]:
        return []

    async def tasks_waiting(self, *, since: datetime) -> Sequence[Any]:
        found = await self.task()
        waits = found.status in {TaskStatus.QUEUED, TaskStatus.PENDING}
        return [found] if waits and datetime.fromisoformat(found.waiting_since) <= since else []


@attrs.define
class Answers:
    """The answers of the broker on the session of the worker, in order; None: the worker is gone. `tasks` are its jobs."""

    sessions: list[str | None]
    tasks: tuple[str, ...] = ("task-1",)

    async def present(self) -> Mapping[str, bytes]:
        session = self.sessions.pop(0)
        return {} if session is None else {WORKER: Heartbeat(session=session, status="busy", tasks=self.tasks).encoded()}


async def swept(
    *sessions: str | None,
    tasks: tuple[str, ...] = ("task-1",),
    absence: float = 60.0,
    presence: float = 60.0,
    since: timedelta = timedelta(0),
) -> TaskView:
    """A task that runs in session `new` of a worker, after one sweep for each answer of the broker. It began before `since`."""
    log, at = MemoryLog(REGISTRY), datetime.now(UTC) - since
    commands = Commands(log)
    queued = queued_task(at)
    await commands.execute(TASK, queued.id, QueueTask(queued))
    await commands.execute(TASK, queued.id, StartTask(worker=WORKER, session="new", at=at + timedelta(seconds=1)))
    tables, broker, timeouts = Tables(log), Answers(list(sessions), tasks), ReaperTimeouts(absence=absence, presence=presence)
    reaper = Reaper(log, commands, cast("Any", tables), cast("Any", None), cast("Any", broker), timeouts)
    for _ in sessions:
        await reaper.sweep()
    return await tables.task()


async def test_one_answer_with_an_earlier_session_ends_no_attempt() -> None:
    """A replica of the broker that is behind gives it."""
    assert (await swept("old", "new", "old", "new")).status == TaskStatus.RUNNING


async def test_the_attempt_of_a_worker_that_was_restarted_is_lost() -> None:
    task = await swept("new", "newer", "newer")
    assert (task.status, task.reason) == (TaskStatus.PENDING, "worker worker-1 was restarted")


async def test_the_attempt_of_a_worker_that_is_gone_is_lost_after_the_absence() -> None:
    assert (await swept("new", None, None)).status == TaskStatus.RUNNING
    task = await swept("new", None, absence=0.0)
    assert (task.status, task.reason) == (TaskStatus.PENDING, "worker worker-1 is gone")


async def test_an_attempt_that_its_worker_does_not_name_among_its_jobs_is_lost_after_the_life_of_an_announcement() -> None:
    """The start of the attempt had no answer, or its end could not be reported while the broker was away."""
    assert (await swept("new", "new", tasks=("task-2",))).status == TaskStatus.RUNNING
    task = await swept("new", "new", tasks=("task-2",), presence=0.0)
    assert (task.status, task.reason) == (TaskStatus.PENDING, "worker worker-1 does not work on it")
    assert (await swept("new", "new", presence=0.0)).status == TaskStatus.RUNNING


async def test_an_attempt_may_take_the_longest_time_that_a_project_can_be_given() -> None:
    assert (await swept("new", since=timedelta(seconds=LONGEST))).status == TaskStatus.RUNNING
    task = await swept("new", since=timedelta(seconds=LONGEST, hours=2))
    assert (task.status, task.reason) == (TaskStatus.PENDING, "the attempt took longer than 90000 s")


async def failed_before(ago: timedelta, *, due: timedelta) -> TaskView:
    """A task with an attempt that failed some time ago, and whose next one is due at a time from now, after a sweep."""
    log, now = MemoryLog(REGISTRY), datetime.now(UTC)
    commands, queued = Commands(log), queued_task(now - ago)
    failed = FailTask(attempt=1, session="s", reason="no", permanent=False, retry_at=now + due, at=now - ago)
    for command in (QueueTask(queued), StartTask(worker=WORKER, session="s", at=now - ago), failed):
        await commands.execute(TASK, queued.id, command)
    tables = Tables(log)
    timeouts = ReaperTimeouts(queue=60.0, job=3600.0)
    reaper = Reaper(log, commands, cast("Any", tables), cast("Any", None), cast("Any", Answers([])), timeouts)
    await reaper.sweep()
    return await tables.task()


async def test_a_task_expires_some_time_after_its_next_attempt_is_due() -> None:
    """Until then no worker may take it."""
    hours = timedelta(hours=2)
    assert (await failed_before(hours, due=timedelta(seconds=30))).status == TaskStatus.PENDING
    task = await failed_before(hours, due=-timedelta(seconds=90))
    assert (task.status, task.reason) == (TaskStatus.EXPIRED, "no worker took it up in time")
