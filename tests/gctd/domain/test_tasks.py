"""The rules of repositories, tasks and workers, as given/when/then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from gctd.domain import worker as w
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id, profile_path
from gctd.domain.errors import GctdError, NotFound, Overtaken, Refused
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import (
    ConfigureProject,
    FailDiscovery,
    FinishDiscovery,
    LoseDiscovery,
    RegisterRepo,
    RemoveProjectConfig,
    RequestAnalysis,
)
from gctd.domain.repo.config import ProjectConfig, effective
from gctd.domain.repo.events import (
    AnalysisRequested,
    DiscoveryAttemptFailed,
    DiscoveryRequested,
    DiscoveryStarted,
    ProjectConfigRemoved,
    ProjectConfigured,
    RepoEvent,
    RepoFailed,
    RepoReady,
    RepoRegistered,
)
from gctd.domain.repo.project import Project
from gctd.domain.task import TASK
from gctd.domain.task.commands import (
    CancelTask,
    CompleteTask,
    DeleteTask,
    ExpireTask,
    FailTask,
    LoseTask,
    MarkTask,
    QueueTask,
    ReachStage,
    ResolveCommit,
    RetryTask,
    StartTask,
    StoreLog,
    TaskCommand,
)
from gctd.domain.task.events import (
    AttemptLog,
    TaskAttemptFailed,
    TaskAttemptLost,
    TaskCancelled,
    TaskCommitResolved,
    TaskCompleted,
    TaskDeleted,
    TaskEvent,
    TaskExpired,
    TaskFailed,
    TaskHidden,
    TaskLogStored,
    TaskRetried,
    TaskSeen,
    TaskStarted,
)
from gctd.domain.task.state import TaskStatus
from tests.support.tracker.queued import queued_task

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = AT + timedelta(seconds=10)

ANALYSIS = Analysis(
    id=analysis_id("r1", "."),
    ref="main",
    commit_sha="a" * 40,
    summary=Summary(average=1.0, combined=2.0, exceeded=0, total_funcs=2),
    measured=Summary(average=1.0, combined=2.0, exceeded=0, total_funcs=2),
    states={"measured": 2},
    store_source="never",
    engine="native",
    engine_version="1",
    crap_version="v0.5.1",
    go_version="go1.26.6",
    flags=(),
    report=Blob(digest="d", size=1),
    analyzed_at=AT,
    duration_ms=5,
)
QUEUED = queued_task(AT)
LOG = AttemptLog(digest="e", size=3, cut=0, cut_at=3)
STARTED = TaskStarted(attempt=1, worker="w", session="s", at=AT)
COMPLETE = CompleteTask(attempt=1, session="s", analysis=ANALYSIS, at=LATER)

ENDED = (
    TaskCompleted(attempt=1, analysis=ANALYSIS, at=AT),
    TaskFailed(attempt=1, reason="no", at=AT),
    TaskExpired(attempt=1, reason="gone", at=AT),
    TaskCancelled(attempt=1, at=AT),
)


def task(*events: TaskEvent) -> Any:
    return given(TASK, QUEUED, *events, registry=REGISTRY)


def lost(attempt: int) -> TaskAttemptLost:
    return TaskAttemptLost(attempt=attempt, reason="gone", at=AT)


def started(attempt: int) -> TaskStarted:
    return attrs.evolve(STARTED, attempt=attempt)


def fail(attempt: int = 1, *, permanent: bool = False, session: str = "s") -> FailTask:
    return FailTask(attempt=attempt, session=session, reason="no", permanent=permanent, retry_at=LATER, at=AT)


RESOLVED = TaskCommitResolved(attempt=1, ref="main", commit_sha="b" * 40, at=AT)


def commit_after(*events: TaskEvent) -> str | None:
    state = TASK.fold([attrs.evolve(QUEUED, ref="HEAD"), *events])
    assert state is not None
    return state.commit


class TestTheCommit:
    def test_of_a_branch_is_a_fact_as_soon_as_a_worker_has_found_it(self) -> None:
        resolve = ResolveCommit(attempt=1, session="s", ref="main", commit_sha="b" * 40, at=AT)
        task(STARTED).when(resolve).then(RESOLVED)
        task(STARTED, RESOLVED).when(resolve).then()
        task(STARTED).when(attrs.evolve(resolve, session="other")).then_refused(Refused, match="over")

    def test_stays_for_later_attempts_until_a_user_retries_the_task(self) -> None:
        assert commit_after(STARTED) is None
        assert commit_after(STARTED, RESOLVED, lost(1), started(2)) == "b" * 40
        failed = TaskFailed(attempt=1, reason="no", at=AT)
        assert commit_after(STARTED, RESOLVED, failed) == "b" * 40
        assert commit_after(STARTED, RESOLVED, failed, TaskRetried(max_attempts=4, at=AT)) is None
        assert commit_after(STARTED, RESOLVED, TaskCompleted(attempt=1, analysis=ANALYSIS, at=AT)) == ANALYSIS.commit_sha


class TestTask:
    def test_is_started_once(self) -> None:
        start = StartTask(worker="w", session="s", at=AT)
        task().when(start).then(STARTED)
        task(STARTED).when(start).then_refused(Refused, match="running")

    def test_completes_under_its_attempt(self) -> None:
        task(STARTED).when(COMPLETE).then(TaskCompleted(attempt=1, analysis=ANALYSIS, at=LATER))

    @pytest.mark.parametrize(
        "history",
        [
            (STARTED, lost(1)),
            (STARTED, lost(1), started(2)),
            (STARTED, lost(1), attrs.evolve(started(2), session="other")),
            (STARTED, TaskCompleted(attempt=1, analysis=ANALYSIS, at=AT)),
            (STARTED, TaskCancelled(attempt=1, at=AT)),
        ],
    )
    def test_a_late_report_is_refused(self, history: tuple[TaskEvent, ...]) -> None:
        task(*history).when(COMPLETE).then_refused(Refused, match="attempt 1 is over")

    def test_a_session_that_holds_no_lease_is_refused(self) -> None:
        task(STARTED).when(attrs.evolve(COMPLETE, session="other")).then_refused(Refused, match="over")

    def test_a_failed_attempt_is_followed_by_another_after_a_delay(self) -> None:
        failed = TaskAttemptFailed(attempt=1, reason="no", retry_at=LATER, at=AT)
        task(STARTED).when(fail()).then(failed)
        early = StartTask(worker="w", session="s", at=AT)
        task(STARTED, failed).when(early).then_refused(Refused, match="not before")
        task(STARTED, failed).when(attrs.evolve(early, at=LATER)).then(attrs.evolve(started(2), at=LATER))

    def test_the_third_failure_is_the_last(self) -> None:
        history = (STARTED, lost(1), started(2), lost(2), started(3))
        task(*history).when(fail(3)).then(TaskFailed(attempt=3, reason="no", at=AT))

    def test_a_permanent_failure_is_not_tried_again(self) -> None:
        task(STARTED).when(fail(permanent=True)).then(TaskFailed(attempt=1, reason="no", at=AT))

    def test_the_third_lost_worker_ends_it(self) -> None:
        lose = LoseTask(attempt=3, reason="gone", at=AT)
        history = (STARTED, lost(1), started(2), lost(2), started(3))
        task(*history).when(lose).then(TaskExpired(attempt=3, reason="gone", at=AT))

    def test_a_worker_is_lost_once(self) -> None:
        lose = LoseTask(attempt=1, reason="gone", at=AT)
        task(STARTED).when(lose).then(lost(1))
        task(STARTED, lost(1), started(2)).when(lose).then()

    def test_expires_while_it_waits_only(self) -> None:
        expire = ExpireTask(attempt=0, reason="nobody", at=AT)
        task().when(expire).then(TaskExpired(attempt=0, reason="nobody", at=AT))
        task(STARTED).when(expire).then()

    def test_removing_a_running_task_cancels_it(self) -> None:
        delete = DeleteTask(at=AT)
        task(STARTED).when(delete).then(TaskCancelled(attempt=1, at=AT), TaskDeleted(at=AT))
        done = TaskCompleted(attempt=1, analysis=ANALYSIS, at=AT)
        task(STARTED, done).when(delete).then(TaskDeleted(at=AT))
        task(STARTED, done, TaskDeleted(at=AT)).when(delete).then_refused(NotFound)

    def test_is_cancelled_until_it_has_ended(self) -> None:
        cancel = CancelTask(at=AT)
        task().when(cancel).then(TaskCancelled(attempt=0, at=AT))
        task(STARTED).when(cancel).then(TaskCancelled(attempt=1, at=AT))
        task(STARTED, lost(1)).when(cancel).then(TaskCancelled(attempt=1, at=AT))
        for ended in ENDED:
            task(STARTED, ended).when(cancel).then_refused(Refused, match="has ended already")

    def test_a_failed_or_expired_task_is_retried_with_attempts_that_count_on(self) -> None:
        retry = RetryTask(attempts=3, at=LATER)
        for ended in ENDED[1:]:
            task(STARTED, ended).when(retry).then(TaskRetried(max_attempts=4, at=LATER))
        task(TaskExpired(attempt=0, reason="nobody", at=AT)).when(retry).then(TaskRetried(max_attempts=3, at=LATER))
        for other in ((), (STARTED,), (STARTED, lost(1)), (STARTED, ENDED[0])):
            task(*other).when(retry).then_refused(Refused, match="only a task that failed or expired")
        often = (attrs.evolve(STARTED, attempt=100), TaskFailed(attempt=100, reason="no", at=AT))
        task(*often).when(retry).then_refused(Refused, match="schedule a new task")
        again = task(STARTED, TaskHidden(at=AT), ENDED[1], TaskRetried(max_attempts=4, at=LATER))
        again.when(StartTask(worker="w", session="s", at=LATER)).then(attrs.evolve(started(2), at=LATER))
        state = TASK.fold([QUEUED, STARTED, TaskHidden(at=AT), ENDED[1], TaskRetried(max_attempts=4, at=LATER)])
        assert state is not None
        assert (state.status, state.hidden, state.reason, state.waiting_since) == (TaskStatus.QUEUED, False, "", LATER)

    def test_the_log_of_an_attempt_comes_with_its_end(self) -> None:
        stored = TaskLogStored(attempt=1, log=LOG, at=AT)
        task(STARTED).when(attrs.evolve(fail(permanent=True), log=LOG)).then(stored, TaskFailed(attempt=1, reason="no", at=AT))
        completed = TaskCompleted(attempt=1, analysis=ANALYSIS, at=LATER)
        task(STARTED).when(attrs.evolve(COMPLETE, log=LOG)).then(attrs.evolve(stored, at=LATER), completed)

    def test_the_log_of_an_attempt_that_was_ended_from_outside_comes_after_its_end(self) -> None:
        store = StoreLog(attempt=1, log=LOG, at=AT)
        stored = TaskLogStored(attempt=1, log=LOG, at=AT)
        task(STARTED, TaskCancelled(attempt=1, at=AT)).when(store).then(stored)
        task(STARTED, lost(1), started(2)).when(store).then(stored)
        task(STARTED).when(store).then_refused(Refused, match="has not ended")
        task().when(store).then_refused(Refused, match="has not ended")

    def test_an_unknown_stage_is_refused(self) -> None:
        task(STARTED).when(ReachStage(attempt=1, session="s", stage="lunch", at=AT)).then_refused(Refused, match="no stage")

    def test_marks_are_set_once(self) -> None:
        task().when(MarkTask(hide=False, at=AT)).then(TaskSeen(at=AT))
        task(TaskSeen(at=AT)).when(MarkTask(hide=False, at=AT)).then()
        ended = TaskCancelled(attempt=0, at=AT)
        task(ended).when(MarkTask(hide=True, at=AT)).then(TaskHidden(at=AT))
        task(ended, TaskHidden(at=AT)).when(MarkTask(hide=True, at=AT)).then()

    def test_a_task_that_waits_or_runs_is_not_hidden(self) -> None:
        for events in ((), (STARTED,)):
            task(*events).when(MarkTask(hide=True, at=AT)).then()

    def test_an_id_is_queued_once(self) -> None:
        queue = QueueTask(QUEUED)
        given(TASK, registry=REGISTRY).when(queue).then(QUEUED)
        task().when(queue).then_refused(Refused, match="exists")


COMMANDS = st.sampled_from(
    [
        StartTask(worker="w", session="s", at=LATER),
        StartTask(worker="v", session="z", at=LATER),
        *(fail(attempt, session=session) for attempt in (1, 2, 3) for session in "sz"),
        *(LoseTask(attempt=attempt, reason="gone", at=AT) for attempt in (1, 2, 3)),
        *(attrs.evolve(COMPLETE, attempt=attempt, session=session) for attempt in (1, 2, 3) for session in "sz"),
        ExpireTask(attempt=0, reason="nobody", at=AT),
        ExpireTask(attempt=1, reason="nobody", at=AT),
        *(StoreLog(attempt=attempt, log=LOG, at=AT) for attempt in (1, 2)),
        CancelTask(at=AT),
        RetryTask(attempts=2, at=AT),
        DeleteTask(at=AT),
        MarkTask(hide=True, at=AT),
    ]
)
TERMINAL = (TaskCompleted, TaskFailed, TaskExpired, TaskCancelled)


@for_all(st.lists(COMMANDS, max_size=40))
def test_under_any_commands_a_task_ends_once_with_one_analysis_at_most(commands: list[TaskCommand]) -> None:
    """Promise I4: it ends once for each time that it was queued, with bounded attempts, and one analysis if it completed."""
    events: list[TaskEvent] = [QUEUED]
    for command in commands:
        state = TASK.fold(events)
        try:
            events.extend(TASK.decide(command, state))
        except GctdError:
            continue
    state = TASK.fold(events)
    assert state is not None
    retried = sum(isinstance(event, TaskRetried) for event in events)
    assert sum(isinstance(event, TERMINAL) for event in events) == int(state.status.terminal) + retried
    assert sum(isinstance(event, TaskCompleted) for event in events) <= 1
    assert state.attempt <= state.max_attempts
    assert (state.analysis is not None) == (state.status is TaskStatus.COMPLETED)
    assert (state.lease is not None) == (state.status is TaskStatus.RUNNING)


@for_all(st.lists(COMMANDS, max_size=20), st.sampled_from([CancelTask(at=AT), RetryTask(attempts=2, at=AT)]))
def test_a_command_with_an_idempotency_key_has_an_event_or_is_refused(before: list[TaskCommand], keyed: TaskCommand) -> None:
    """The key is stored with the events: an accepted command without events would be judged a second time when repeated."""
    state = TASK.fold([QUEUED])
    for command in before:
        try:
            state = TASK.fold(TASK.decide(command, state), state)
        except GctdError:
            continue
    try:
        events = TASK.decide(keyed, state)
    except GctdError:
        return
    assert events


REGISTERED = RepoRegistered(id="r1", url="https://example.com/a", clone_url="https://example.com/a", max_attempts=3, at=AT)
REGISTER = RegisterRepo(id="r1", url=REGISTERED.url, clone_url=REGISTERED.url, max_attempts=3, at=AT)
DISCOVERY = DiscoveryStarted(attempt=1, worker="w", session="s", at=AT)
READY = RepoReady(commit_sha="c", default_ref="main", projects=(Project(name=".", module_path="m"),), at=AT)
FAILED = RepoFailed(reason="no go.mod", at=AT)


def repo(*events: RepoEvent) -> Any:
    return given(REPO, REGISTERED, *events, registry=REGISTRY)


class TestRepo:
    def test_an_analysis_that_was_decided_on_before_another_was_asked_for_is_refused(self) -> None:
        request = RequestAnalysis(tasks=("task-2",), at=LATER, commits={".": "b" * 40}, requests=0)
        asked = AnalysisRequested(tasks=("task-2",), at=LATER, commits={".": "b" * 40})
        repo(DISCOVERY, READY).when(request).then(asked)
        before = AnalysisRequested(tasks=("task-1",), at=AT)
        repo(DISCOVERY, READY, before).when(request).then_refused(Overtaken)
        repo(DISCOVERY, READY, before).when(attrs.evolve(request, requests=1)).then(asked)
        repo(DISCOVERY, READY, before).when(attrs.evolve(request, requests=None)).then(asked)

    def test_is_registered_once(self) -> None:
        given(REPO, registry=REGISTRY).when(REGISTER).then(REGISTERED)
        repo().when(REGISTER).then()
        repo(DISCOVERY, READY).when(REGISTER).then()

    def test_is_discovered_again_where_it_failed_or_is_refreshed(self) -> None:
        asked = DiscoveryRequested(at=AT)
        repo(DISCOVERY, FAILED).when(REGISTER).then(asked)
        refresh = attrs.evolve(REGISTER, refresh=True)
        repo(DISCOVERY, READY).when(refresh).then(asked)
        repo(DISCOVERY).when(refresh).then()

    def test_the_projects_come_from_the_attempt_under_way(self) -> None:
        finish = FinishDiscovery(attempt=1, session="s", commit_sha="c", default_ref="main", projects=READY.projects, at=AT)
        repo(DISCOVERY).when(finish).then(READY)
        repo(DISCOVERY).when(attrs.evolve(finish, session="z")).then_refused(Refused, match="over")
        repo().when(finish).then_refused(Refused, match="over")

    def test_a_lost_discovery_is_tried_again_until_the_third(self) -> None:
        lose = LoseDiscovery(attempt=1, reason="gone", at=AT)
        again = DiscoveryAttemptFailed(attempt=1, reason="gone", retry_at=AT, at=AT)
        repo(DISCOVERY).when(lose).then(again)
        third = attrs.evolve(DISCOVERY, attempt=3)
        repo(third).when(attrs.evolve(lose, attempt=3)).then(RepoFailed(reason="gone", at=AT))

    def test_a_discovery_that_no_worker_took_up_is_lost_only_for_good(self) -> None:
        lose = LoseDiscovery(attempt=0, reason="nobody", at=AT)
        repo().when(lose).then()
        repo().when(attrs.evolve(lose, final=True)).then(RepoFailed(reason="nobody", at=AT))
        repo(DISCOVERY).when(attrs.evolve(lose, final=True)).then()

    def test_a_permanent_failure_is_the_last(self) -> None:
        command = FailDiscovery(attempt=1, session="s", reason="no go.mod", permanent=True, retry_at=LATER, at=AT)
        repo(DISCOVERY).when(command).then(FAILED)

    def test_settings_change_only_where_they_are_given(self) -> None:
        before = ProjectConfigured(subdir="", config=ProjectConfig(ref="main", timeout="5m"), at=AT)
        change = ConfigureProject(subdir="", changes=ProjectConfig(ref="dev"), at=AT)
        after = ProjectConfigured(subdir="", config=ProjectConfig(ref="dev", timeout="5m"), at=AT)
        repo(before).when(change).then(after)
        repo(after).when(change).then()

    def test_settings_that_are_removed_leave_no_trace(self) -> None:
        before = ProjectConfigured(subdir="", config=ProjectConfig(ref="main", timeout="5m"), at=AT)
        remove = ConfigureProject(subdir="", changes=ProjectConfig(), without=frozenset({"ref"}), at=AT)
        repo(before).when(remove).then(ProjectConfigured(subdir="", config=ProjectConfig(timeout="5m"), at=AT))
        every = attrs.evolve(remove, without=frozenset({"ref", "timeout"}))
        repo(before).when(every).then(ProjectConfigRemoved(subdir="", at=AT))
        repo().when(every).then()

    def test_settings_are_for_the_root_and_for_projects_that_were_found(self) -> None:
        root = ConfigureProject(subdir="", changes=ProjectConfig(ref="dev"), at=AT)
        project = attrs.evolve(root, subdir="api")
        repo().when(root).then(ProjectConfigured(subdir="", config=ProjectConfig(ref="dev"), at=AT))
        repo().when(project).then_refused(Refused, match="still registering")
        repo(FAILED).when(project).then_refused(NotFound, match="has no project 'api'")
        repo(READY).when(project).then_refused(NotFound, match="has no project 'api'")
        found = attrs.evolve(READY, projects=(Project(name="api", module_path="example.com/api"),))
        configured = ProjectConfigured(subdir="api", config=ProjectConfig(ref="dev"), at=AT)
        repo(found).when(project).then(configured)
        remove = RemoveProjectConfig(subdir="api", at=AT)
        repo(found, configured, READY).when(remove).then(ProjectConfigRemoved(subdir="api", at=AT))
        repo(READY).when(remove).then_refused(NotFound, match="has no project 'api'")

    def test_a_project_falls_back_to_the_root(self) -> None:
        configs = {"": ProjectConfig(ref="main", timeout="5m"), "api": ProjectConfig(ref="dev")}
        assert effective(configs, "api") == ProjectConfig(ref="dev", timeout="5m")
        assert effective(configs, "cli") == effective(configs, ".") == configs[""]
        assert effective({}, ".") == ProjectConfig()


class TestWorker:
    STARTED = w.WorkerStarted(id="w", session="s", host="h", pid=1, at=AT)

    def test_a_pause_outlives_the_session(self) -> None:
        state = w.WORKER.fold([self.STARTED, w.WorkerPaused(at=AT), attrs.evolve(self.STARTED, session="z")])
        assert state is not None
        assert state.paused

    def test_a_pause_is_one_event(self) -> None:
        pause = w.PauseWorker(paused=True, at=AT)
        given(w.WORKER, self.STARTED, registry=REGISTRY).when(pause).then(w.WorkerPaused(at=AT))
        given(w.WORKER, self.STARTED, w.WorkerPaused(at=AT), registry=REGISTRY).when(pause).then()
        given(w.WORKER, registry=REGISTRY).when(pause).then_refused(NotFound)

    def test_only_its_own_session_stops_it(self) -> None:
        stop = w.StopWorker(session="s", at=AT)
        given(w.WORKER, self.STARTED, registry=REGISTRY).when(stop).then(w.WorkerStopped(session="s", at=AT))
        other = attrs.evolve(self.STARTED, session="z")
        given(w.WORKER, self.STARTED, other, registry=REGISTRY).when(stop).then()


def test_ids_and_paths_never_change() -> None:
    assert analysis_id("r1", ".") == analysis_id("r1", ".") != analysis_id("r1", "api")
    assert profile_path("r1", "svc/api", "c0ffee") == "coverage/r1/svc/api/c0ffee.out"
