"""Rows that a commit on the stream GCTD puts or deletes."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog import Commit
from gctd.domain import verdict, worker
from gctd.domain.delivery import DELIVERY
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import REPO
from gctd.domain.repo.config import ROOT, tracked_ref
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task import TASK
from gctd.domain.task.state import Task
from gctd.readmodel.changes import DECIDERS
from gctd.readmodel.tables import (
    ANALYSES,
    DELIVERIES,
    REPOS,
    TASKS,
    TRACKED_REFS,
    VERDICTS,
    WORKERS,
)
from projections import Change, Delete, Projection, Put, ReadModel, SettingNames, StreamSetting
from servicekit.access import TokenModel, with_tokens


def _repo(commit: Commit) -> Iterable[Change]:
    state: Repo = commit.state
    if state.status is RepoStatus.REMOVED:
        return (Delete(REPOS, (state.id,)),)
    return (Put(REPOS, REPOS.row(state, sequence=commit.sequence)),)


def _tracked_refs(commit: Commit) -> Iterable[Change]:
    """The root's ref, and the one of each project that has a setting. A row goes with its setting, and with the repository."""
    state: Repo = commit.state
    configured, forgotten = "ProjectConfigured", "ProjectConfigRemoved"
    before = {ROOT, *state.configs}
    if commit.may_have(configured) or commit.may_have(forgotten):
        before |= {event.data.subdir for event in commit.events if event.type in (configured, forgotten)}
    after = {ROOT, *(key for key, config in state.configs.items() if config.ref is not None)}
    if state.status is RepoStatus.REMOVED:
        after = set()
    for key in sorted(before - after):
        yield Delete(TRACKED_REFS, (state.id, key))
    for key in sorted(after):
        tracked = tracked_ref(state.configs, state.default_ref, key)
        yield Put(TRACKED_REFS, TRACKED_REFS.row(state, subdir=key, tracked=tracked))


def _task(commit: Commit) -> Iterable[Change]:
    state: Task = commit.state
    if state.deleted:
        return (Delete(TASKS, (state.id,)),)
    return (Put(TASKS, TASKS.row(state, sequence=commit.sequence)),)


def _analysis(commit: Commit) -> Iterable[Change]:
    """An analysis outlives its task: a list of tasks is cleared, the history of a project is not. It goes with its repository."""
    completed, dropped = "TaskCompleted", "TaskDropped"
    if commit.may_have(dropped) and any(event.type == dropped for event in commit.body.events):
        return (Delete(ANALYSES, (commit.state.id,)),)
    if not commit.may_have(completed):
        return ()
    for event in commit.body.events:
        if event.type == completed:
            state: Task = commit.state
            measured = state.rescores.sequence if state.rescores else commit.sequence
            return (Put(ANALYSES, ANALYSES.row(state, sequence=commit.sequence, measured=measured)),)
    return ()


def _worker(commit: Commit) -> Iterable[Change]:
    return (Put(WORKERS, WORKERS.row(commit.state, sequence=commit.sequence)),)


def _verdict(commit: Commit) -> Iterable[Change]:
    state: verdict.Verdict = commit.state
    if state.dropped:
        return (Delete(VERDICTS, (state.id,)),)
    return (Put(VERDICTS, VERDICTS.row(state, sequence=commit.sequence)),)


def _delivery(commit: Commit) -> Iterable[Change]:
    return (Put(DELIVERIES, DELIVERIES.row(commit.state, sequence=commit.sequence)),)


ACCESS = TokenModel.of("gctd")
"""The tokens of the tracker."""

_MODEL = ReadModel(
    name="tracker",
    stream="GCTD",
    registry=REGISTRY,
    projections=(
        Projection("repos", 1, (REPOS,), {REPO.category: _repo}, latest=frozenset({REPO.category})),
        Projection("tracked_refs", 1, (TRACKED_REFS,), {REPO.category: _tracked_refs}),
        Projection("tasks", 1, (TASKS,), {TASK.category: _task}, latest=frozenset({TASK.category})),
        Projection("analyses", 1, (ANALYSES,), {TASK.category: _analysis}),
        Projection("verdicts", 1, (VERDICTS,), {verdict.CATEGORY: _verdict}, latest=frozenset({verdict.CATEGORY})),
        Projection("deliveries", 1, (DELIVERIES,), {DELIVERY.category: _delivery}, latest=frozenset({DELIVERY.category})),
        Projection("workers", 1, (WORKERS,), {worker.CATEGORY: _worker}, latest=frozenset({worker.CATEGORY})),
    ),
    migrations="gctd.readmodel.migrations",
    folds={category: decider.fold for category, decider in DECIDERS.items()},
    settings=SettingNames(
        prefix="GCTD",
        streams=(
            StreamSetting("presence_ttl", "gctd-workers", "ttl", duration=True),
            StreamSetting("ack_wait", "crap-workers", "ack_wait", duration=True),
        ),
    ),
)
MODEL = with_tokens(_MODEL, ACCESS)
