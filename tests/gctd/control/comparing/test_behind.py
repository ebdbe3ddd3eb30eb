"""A read model that is behind the log, or that moves between two questions, changes no verdict and no report to a forge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.broker.blobs import MemoryBlobs
from gctd.control.comparing.baselines import Baselines
from gctd.control.comparing.judging import AnalysisJudgement, Judging
from gctd.control.forges.reporting import Reporting
from gctd.domain.delivery import DELIVERY
from gctd.domain.delivery.commands import ReceiveDelivery, ScheduleDelivery
from gctd.domain.delivery.state import Delivery, DeliveryStatus
from gctd.domain.registry import REGISTRY
from gctd.domain.task import TASK
from gctd.domain.task.commands import QueueTask
from gctd.domain.task.events import TaskEvent
from gctd.domain.verdict import Result, Rules
from gctd.engines import report as report_format
from gctd.http.projects.points import usual_base
from gctd.http.services import Services
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import AnalysisView, TaskView
from httpkit.routes import Call
from tests.gctd.domain.test_delivery import AT, RECEIVED
from tests.gctd.domain.test_tasks import ENDED, QUEUED, STARTED
from tests.support.tracker.analyses import analysis, entry, report

BASE = "b" * 40
STATES = {"measured": 1}


def task_after(*events: TaskEvent) -> TaskView:
    state = TASK.fold(events)
    assert state is not None
    return TaskView.of_state(state, len(events))


@attrs.define
class Tables:
    """A read model. `later` has what it has after the log is caught up, or after the first look at a base."""

    tasks: dict[str, TaskView] = attrs.Factory(dict)
    later: dict[str, TaskView] = attrs.Factory(dict)
    base: AnalysisView | None = None
    base_task: TaskView | None = None
    looks: int = 0

    async def catch_up(self) -> None:
        self.tasks.update(self.later)

    async def task(self, id_: str) -> TaskView | None:
        return self.tasks.get(id_)

    async def verdict(self, _id: str) -> None:
        return None

    async def analyses_at(self, _project: str, _commit: str) -> Sequence[AnalysisView]:
        self.looks += 1
        return [self.base] if self.base is not None and self.looks > 1 else []

    async def commits_before(self, _project: str, _ref: str, _commit: str, *, limit: int) -> Sequence[str]:
        return [BASE][:limit]

    async def tasks_of_commit(self, _repo: str, _project: str, _commit: str) -> Sequence[TaskView]:
        return [self.base_task] if self.base_task is not None else []


async def reported(tables: Tables) -> Delivery:
    """The state of a delivery, whose one task is queued, after one look of the process that answers it."""
    log = MemoryLog(REGISTRY)
    commands, nothing = Commands(log), cast("Any", None)
    await commands.execute(DELIVERY, RECEIVED.id, ReceiveDelivery(received=RECEIVED))
    await commands.execute(DELIVERY, RECEIVED.id, ScheduleDelivery(tasks=(QUEUED.id,), at=AT))
    reporting = Reporting(
        log,
        commands,
        cast("TrackerQueries", tables),
        nothing,
        {},
        nothing,
        caught_up=tables.catch_up,
    )
    await reporting.advance(RECEIVED.id)
    last = await log.last(DELIVERY.aggregate(RECEIVED.id), consistent=True)
    assert last is not None
    state: Delivery = last.state
    return state


async def test_a_task_that_is_not_in_the_read_model_yet_is_waited_for() -> None:
    assert (await reported(Tables(later={QUEUED.id: task_after(QUEUED, STARTED)}))).status is DeliveryStatus.SCHEDULED


async def test_a_deleted_task_is_reported() -> None:
    state = await reported(Tables())
    assert (state.status, state.state, state.description) == (DeliveryStatus.DECIDED, "error", "a task was deleted")


async def judged(tables: Tables, after: AnalysisView, blobs: MemoryBlobs, log: MemoryLog | None = None) -> AnalysisJudgement:
    nothing = cast("Any", None)
    queries = cast("TrackerQueries", tables)
    baselines = Baselines(nothing, queries, nothing, nothing, nothing)
    log = log or MemoryLog(REGISTRY)
    judging = Judging(log, Commands(log), queries, blobs, nothing, baselines, caught_up=tables.catch_up)
    return await judging.look(after, BASE, Rules(threshold=30.0, max_new=0))


async def test_a_base_whose_analysis_ends_during_the_question_is_compared_with() -> None:
    """The answer is never "not analysed yet" about a base whose task has completed."""
    blobs, made = MemoryBlobs(), report(entry())
    stored = await blobs.put(report_format.encode(made))
    after = analysis(made, report_digest=stored.digest, states=STATES, analyzed_at=QUEUED.at.isoformat())
    base = attrs.evolve(after, commit_sha=BASE)
    ended = task_after(QUEUED, STARTED, ENDED[0])
    found = await judged(Tables(base=base, base_task=ended), after, blobs)
    assert (found.result, found.reason, found.baseline.analysis) == (Result.PASSED, "", base)


@pytest.mark.parametrize("skew", [timedelta(hours=-1), timedelta(hours=1)])
async def test_the_task_of_a_base_is_found_by_the_log_whatever_clocks_show(skew: timedelta) -> None:
    """A task that was queued before the judged analysis may have been made in another way; one after it was made for it."""
    blobs, made, log = MemoryBlobs(), report(entry()), MemoryLog(REGISTRY)
    stored = await blobs.put(report_format.encode(made))
    after = analysis(made, report_digest=stored.digest, states=STATES, analyzed_at=(QUEUED.at + skew).isoformat())
    tables = Tables(base_task=task_after(QUEUED, STARTED))
    queued = await Commands(log).execute(TASK, QUEUED.id, QueueTask(QUEUED))
    earlier = await judged(tables, attrs.evolve(after, sequence=queued.sequence), blobs, log)
    assert earlier.base_task is None
    later = await judged(tables, attrs.evolve(after, sequence=queued.sequence - 1), blobs, log)
    assert later.base_task == tables.base_task


async def test_a_repository_that_is_removed_during_the_question_has_no_usual_base() -> None:
    call = SimpleNamespace(services=SimpleNamespace(queries=Tables()))
    assert await usual_base(analysis(report(entry())), cast("Call[Services]", call)) is None


async def test_a_base_without_an_analysis_leaves_the_result_unknown() -> None:
    blobs, made = MemoryBlobs(), report(entry())
    stored = await blobs.put(report_format.encode(made))
    after = analysis(made, report_digest=stored.digest, states=STATES)
    found = await judged(Tables(), after, blobs)
    assert (found.result, found.reason) == (Result.UNKNOWN, f"the base {BASE[:12]} is not analysed yet")
