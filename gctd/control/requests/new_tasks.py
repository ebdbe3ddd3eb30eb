"""New tasks of a repository: the projects, the ids, and the commands that queue them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from random import SystemRandom

import attrs

from eventlog import EventLog
from gctd.control.requests.policy import MOST_PROJECTS, Policy
from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.errors import BadInput, NotFound, Refused
from gctd.domain.options import parse_crap_args
from gctd.domain.repo.config import effective, tracked_ref
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.events import TaskQueued
from gctd.domain.task.state import Task
from gctd.readmodel.views import TaskView


@attrs.frozen(kw_only=True)
class ObservedRef:
    """The commit of a project's ref at the remote."""

    project: str
    ref: str
    commit_sha: str


@attrs.frozen(kw_only=True)
class MeasuredTask:
    """A task that has run tests or used an earlier run, its analysis, and the position of the analysis in the log."""

    task: Task
    analysis: Analysis
    sequence: int

    @property
    def measurement(self) -> Measurement:
        """The test run with its own flags, without the scoring flags at the end of the list."""
        flags, scoring = self.analysis.flags, parse_crap_args(self.task.config.crap_args or ()).argv()
        if scoring and flags[-len(scoring) :] == scoring:
            flags = flags[: -len(scoring)]
        return Measurement(
            task=self.analysis.reused_from or self.task.id,
            sequence=self.sequence,
            go_version=self.analysis.go_version,
            flags=flags,
            profile=self.analysis.profile,
            profile_path=self.analysis.profile_path,
            metadata=self.analysis.metadata,
            uncovered=self.analysis.uncovered,
            sandbox=self.analysis.sandbox,
            tests=self.analysis.tests,
            platform=self.analysis.platform,
            source=self.analysis.source,
        )


class NewTasks:
    """Makes the commands that queue tasks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._random = SystemRandom()

    def engine(self, name: str | None) -> str:
        """Return the engine of that name; without a name, the default engine."""
        if name is not None and name not in self._policy.engines:
            raise BadInput("engine", f"no engine is called {name!r}; there are {', '.join(sorted(self._policy.engines))}")
        return name or self._policy.engine

    def ids(self, at: datetime, count: int) -> Sequence[str]:
        """New ids `task-<digits>` in a row: milliseconds since 1970, then six digits that begin anywhere."""
        first = int(at.timestamp() * 1000) * 10**6 + self._random.randrange(10**6 - count)
        return [f"task-{first + index}" for index in range(count)]

    def of_project(self, known: Repo, project: str, id_: str, engine: str, at: datetime) -> TaskQueued:
        """Return the task of a project on the ref that it tracks, with its present settings."""
        config = effective(known.configs, project)
        return TaskQueued(
            id=id_,
            repo_id=known.id,
            repo_url=known.url,
            clone_url=known.clone_url,
            project=project,
            ref=tracked_ref(known.configs, known.default_ref, project),
            engine=engine,
            max_attempts=self._policy.max_attempts,
            config=config,
            at=at,
            reuse_since=known.created_at,
            go_version=next((found.go_version for found in known.projects if found.name == project), ""),
        )

    def of_base(self, known: Repo, head: Task, commit_sha: str, id_: str, at: datetime) -> TaskQueued:
        """Return the task for another commit of a project, analysed in the same way as `head`."""
        return attrs.evolve(
            self.of_project(known, head.project, id_, head.engine, at),
            ref=head.ref,
            config=head.config,
            commit_sha=commit_sha,
            baseline=True,
            reuse_since=None,
            go_version=head.go_version,
        )

    def of_profile(self, known: Repo, run: MeasuredTask, id_: str, engine: str, at: datetime) -> TaskQueued:
        """Return the task that scores a stored profile again."""
        made = self.of_project(known, run.task.project, id_, engine, at)
        return attrs.evolve(
            made,
            ref=run.analysis.ref,
            config=attrs.evolve(run.task.config, crap_args=made.config.crap_args),
            commit_sha=run.analysis.commit_sha,
            rescores=run.measurement,
            reuse_since=None,
            go_version="",
        )


async def may_be_latest(log: EventLog, task: TaskView, tracked: str) -> bool:
    """Report whether the commit of a task can become its project's latest analysis by this task (`gctd.readmodel.latest`).

    The commit of another ref than the tracked one, of a pull request or of a base never does. Scoring an earlier test run does
    not make that run the last one.
    """
    if task.ref != tracked:
        return False
    last = await log.last(TASK.aggregate(task.id))
    return last is None or not (last.state.baseline or last.state.rescores)


def projects_of(known: Repo, project: str | None) -> Sequence[str]:
    """Return the names of the projects that a request is for: one, or each that can be analysed. Raises NotFound, Refused."""
    problems = {found.name: found.problem for found in known.projects}
    if project is None:
        names = [name for name, problem in problems.items() if problem is None]
        if not names:
            raise Refused(f"{known.url} has no project that can be analysed")
        if len(names) > MOST_PROJECTS:
            raise Refused(f"{known.url} has {len(names)} projects; name one at a time")
        return names
    if project not in problems:
        raise NotFound(f"{known.url} has no project {project!r}; it has: {', '.join(sorted(problems)[:20])}")
    if problems[project] is not None:
        raise Refused(f"{project} cannot be analysed: {problems[project]}")
    return [project]
