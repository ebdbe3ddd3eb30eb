"""What users ask of the tracker, as commands on its aggregates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import SystemRandom

import attrs

from eventlog import Context, EventLog
from eventlog.commands import Commands, Outcome, Step
from gctd.domain import repo, task, worker
from gctd.domain.config import effective
from gctd.domain.errors import BadInput, NotFound, Refused
from gctd.domain.refs import parse_ref, parse_subdir
from gctd.domain.repo import REPO, Repo, RepoStatus
from gctd.domain.task import TASK, Task
from gctd.domain.urls import RepoUrl, repo_id
from gctd.domain.worker import WORKER
from gctd.policy import RepoPolicy

MOST_PROJECTS = 999
"""Tasks that one request may queue: with the repository's own commit they fill an atomic batch."""


@attrs.frozen(kw_only=True)
class Policy:
    """Which repositories the operator allows, and the defaults for new work."""

    repos: RepoPolicy = attrs.field(factory=RepoPolicy)
    engine: str = "native"
    engines: frozenset[str] = frozenset({"native"})
    max_attempts: int = 3


def _now() -> datetime:
    return datetime.now(UTC)


class Tracker:
    """The write side of the tracker. Errors: those of `Commands.execute`, BadInput, NotFound, Refused."""

    def __init__(self, log: EventLog, commands: Commands, policy: Policy, *, now: Callable[[], datetime] = _now) -> None:
        self._log = log
        self._commands = commands
        self._policy = policy
        self._now = now
        self._random = SystemRandom()

    def parse_url(self, text: str, field: str = "repo_url") -> RepoUrl:
        """The repository that a text names. Raises BadInput with that field named."""
        return self._policy.repos.parse_url(text, field)

    async def register(
        self, repo_url: str, *, refresh: bool = False, context: Context | None = None
    ) -> Outcome[Repo, repo.RepoEvent]:
        """Make a repository known; look for the projects of a known one again where it is in error, or with `refresh`."""
        url = self.parse_url(repo_url)
        command = repo.RegisterRepo(
            id=repo_id(url.canonical),
            url=url.canonical,
            clone_url=url.clone_url,
            max_attempts=self._policy.max_attempts,
            at=self._now(),
            refresh=refresh,
        )
        return await self._commands.execute(REPO, command.id, command, context)

    async def analyze(
        self,
        repo_url: str,
        *,
        project: str | None = None,
        ref: str | None = None,
        engine: str | None = None,
        context: Context | None = None,
    ) -> Sequence[Outcome[Task, task.TaskEvent]]:
        """Queue a task for a project of a repository, or for each of them; `ref` becomes the root's setting."""
        if engine is not None and engine not in self._policy.engines:
            raise BadInput("engine", f"no engine is called {engine!r}; there are {', '.join(sorted(self._policy.engines))}")
        known = await self._ready(repo_url)
        if ref is not None:
            ref = parse_ref(ref)
        names = self._projects(known, project)
        at = self._now()
        if ref is not None:
            root = known.configs.get("", effective({}, ""))
            known = attrs.evolve(known, configs={**known.configs, "": attrs.evolve(root, ref=ref)})
        ids = self._task_ids(at, len(names))
        queue = [self._queue(known, name, id_, engine or self._policy.engine, at) for name, id_ in zip(names, ids, strict=True)]
        request = repo.RequestAnalysis(tasks=tuple(command.id for command in queue), ref=ref, at=at)
        outcomes = await self._commands.execute_together(
            [Step(REPO, known.id, request), *(Step(TASK, command.id, command, new=True) for command in queue)], context
        )
        return outcomes[1:]

    async def _ready(self, repo_url: str) -> Repo:
        id_ = repo_id(self.parse_url(repo_url).canonical)
        commit = await self._log.last(REPO.aggregate(id_), consistent=True)
        if commit is None:
            raise NotFound(f"{repo_url} is not registered: register it first")
        known: Repo = commit.state
        if known.status is RepoStatus.REGISTERING:
            raise Refused(f"{known.url} is still registering")
        if known.status is RepoStatus.ERROR:
            raise Refused(f"{known.url} could not be registered: {known.reason}")
        return known

    @staticmethod
    def _projects(known: Repo, project: str | None) -> Sequence[str]:
        problems = {found.name: found.problem for found in known.projects}
        if project is None:
            names = [name for name, problem in problems.items() if problem is None]
            if not names:
                raise Refused(f"{known.url} has no project that can be analysed")
            if len(names) > MOST_PROJECTS:
                raise Refused(f"{known.url} has {len(names)} projects; name one at a time")
            return names
        name = parse_subdir(project)
        if name not in problems:
            raise NotFound(f"{known.url} has no project {name!r}; it has: {', '.join(sorted(problems)[:20])}")
        if problems[name] is not None:
            raise Refused(f"{name} cannot be analysed: {problems[name]}")
        return [name]

    def _task_ids(self, at: datetime, count: int) -> Sequence[str]:
        """New ids `task-<digits>` in a row: milliseconds since 1970, then six digits that begin anywhere."""
        first = int(at.timestamp() * 1000) * 10**6 + self._random.randrange(10**6 - count)
        return [f"task-{first + index}" for index in range(count)]

    def _queue(self, known: Repo, project: str, id_: str, engine: str, at: datetime) -> task.QueueTask:
        config = effective(known.configs, project)
        return task.QueueTask(
            id=id_,
            repo_id=known.id,
            repo_url=known.url,
            project=project,
            ref=config.ref or known.default_ref,
            engine=engine,
            max_attempts=self._policy.max_attempts,
            config=config,
            at=at,
        )

    async def delete_task(self, task_id: str, context: Context | None = None) -> Outcome[Task, task.TaskEvent]:
        """Remove a task; one that is under way is cancelled."""
        return await self._on_task(task_id, task.DeleteTask(at=self._now()), context)

    async def mark_seen(self, task_id: str, context: Context | None = None) -> Outcome[Task, task.TaskEvent]:
        """Mark a task as seen."""
        return await self._on_task(task_id, task.MarkTask(hide=False, at=self._now()), context)

    async def hide_tasks(self, task_ids: Sequence[str], context: Context | None = None) -> int:
        """Hide these tasks, and give the last sequence that this led to: 0 where there was nothing to hide."""
        limit = asyncio.Semaphore(256)

        async def hide(task_id: str) -> int:
            async with limit:
                try:
                    outcome = await self._on_task(task_id, task.MarkTask(hide=True, at=self._now()), context)
                except NotFound:
                    return 0  # deleted meanwhile
                return outcome.sequence if outcome.events else 0

        return max(await asyncio.gather(*map(hide, task_ids)), default=0)

    async def _on_task(self, task_id: str, command: task.TaskCommand, context: Context | None) -> Outcome[Task, task.TaskEvent]:
        return await self._commands.execute(TASK, task_id, command, context)

    async def pause_worker(
        self, worker_id: str, *, paused: bool, context: Context | None = None
    ) -> Outcome[worker.Worker, worker.WorkerEvent]:
        """Let a worker take no more jobs, or take them again."""
        command = worker.PauseWorker(paused=paused, at=self._now())
        return await self._commands.execute(WORKER, worker_id, command, context)
