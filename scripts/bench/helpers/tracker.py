"""A log of the tracker for benchmarks: tasks as they come and go, some hundred of them under way at any moment."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import attrs

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.commit import Proposal
from eventlog.support.chain import link
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id, profile_path
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task import TASK
from gctd.domain.task.events import TaskCompleted, TaskEvent, TaskQueued, TaskSeen, TaskStageReached, TaskStarted
from gctd.domain.task.state import Task

_REPOS = 997
STAGES = ("clone", "modules", "test", "analyse", "store")


@attrs.define
class _Life:
    """A task under way: its next event, its state, the number and the digest of its last commit."""

    id: str
    events: Iterator[TaskEvent]
    state: Task | None = None
    last: int = 0
    digest: str | None = None


class TrackerLog:
    """Commits of tasks, one event each, in an order in which they could have come; the same for the same seed."""

    def __init__(self, *, under_way: int = 500, seed: int = 1) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a benchmark's data, not a secret
        self._time = datetime(2026, 1, 1, tzinfo=UTC)
        self._tasks = 0
        self._written = 0
        self._lives = [self._begin() for _ in range(under_way)]

    def batch(self, size: int) -> list[Proposal]:
        """The next commits, each of another task (at most as many as are under way), as they are to be appended together.

        They are taken as written, one after the other from the first sequence of an empty stream on.
        """
        chosen = self._random.sample(range(len(self._lives)), size)
        return [self._next(index) for index in chosen]

    def _next(self, index: int) -> Proposal:
        life = self._lives[index]
        event = next(life.events, None)
        if event is None:
            life = self._lives[index] = self._begin()
            event = next(life.events)
        state = life.state = TASK.evolve(life.state, event)
        self._written += 1
        self._time += timedelta(milliseconds=7)
        expected, life.last = life.last, self._written
        commit = NewCommit(id=f"{self._written:032x}", at=self._time, events=(NewEvent(event),), state=state)
        aggregate = AggregateId(TASK.category, life.id)
        proposal = Proposal(aggregate=aggregate, expected=expected, commit=commit, prev=life.digest)
        life.digest = link(aggregate.subject, REGISTRY.encode(commit, (), life.digest))
        return proposal

    def _begin(self) -> _Life:
        self._tasks += 1
        id_ = f"task-{self._random.randrange(10**15):015d}"
        return _Life(id_, self._events(id_, self._tasks))

    def _events(self, id_: str, number: int) -> Iterator[TaskEvent]:
        yield _queued(id_, number, self._time)
        yield TaskStarted(attempt=1, worker=f"worker-{number % 8}", session=f"{number:032x}", at=self._time)
        for stage in STAGES:
            yield TaskStageReached(attempt=1, stage=stage, at=self._time)
        repo_id, project = _repo_id(number), _project(number)
        sha = hashlib.sha1(f"{number}".encode(), usedforsecurity=False).hexdigest()
        digest = hashlib.sha256(f"{number}".encode()).hexdigest()
        summary = Summary(average=self._random.random() * 30, combined=812.25, exceeded=number % 40, total_funcs=1203)
        analysis = Analysis(
            id=analysis_id(repo_id, project),
            ref="main",
            commit_sha=sha,
            summary=summary,
            measured=summary,
            states={"measured": 1203},
            store_source="never",
            engine="native",
            engine_version="0.1.0",
            crap_version="v0.5.1",
            go_version="go1.26.6",
            flags=("-count=1",),
            report=Blob(digest=digest, size=181_203),
            analyzed_at=self._time,
            duration_ms=self._random.randrange(1000, 90_000),
            profile=Blob(digest=digest, size=90_112),
            profile_path=profile_path(repo_id, project, sha),
        )
        yield TaskCompleted(attempt=1, analysis=analysis, at=self._time)
        if self._random.random() < 0.2:
            yield TaskSeen(at=self._time)


def queued(number: int) -> Proposal:
    """The first commit of a task that is not there yet, now."""
    at = datetime.now(UTC)
    event = _queued(f"task-{number:015d}", number, at)
    commit = NewCommit(id=f"{number:032x}", at=at, events=(NewEvent(event),), state=TASK.evolve(None, event))
    return Proposal(aggregate=AggregateId(TASK.category, event.id), expected=0, commit=commit)


def _queued(id_: str, number: int, at: datetime) -> TaskQueued:
    url = f"https://github.com/example/repository-{number % _REPOS}"
    return TaskQueued(
        id=id_,
        repo_id=_repo_id(number),
        repo_url=url,
        clone_url=url,
        project=_project(number),
        ref="main",
        engine="native",
        max_attempts=3,
        config=ProjectConfig(),
        at=at,
    )


def _repo_id(number: int) -> str:
    return hashlib.sha256(f"repo {number % _REPOS}".encode()).hexdigest()[:32]


def _project(number: int) -> str:
    return f"services/part-{number % 5}"
