"""Rows that a commit on the stream GCTD puts or deletes."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog import Commit
from gctd.domain import delivery, repo, schedule, task, verdict, worker
from gctd.domain.registry import REGISTRY
from gctd.readmodel.rows import (
    analysis_row,
    delivery_row,
    repo_row,
    task_row,
    verdict_row,
    worker_row,
)
from gctd.readmodel.tables import (
    ANALYSES,
    DELIVERIES,
    REPOS,
    TASKS,
    VERDICTS,
    WORKERS,
)
from projections.model import Change, Delete, Projection, Put, ReadModel, SettingNames
from servicekit.access.model import TokenModel, with_tokens


def _repo(commit: Commit) -> Iterable[Change]:
    state: repo.Repo = commit.state
    if state.status is repo.RepoStatus.REMOVED:
        return (Delete(REPOS, (state.id,)),)
    return (Put(REPOS, repo_row(state, commit.sequence)),)


def _task(commit: Commit) -> Iterable[Change]:
    state: task.Task = commit.state
    if state.deleted:
        return (Delete(TASKS, (state.id,)),)
    return (Put(TASKS, task_row(state, commit.sequence)),)


def _analysis(commit: Commit) -> Iterable[Change]:
    """An analysis outlives its task: a list of tasks is cleared, the history of a project is not. It goes with its repository."""
    completed, dropped = "TaskCompleted", "TaskDropped"
    if commit.may_have(dropped) and any(event.type == dropped for event in commit.body.events):
        return (Delete(ANALYSES, (commit.state.id,)),)
    if not commit.may_have(completed):
        return ()
    for event in commit.body.events:
        if event.type == completed:
            state: task.Task = commit.state
            assert state.analysis is not None, "a completed task has an analysis"
            return (Put(ANALYSES, analysis_row(state, state.analysis, commit.sequence)),)
    return ()


def _worker(commit: Commit) -> Iterable[Change]:
    return (Put(WORKERS, worker_row(commit.state, commit.sequence)),)


def _verdict(commit: Commit) -> Iterable[Change]:
    state: verdict.Verdict = commit.state
    if state.dropped:
        return (Delete(VERDICTS, (state.id,)),)
    return (Put(VERDICTS, verdict_row(state, commit.sequence)),)


def _delivery(commit: Commit) -> Iterable[Change]:
    return (Put(DELIVERIES, delivery_row(commit.state, commit.sequence)),)


ACCESS = TokenModel.of("gctd")
"""The tokens of the tracker."""

_MODEL = ReadModel(
    name="tracker",
    stream="GCTD",
    registry=REGISTRY,
    projections=(
        Projection("repos", 1, (REPOS,), {repo.CATEGORY: _repo}, latest=frozenset({repo.CATEGORY})),
        Projection("tasks", 3, (TASKS,), {task.CATEGORY: _task}, latest=frozenset({task.CATEGORY})),
        Projection("analyses", 5, (ANALYSES,), {task.CATEGORY: _analysis}),
        Projection("verdicts", 1, (VERDICTS,), {verdict.CATEGORY: _verdict}, latest=frozenset({verdict.CATEGORY})),
        Projection("deliveries", 1, (DELIVERIES,), {delivery.CATEGORY: _delivery}, latest=frozenset({delivery.CATEGORY})),
        Projection("workers", 1, (WORKERS,), {worker.CATEGORY: _worker}, latest=frozenset({worker.CATEGORY})),
    ),
    migrations="gctd.readmodel.migrations",
    folds={
        decider.category: decider.fold for decider in (delivery.DELIVERY, repo.REPO, schedule.SCHEDULE, task.TASK, worker.WORKER)
    },
    settings=SettingNames(prefix="GCTD"),
)
MODEL = with_tokens(_MODEL, ACCESS)
