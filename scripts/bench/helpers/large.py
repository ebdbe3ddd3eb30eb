"""Large logs of the pantry and the tracker, with reports of functions, for `scale.py`: written by the log, in batches."""

from __future__ import annotations

import asyncio
import hashlib
import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs

from eventlog import AggregateId, Appended, NewCommit, NewEvent, Proposal
from eventlog.broker.blobs import BlobRef, BlobStore
from eventlog.jetstream.log import JetStreamLog
from eventlog.support.ids import hex_digits
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
from pantry.domain import barcode, category, product
from pantry.domain.ean13 import check_digit
from pantry.domain.product import Details, MovementRecorded, MovementType, Product, ProductCreated

TOGETHER = 1000
"""Commits of one batch: the most that the server takes."""
CATEGORIES = 100
WORDS = ("wheat", "rye", "oat", "rice", "lentil", "bean", "apple", "pear", "milk", "tea", "salt", "sugar", "oil", "soap", "nut")
START = datetime(2024, 1, 1, tzinfo=UTC)
SKEW = 3
"""A movement is of product n * r**SKEW, where r is uniform: the first tenth of the products has 46 % of the movements."""
MOVING = 2
"""Writers of movements at a time, each with separate products."""


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


def code(number: int) -> str:
    """The EAN-13 of a product."""
    first = f"{400000000000 + number}"
    return f"{first}{check_digit(first)}"


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


def _proposal(category_: str, id_: str, event: Any, state: Any, at: datetime, last: Appended | None = None) -> Proposal:
    commit = NewCommit(id=hex_digits(), at=at, events=(NewEvent(event),), state=state)
    expected, prev = (0, None) if last is None else (last.sequence, last.digest)
    return Proposal(aggregate=AggregateId(category_, id_), expected=expected, commit=commit, prev=prev)


def _pieces(count: int, size: int = TOGETHER) -> Iterator[range]:
    for begin in range(0, count, size):
        yield range(begin, min(begin + size, count))


class Stock:
    """Products and their movements. A product is kept as a few numbers, since a million of them are under way at once."""

    def __init__(self, log: JetStreamLog, size: Size) -> None:
        self._log = log
        self._size = size
        self._sequences, self._stocks, self._versions = array("q"), array("q"), array("l")
        self._digests: list[str | None] = []
        self._moved = 0
        self._random = random.Random(1)  # noqa: S311 - a benchmark's data, not a secret
        self._between = timedelta(days=500) / max(size.movements, 1)

    async def write(self) -> None:
        """Write all of it."""
        await self._log.append_together([self._category(number) for number in range(CATEGORIES)])
        for numbers in _pieces(self._size.products, TOGETHER // 2):
            stored = await self._log.append_together([one for number in numbers for one in self._creation(number)])
            for appended in stored[::2]:
                self._sequences.append(appended.sequence)
                self._digests.append(appended.digest)
                self._stocks.append(0)
                self._versions.append(1)
        await asyncio.gather(*map(self._write_movements, range(MOVING)))

    def _category(self, number: int) -> Proposal:
        event = category.CategoryCreated(id=category_of(number), name=f"category {number}", description="", at=START)
        return _proposal(category.CATEGORY_CATEGORY, event.id, event, category.evolve(None, event), START)

    def _creation(self, number: int) -> Iterator[Proposal]:
        ean13 = code(number)
        event = ProductCreated(ean13=ean13, details=_details(number), at=START)
        yield _proposal(product.CATEGORY, ean13, event, product.evolve(None, event), START)
        named = barcode.BarcodeAssigned(code=ean13, ean13=ean13, factor=1000, at=START)
        yield _proposal(barcode.CATEGORY, ean13, named, barcode.evolve(None, named), START)

    async def _write_movements(self, part: int) -> None:
        """Write a share of the movements, of the products whose number leaves `part` if divided."""
        while (size := min(TOGETHER, self._size.products // MOVING // 2, self._size.movements - self._moved)) > 0:
            self._moved += size
            numbers = self._chosen(size, part)
            proposals = [self._movement(number, self._moved + index) for index, number in enumerate(numbers)]
            for number, appended in zip(numbers, await self._log.append_together(proposals), strict=True):
                self._sequences[number], self._digests[number] = appended.sequence, appended.digest

    def _chosen(self, size: int, part: int) -> Sequence[int]:
        count = self._size.products // MOVING
        chosen = dict[int, None]()
        while len(chosen) < size:
            chosen[int(count * self._random.random() ** SKEW) * MOVING + part] = None
        return list(chosen)

    def _movement(self, number: int, at_step: int) -> Proposal:
        stock = self._stocks[number]
        goes_out = stock >= 2000 and self._random.random() < 0.5
        quantity = 1000 * self._random.randrange(1, 3 if goes_out else 5)
        self._stocks[number] = after = stock - quantity if goes_out else stock + quantity
        at, ean13 = START + self._between * at_step, code(number)
        event = MovementRecorded(
            id=str(UUID(hex_digits())),
            type=MovementType.OUT if goes_out else MovementType.IN,
            quantity=quantity,
            stock=after,
            reason="weekly shopping",
            notes="",
            created_by="",
            at=at,
        )
        self._versions[number] += 1
        state = Product(
            ean13=ean13,
            details=_details(number),
            created_at=START,
            updated_at=at,
            stock=after,
            version=self._versions[number],
        )
        last = Appended(self._sequences[number], digest=self._digests[number])
        return _proposal(product.CATEGORY, ean13, event, state, at, last)


def _details(number: int) -> Details:
    name = f"{WORDS[number % len(WORDS)]} {number}"
    return Details(name=name, description="", unit="pcs", min_stock=1000, category_id=category_of(number % CATEGORIES))


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
        for numbers in _pieces(self._size.repositories, 32):
            self._reports += await asyncio.gather(*(self._blobs.put(encode(self._report(number))) for number in numbers))
        for numbers in _pieces(self._size.repositories):
            registered = [self._registered(number) for number in numbers]
            stored = await self._log.append_together(registered)
            await self._log.append_together([self._ready(*one) for one in zip(numbers, registered, stored, strict=True)])
        for numbers in _pieces(self._size.tasks):
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
        return _proposal(REPO.category, id_, event, REPO.evolve(None, event), START)

    def _ready(self, number: int, before: Proposal, last: Appended) -> Proposal:
        project = Project(name=".", module_path=f"example.com/module-{number}", go_version="1.26", packages=12, has_tests=True)
        event = RepoReady(commit_sha=_sha(number), default_ref="main", projects=(project,), at=START)
        state = REPO.evolve(before.commit.state, event)
        return _proposal(REPO.category, before.aggregate.id, event, state, START, last)

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
                proposals.append(_proposal(TASK.category, task_of(number), event, state, at, before))
            last = await self._log.append_together(proposals)

    def _event(self, step: str, number: int, id_: str, at: datetime) -> TaskEvent:
        which = number % self._size.repositories
        if step == "queued":
            return TaskQueued(
                id=task_of(number),
                repo_id=id_,
                repo_url=repository_url(which),
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
