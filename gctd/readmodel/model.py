"""Which rows a commit on the stream GCTD puts or deletes."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog import Commit
from gctd.domain import repo, task, worker
from gctd.domain.registry import REGISTRY
from gctd.readmodel.tables import (
    ANALYSES,
    REPOS,
    TASKS,
    WORKERS,
    analysis_row,
    repo_row,
    task_row,
    worker_row,
)
from projections.model import Change, Delete, Projection, Put, ReadModel


def _repo(commit: Commit) -> Iterable[Change]:
    return (Put(REPOS, repo_row(commit.state, commit.sequence)),)


def _task(commit: Commit) -> Iterable[Change]:
    state: task.Task = commit.state
    if state.deleted:
        return (Delete(TASKS, (state.id,)),)
    return (Put(TASKS, task_row(state, commit.sequence)),)


def _analysis(commit: Commit) -> Iterable[Change]:
    """An analysis outlives its task: a list of tasks is cleared, the history of a project is not."""
    completed = "TaskCompleted"
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


MODEL = ReadModel(
    name="tracker",
    stream="GCTD",
    registry=REGISTRY,
    projections=(
        Projection("repos", 1, (REPOS,), {repo.CATEGORY: _repo}, latest=frozenset({repo.CATEGORY})),
        Projection("tasks", 3, (TASKS,), {task.CATEGORY: _task}, latest=frozenset({task.CATEGORY})),
        Projection("analyses", 3, (ANALYSES,), {task.CATEGORY: _analysis}),
        Projection("workers", 1, (WORKERS,), {worker.CATEGORY: _worker}, latest=frozenset({worker.CATEGORY})),
    ),
    migrations="gctd.readmodel.migrations",
)
