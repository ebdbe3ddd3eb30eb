"""The size of a large system, and its log of the tracker with reports of functions, for `scale.py`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.commit import Appended, Proposal
from eventlog.jetstream.log import JetStreamLog
from eventlog.support.ids import hex_digits
from gctd.broker.blobs import BlobRef, BlobStore
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id
from gctd.domain.remote.urls import parse_repo_url, repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.repo.events import RepoReady, RepoRegistered
from gctd.domain.repo.project import Project
from gctd.domain.task import TASK
from gctd.domain.task.events import STAGES, TaskCompleted, TaskEvent, TaskQueued, TaskStageReached, TaskStarted
from gctd.domain.task.state import Task
from gctd.engines.report import Counts, FunctionEntry, Report, ReportSummary, encode
from gctd.engines.state import State

TOGETHER = 1000
"""Commits of one batch: the most that the server takes."""
CATEGORIES = 100
WORDS = ("wheat", "rye", "oat", "rice", "lentil", "bean", "apple", "pear", "milk", "tea", "salt", "sugar", "oil", "soap", "nut")
START = datetime(2024, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Size:
    """Numbers of a system. `commits` counts the commits of both streams, each with one event."""

    commits: int
    aggregates: int
    tasks: int
    repositories: int
    functions: int

    def parted(self, part: int) -> Size:
        """The same system, smaller by this factor."""
        return Size(**{name: count // part for name, count in attrs.asdict(self).items()})

    @property
    def of_tracker(self) -> int:
        """Commits of the tracker."""
        return 2 * self.repositories + self.tasks * len(STEPS)

    @property
    def products(self) -> int:
        """Products of the pantry: each is two aggregates, since its code is one."""
        return (self.aggregates - self.tasks - self.repositories - CATEGORIES) // 2

    @property
    def movements(self) -> int:
        """Movements of the pantry."""
        return self.commits - self.of_tracker - CATEGORIES - 2 * self.products


WHOLE = Size(commits=10_000_000, aggregates=1_000_000, tasks=100_000, repositories=5_000, functions=2_000_000)
"""The system that `scale.py` makes by default."""


def category_of(number: int) -> str:
    """The id of a category."""
    return str(UUID(int=number + 1))


def repository_url(number: int) -> str:
    """The address of a repository."""
    return f"https://github.com/example/repository-{number}"


def repository(number: int) -> str:
    """The id of a repository."""
    return repo_id(parse_repo_url(repository_url(number)).canonical)


def task_of(number: int) -> str:
    """The id of a task."""
    return f"task-{number:015d}"


def proposal(category_: str, id_: str, event: Any, state: Any, at: datetime, last: Appended | None = None) -> Proposal:
    """A commit of one event after `last`, the first one of its aggregate without it."""
    commit = NewCommit(id=hex_digits(), at=at, events=(NewEvent(event),), state=state)
    expected, prev = (0, None) if last is None else (last.sequence, last.digest)
    return Proposal(aggregate=AggregateId(category_, id_), expected=expected, commit=commit, prev=prev)


def pieces(count: int, size: int = TOGETHER) -> Iterator[range]:
    """The numbers below `count`, in runs of `size`."""
    for begin in range(0, count, size):
        yield range(begin, min(begin + size, count))


STEPS = ("queued", "started", *STAGES, "completed")
"""The commits of a task."""


class Repositories:
    """Repositories with one project each, their tasks, all completed, and the reports. Tasks of a repository share its report."""

    def __init__(self, log: JetStreamLog, blobs: BlobStore, size: Size) -> None:
        self._log = log
        self._blobs = blobs
        self._size = size
        self._reports: list[BlobRef] = []
        self._between = timedelta(days=500) / max(size.tasks, 1)

    async def write(self) -> None:
        """Write all of it."""
        for numbers in pieces(self._size.repositories, 32):
            self._reports += await asyncio.gather(*(self._blobs.put(encode(self._report(number))) for number in numbers))
        for numbers in pieces(self._size.repositories):
            registered = [self._registered(number) for number in numbers]
            stored = await self._log.append_together(registered)
            await self._log.append_together([self._ready(*one) for one in zip(numbers, registered, stored, strict=True)])
        for numbers in pieces(self._size.tasks):
            await self._tasks(numbers)

    def _report(self, number: int) -> Report:
        each = self._size.functions // self._size.repositories
        summary = ReportSummary(14.5, 14.5 * each, each // 40, each)
        entries = tuple(_function(number, index) for index in range(each))
        counts = Counts(files=each // 10, files_skipped=0, covered_functions=each, differing=0)
        return Report(
            engine="native",
            engine_version="0.1.0",
            crap_version="v0.5.1",
            summary=summary,
            entries=entries,
            counts=counts,
            measured=summary,
            states={State.MEASURED.value: each},
        )

    def _registered(self, number: int) -> Proposal:
        url = parse_repo_url(repository_url(number))
        id_ = repo_id(url.canonical)
        event = RepoRegistered(id=id_, url=url.canonical, clone_url=url.clone_url, max_attempts=3, at=START)
        return proposal(REPO.category, id_, event, REPO.evolve(None, event), START)

    def _ready(self, number: int, before: Proposal, last: Appended) -> Proposal:
        project = Project(name=".", module_path=f"example.com/module-{number}", go_version="1.26", packages=12, has_tests=True)
        event = RepoReady(commit_sha=_sha(number), default_ref="main", projects=(project,), at=START)
        state = REPO.evolve(before.commit.state, event)
        return proposal(REPO.category, before.aggregate.id, event, state, START, last)

    async def _tasks(self, numbers: Iterable[int]) -> None:
        """Write the commits of some tasks, step by step."""
        ids = {number: repository(number % self._size.repositories) for number in numbers}
        states: dict[int, Task | None] = dict.fromkeys(ids)
        last: Sequence[Appended | None] = [None] * len(ids)
        for index, step in enumerate(STEPS):
            proposals = []
            for (number, id_), before in zip(ids.items(), last, strict=True):
                at = START + self._between * number + timedelta(seconds=index)
                event = self._event(step, number, id_, at)
                states[number] = state = TASK.evolve(states[number], event)
                proposals.append(proposal(TASK.category, task_of(number), event, state, at, before))
            last = await self._log.append_together(proposals)

    def _event(self, step: str, number: int, id_: str, at: datetime) -> TaskEvent:
        which = number % self._size.repositories
        if step == "queued":
            return TaskQueued(
                id=task_of(number),
                repo_id=id_,
                repo_url=repository_url(which),
                clone_url=repository_url(which),
                project=".",
                ref="main",
                engine="native",
                max_attempts=3,
                config=ProjectConfig(),
                at=at,
            )
        if step == "started":
            return TaskStarted(attempt=1, worker=f"worker-{number % 8}", session=f"{number:032x}", at=at)
        if step != "completed":
            return TaskStageReached(attempt=1, stage=step, at=at)
        return TaskCompleted(attempt=1, analysis=self._analysis(number, which, id_, at), at=at)

    def _analysis(self, number: int, which: int, id_: str, at: datetime) -> Analysis:
        each, report = self._size.functions // self._size.repositories, self._reports[which]
        summary = Summary(average=14.5, combined=14.5 * each, exceeded=each // 40, total_funcs=each)
        return Analysis(
            id=analysis_id(id_, "."),
            ref="main",
            commit_sha=_sha(number),
            summary=summary,
            engine="native",
            engine_version="0.1.0",
            crap_version="v0.5.1",
            go_version="go1.26.6",
            flags=("-count=1",),
            report=Blob(digest=report.digest, size=report.size),
            analyzed_at=at,
            duration_ms=41_000,
            measured=summary,
            states={State.MEASURED.value: each},
            store_source="never",
        )


def _function(number: int, index: int) -> FunctionEntry:
    line = 12 + 14 * (index % 10)
    return FunctionEntry(
        file=f"internal/part{index // 100}/file{index // 10}.go",
        package=f"example.com/module-{number}/internal/part{index // 100}",
        function=f"*Store.Method{index}",
        name=f"Method{index}",
        receiver="*Store",
        line=line,
        end_line=line + 12,
        cyclomatic=1 + index % 17,
        coverage=float((index * 7 + number) % 101),
        stmt_coverage=float((index * 7 + number) % 101),
        crap=1.5 + index % 60,
        state=State.MEASURED,
    )


def function_key(index: int) -> str:
    """The key of a function of a report in addresses."""
    return f"internal:part{index // 100}:Store.Method{index}"


def _sha(number: int) -> str:
    return hashlib.sha1(f"{number}".encode(), usedforsecurity=False).hexdigest()
