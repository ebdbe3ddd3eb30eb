"""A server that leads for a second time does not count jobs that ended while another one led."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import pytest

from eventlog.commands import Commands
from eventlog.support.timers import during
from eventlog.testing.memory import MemoryLog
from gctd.control.dispatcher import DISPATCHER, Dispatcher
from gctd.control.lanes.lanes import Lanes
from gctd.domain.registry import REGISTRY
from gctd.domain.task import TASK
from gctd.domain.task.commands import CancelTask, QueueTask, StartTask
from projections.store import Checkpoint, CheckpointOutcome, Step
from tests.gctd.control.lanes.test_lost_places import Present, Queues
from tests.gctd.domain.test_tasks import AT, QUEUED
from tests.support.waiting import wait_until


@attrs.define
class Tables:
    """The tables that two servers share: they have the checkpoint, and no waiting work."""

    kept: Checkpoint | None = None

    async def checkpoints(self) -> dict[str, Checkpoint]:
        return {} if self.kept is None else {DISPATCHER.name: self.kept}

    async def forget(self, _projections: Any) -> None:
        self.kept = None

    async def advance(self, steps: Sequence[Step]) -> CheckpointOutcome:
        (step,) = steps
        if step.before != self.kept:
            return CheckpointOutcome.MISMATCH
        self.kept = step.after
        return CheckpointOutcome.STORED

    async def tasks_waiting(self, *, since: Any) -> Sequence[Any]:
        del since
        return []

    async def repos_waiting(self) -> Sequence[Any]:
        return []

    async def task(self, _id: str) -> None:
        return None


@pytest.mark.parametrize("restored", [False, True])
async def test_a_job_that_ended_while_another_server_led_takes_no_place_of_a_worker(*, restored: bool) -> None:
    """`restored`: the log is another one by then."""
    log, tables, queues = MemoryLog(REGISTRY), Tables(), Queues()
    commands, workers = Commands(log), Present({"w1": "native", "w2": "native-compat"})
    lanes = Lanes(log, commands, cast("Any", queues), cast("Any", workers))
    dispatcher = Dispatcher(log, lanes, cast("Any", tables), cast("Any", tables))

    async with during(dispatcher.run()):
        await commands.execute(TASK, "task-1", QueueTask(attrs.evolve(QUEUED, id="task-1", engine="native-compat")))
        await wait_until(lambda: queues.put_in == ["task-1"], timeout=20)
        await commands.execute(TASK, "task-1", StartTask(worker="w2", session="s", at=AT))
        await wait_until(lambda: tables.kept is not None and tables.kept.sequence == 2, timeout=20)
    assert tables.kept is not None
    if restored:
        await log.create_anew()
    else:
        await commands.execute(TASK, "task-1", CancelTask(at=AT))
        tables.kept = attrs.evolve(tables.kept, sequence=3, applied=3)

    async with during(dispatcher.run()):
        commands = Commands(log)
        await commands.execute(TASK, "task-2", QueueTask(attrs.evolve(QUEUED, id="task-2", engine="native-compat")))
        await wait_until(lambda: queues.put_in == ["task-1", "task-2"], timeout=20)
