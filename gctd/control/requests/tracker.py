"""Requests of users to the tracker, as commands on its aggregates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from eventlog import Commands, CommandStep, Context, EventLog, Outcome
from gctd.control.requests.new_tasks import MeasuredTask, NewTasks, ObservedRef, projects_of
from gctd.control.requests.policy import Policy
from gctd.domain.errors import NotFound, Refused
from gctd.domain.remote.refs import parse_ref, parse_subdir
from gctd.domain.remote.urls import RepoUrl, repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import RegisterRepo, RemoveRepo, RequestAnalysis
from gctd.domain.repo.config import ROOT, ProjectConfig
from gctd.domain.repo.events import RepoEvent
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task import TASK
from gctd.domain.task.commands import MarkTask, QueueTask
from gctd.domain.task.events import TaskEvent, TaskQueued
from gctd.domain.task.state import Task
from gctd.domain.upload import UploadedProfile

TaskOutcome = Outcome[Task, TaskEvent]
RepoOutcome = Outcome[Repo, RepoEvent]


def _now() -> datetime:
    return datetime.now(UTC)


class Tracker:
    """The write side of the tracker. Errors: BadInput, NotFound, Refused, and the errors of `Commands.execute`."""

    def __init__(self, log: EventLog, commands: Commands, policy: Policy) -> None:
        self._log = log
        self._commands = commands
        self._policy = policy
        self._tasks = NewTasks(policy)

    def parse_url(self, text: str, field: str = "repo_url") -> RepoUrl:
        """The repository that a text names. Raises BadInput with that field named."""
        return self._policy.repos.parse_url(text, field)

    async def register(self, repo_url: str, *, refresh: bool = False, context: Context | None = None) -> RepoOutcome:
        """Register a repository. Search for the projects of a known one again if it is in error, or with `refresh`."""
        url = self.parse_url(repo_url)
        command = RegisterRepo(
            id=repo_id(url.canonical),
            url=url.canonical,
            clone_url=url.clone_url,
            max_attempts=self._policy.max_attempts,
            at=_now(),
            refresh=refresh,
        )
        return await self._commands.execute(REPO, command.id, command, context)

    async def remove(self, repo_url: str, context: Context | None = None) -> RepoOutcome:
        """End the registration of a repository; its tasks and analyses are the matter of `Removals`.

        Raises BadInput, and NotFound if the repository is not registered.
        """
        id_ = repo_id(self.parse_url(repo_url, "url").canonical)
        return await self._commands.execute(REPO, id_, RemoveRepo(at=_now()), context)

    async def analyze(
        self,
        repo_url: str,
        *,
        project: str | None = None,
        ref: str | None = None,
        once: bool = False,
        engine: str | None = None,
        again: bool = False,
        context: Context | None = None,
    ) -> Sequence[TaskOutcome]:
        """Queue a task for a project of a repository, or for each of them.

        `ref` becomes the root's setting; with `once` it is for these tasks only, and no setting changes. `again`: the tests run
        also if the commit was analysed before.
        """
        engine = self._tasks.engine(engine)
        ref = None if ref is None else parse_ref(ref)
        project = None if project is None else parse_subdir(project)
        known = await self._ready(repo_url)
        names = projects_of(known, project)
        at = _now()
        if ref is not None and not once:
            root = known.configs.get(ROOT, ProjectConfig())
            known = attrs.evolve(known, configs={**known.configs, ROOT: attrs.evolve(root, ref=ref)})
        ids = self._tasks.ids(at, len(names))
        queue = [self._tasks.of_project(known, name, id_, engine, at) for name, id_ in zip(names, ids, strict=True)]
        if ref is not None and once:
            queue = [attrs.evolve(one, ref=ref, config=attrs.evolve(one.config, ref=ref)) for one in queue]
        if again:
            queue = [attrs.evolve(one, reuse_since=None) for one in queue]
        return await self._request(known, queue, context, ref=None if once else ref)

    async def rescan(
        self, known: Repo, seen: Sequence[ObservedRef], *, default_ref: str = "", context: Context | None = None
    ) -> Sequence[TaskOutcome]:
        """Queue a task for each of these commits, of different projects of a repository.

        `default_ref` is the default branch, if it has another name now.
        Raises Overtaken if another analysis was requested after the state `known`.
        """
        at = _now()
        queue = [
            attrs.evolve(
                self._tasks.of_project(known, one.project, id_, self._policy.engine, at), ref=one.ref, commit_sha=one.commit_sha
            )
            for one, id_ in zip(seen, self._tasks.ids(at, len(seen)), strict=True)
        ]
        commits = {one.project: one.commit_sha for one in seen}
        return await self._request(known, queue, context, commits=commits, default_ref=default_ref, requests=known.requests)

    async def analyze_base(self, known: Repo, head: Task, commit_sha: str, context: Context | None = None) -> TaskOutcome:
        """Queue a task for another commit of a project. It is analysed in the same way as `head`, as a base for comparison.

        Raises Overtaken if another analysis was requested after the state `known`.
        """
        at = _now()
        (id_,) = self._tasks.ids(at, 1)
        queue = self._tasks.of_base(known, head, commit_sha, id_, at)
        (outcome,) = await self._request(known, [queue], context, requests=known.requests)
        return outcome

    async def score_uploads(
        self,
        known: Repo,
        project: str,
        commit_sha: str,
        uploads: tuple[UploadedProfile, ...],
        *,
        ref: str | None = None,
        context: Context | None = None,
    ) -> TaskOutcome:
        """Queue a task that scores profiles of a commit of a project that were made elsewhere.

        Raises Overtaken if another analysis was requested since the repository was as `known` has it.
        """
        at = _now()
        (id_,) = self._tasks.ids(at, 1)
        queue = self._tasks.of_project(known, project, id_, self._policy.engine, at)
        queue = attrs.evolve(queue, ref=ref or queue.ref, commit_sha=commit_sha, uploads=uploads, reuse_since=None)
        (outcome,) = await self._request(known, [queue], context, requests=known.requests)
        return outcome

    async def analyze_commit(
        self,
        known: Repo,
        names: Sequence[str],
        *,
        ref: str,
        commit_sha: str,
        pull: bool,
        step: Callable[[Sequence[str]], CommandStep[Any, Any, Any]],
    ) -> Sequence[TaskOutcome]:
        """Queue a task for a commit of these projects, in one append with the step that `step` makes of the ids of the tasks.

        The analysis of a pull request (`pull`) serves only for comparisons: its ref may be of another repository.
        Raises Overtaken if another analysis was requested after the state `known`.
        """
        at, queue = _now(), []
        for name, id_ in zip(names, self._tasks.ids(at, len(names)), strict=True):
            made = self._tasks.of_project(known, name, id_, self._policy.engine, at)
            queue.append(attrs.evolve(made, ref=ref, commit_sha=commit_sha, baseline=pull))
        also = step([one.id for one in queue])
        return await self._request(known, queue, None, also=[also], requests=known.requests)

    async def rescore(
        self, known: Repo, measured: Sequence[MeasuredTask], *, engine: str | None = None, context: Context | None = None
    ) -> Sequence[TaskOutcome]:
        """Queue a task for each of these test runs, at most MOST_PROJECTS, that scores its stored profile again.

        What the tests ran with stays; how functions are scored is the project's present setting.
        """
        engine = self._tasks.engine(engine)
        at = _now()
        queue = [
            self._tasks.of_profile(known, run, id_, engine, at)
            for run, id_ in zip(measured, self._tasks.ids(at, len(measured)), strict=True)
        ]
        return await self._request(known, queue, context)

    async def _request(
        self,
        known: Repo,
        queue: Sequence[TaskQueued],
        context: Context | None,
        *,
        also: Sequence[CommandStep[Any, Any, Any]] = (),
        **more: Any,
    ) -> Sequence[TaskOutcome]:
        """Queue the tasks, and record the request in the repository: `more` are fields of RequestAnalysis."""
        request = RequestAnalysis(tasks=tuple(one.id for one in queue), at=queue[0].at, **more)
        outcomes = await self._commands.execute_together(
            [CommandStep(REPO, known.id, request), *(CommandStep(TASK, one.id, QueueTask(one)) for one in queue), *also],
            context,
        )
        return outcomes[1 : 1 + len(queue)]

    async def registered(self, repo_url: str) -> Repo:
        """Return the current state of a repository. Raises BadInput, NotFound."""
        return await self.registered_as(repo_id(self.parse_url(repo_url).canonical), repo_url)

    async def registered_as(self, id_: str, name: str = "the repository") -> Repo:
        """Return the current state of the repository with that id. Raises NotFound with its name."""
        commit = await self._log.last(REPO.aggregate(id_), consistent=True)
        if commit is None:
            raise NotFound(f"{name} is not registered: register it first")
        known: Repo = commit.state
        if known.status is RepoStatus.REMOVED:
            raise NotFound(f"{name} was removed: register it first")
        return known

    async def _ready(self, repo_url: str) -> Repo:
        known = await self.registered(repo_url)
        if known.status is RepoStatus.REGISTERING:
            raise Refused(f"{known.url} is still registering")
        if known.status is RepoStatus.ERROR:
            raise Refused(f"{known.url} could not be registered: {known.reason}")
        return known

    async def hide_tasks(self, task_ids: Sequence[str], context: Context | None = None) -> int:
        """Hide the ended tasks among these. Return the sequence of the last stored commit: 0 if no task changed."""
        limit = asyncio.Semaphore(256)

        async def hide(task_id: str) -> int:
            async with limit:
                try:
                    outcome = await self._commands.execute(TASK, task_id, MarkTask(hide=True, at=_now()), context)
                except NotFound:
                    return 0  # deleted since
                return outcome.sequence if outcome.events else 0

        return max(await asyncio.gather(*map(hide, task_ids)), default=0)
