"""Every query of every read model gives the same on each database: a query that only one of them understands is found here."""

from __future__ import annotations

import contextlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import entry_points
from itertools import combinations
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from gctd.domain.analysis import Analysis, Measurement, analysis_id
from gctd.domain.delivery.state import Delivery, DeliveryStatus
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task.state import Task, TaskStatus
from gctd.domain.verdict import Result, Verdict
from gctd.domain.worker import Worker
from gctd.readmodel import graph
from gctd.readmodel.graph import TrackerGraph
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.tables import (
    ANALYSES,
    DELIVERIES,
    REPOS,
    TASKS,
    TRACKED_REFS,
    VERDICTS,
    WORKERS,
)
from pantry.domain.barcode import Barcode
from pantry.domain.category import Category
from pantry.domain.person import Person
from pantry.domain.product import Details, MovementRecorded, MovementType, Product, ProductEdited, StockConfirmed
from pantry.readmodel import graph as pantry_graph
from pantry.readmodel.graph import PantryGraph
from pantry.readmodel.queries import PantryQueries
from pantry.readmodel.statements import MOVEMENTS_OF_ALL
from pantry.readmodel.tables import (
    BARCODES,
    CATEGORIES,
    ERASURES,
    MOVEMENTS,
    PRODUCT_VERSIONS,
    PRODUCTS,
    STOCKTAKES,
    name_key,
)
from projections import models
from projections.migrations import Migrations
from projections.model import Put, ReadModel, timestamp_text
from projections.queries import ListPart
from projections.store import Argument, Checkpoint, Row, Step, Store
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.support import ROOT
from tests.support.log.samples import sample

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
EANS = ("4006381333931", "4006381333948", "4006381333955", "4006381333962")
NAMES = ("Zucker", "äpfel", "Apfel", "\U0001f9ea Salz_100%", "bread")


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def tracker_rows() -> Iterator[Put]:
    """Repositories, tasks in every status, analyses with their rescorings, workers."""
    for number, status in enumerate(status for status in RepoStatus if status is not RepoStatus.REMOVED):
        url = f"https://example.com/{'Ba'[number % 2]}{number}"
        repo = attrs.evolve(sample(Repo), id=f"r{number}", url=url, status=status, requested=at(number // 2))
        yield Put(REPOS, REPOS.row(repo, sequence=number + 1))
        yield Put(TRACKED_REFS, TRACKED_REFS.row(repo, subdir="", tracked=sample(Analysis).ref))
    yield Put(TRACKED_REFS, ("r1", "part-0", "main"))
    sequence = 10
    for number in range(40):
        sequence += 1
        repo, project = f"r{number % 3}", f"part-{number % 2}"
        analysis = attrs.evolve(
            sample(Analysis),
            id=analysis_id(repo, project),
            commit_sha=f"{'ab'[number % 2]}{number % 5}" * 20,
            analyzed_at=at(number),
            reused_from=None,
        )
        task = attrs.evolve(
            sample(Task),
            id=f"task-{number}",
            repo_id=repo,
            repo_url=f"https://example.com/{repo}",
            project=project,
            commit_sha=analysis.commit_sha,
            status=list(TaskStatus)[number % len(TaskStatus)],
            seen=number % 4 == 1,
            baseline=False,
            hidden=number % 7 == 1,
            waiting_since=at(number % 5),
            created_at=at(number // 3 + 0.000001 * number),
            analysis=analysis,
            rescores=attrs.evolve(sample(Measurement), task=f"task-{number - 6}", sequence=sequence - 6)
            if number % 5 == 4
            else None,
        )
        yield Put(TASKS, TASKS.row(task, sequence=sequence))
        measured = task.rescores.sequence if task.rescores else sequence
        yield Put(ANALYSES, ANALYSES.row(task, sequence=sequence, measured=measured))
    for number in range(4):
        result = Result.UNKNOWN if number % 2 else Result.PASSED
        verdict = attrs.evolve(sample(Verdict), id=f"v{number}", repo_id=f"r{number}", result=result, asked_at=at(number))
        yield Put(VERDICTS, VERDICTS.row(verdict, sequence=55 + number))
    for number, step in enumerate(DeliveryStatus):
        delivery = attrs.evolve(
            sample(Delivery), id=f"d{number}", repo_id="r1", commit_sha="b3" * 20, status=step, received_at=at(9 - number)
        )
        yield Put(DELIVERIES, DELIVERIES.row(delivery, sequence=70 + number))
    for number in range(3):
        worker = attrs.evolve(sample(Worker), id=f"w{2 - number}", running=number == 1)
        yield Put(WORKERS, WORKERS.row(worker, sequence=60 + number))


def pantry_rows() -> Iterator[Put]:
    """Categories, products with two versions, two codes and two stocktakes each, movements of which some are undone."""
    for number, name in enumerate(NAMES):
        category = attrs.evolve(sample(Category), id=f"c{number}", name=name)
        yield Put(CATEGORIES, CATEGORIES.row(category, sequence=number + 1))
    for number, ean13 in enumerate(EANS):
        details = Details(
            name=NAMES[number], description="", unit="kg", min_stock=3, category_id=f"c{number % 2}" if number else None
        )
        product = attrs.evolve(sample(Product), ean13=ean13, details=details, stock=number * 2, active=number != 2)
        yield Put(PRODUCTS, PRODUCTS.row(product, sequence=10 + number))
        for version in range(2):
            known = attrs.evolve(details, name=f"{details.name} {version}")
            edited = ProductEdited(details=known, at=at(version * 10))
            place = {"sequence": 10 + number, "position": version}
            yield Put(PRODUCT_VERSIONS, PRODUCT_VERSIONS.row(edited, ean13=ean13, **place, active=version == 1, stock=0))
        for code in (ean13, f"29000000000{number}"):
            barcode = Barcode(code=code, ean13=ean13, factor=1000 + number, at=at(number))
            yield Put(BARCODES, BARCODES.row(barcode, sequence=10 + number))
        for count in range(2):
            confirmed = attrs.evolve(sample(StockConfirmed), counted=count, at=at(number // 2))
            place = {"sequence": 60 + number, "position": count}
            yield Put(STOCKTAKES, STOCKTAKES.row(confirmed, product_ean13=ean13, **place, sealed=None))
        for move in range(6):
            place = {"sequence": 20 + number * 6 + move, "position": move % 2}
            booked = attrs.evolve(
                sample(MovementRecorded),
                id=f"m{number}-{move}",
                type=MovementType.IN if move % 3 else MovementType.OUT,
                quantity=move + 1,
                stock=move,
                at=at(move // 2),
                reverses=f"m{number}-2" if move == 4 else None,
            )
            sealed = "key.text" if move % 2 else None
            yield Put(MOVEMENTS, MOVEMENTS.row(booked, product_ean13=ean13, **place, sealed=sealed))
    for number in range(3):
        person = Person(key=f"{2 - number}", erased_at=at(number))
        yield Put(ERASURES, ERASURES.row(person, sequence=50 + number))


@attrs.frozen
class Case:
    """Queries of a read model, the rows of their tables, and the values for an argument of a name or type."""

    model: str
    queries: Callable[[Any], Any]
    rows: Callable[[], Iterator[Put]]
    values: Mapping[str, Sequence[Any]]


_TIMES = (at(0), at(2), at(11), at(99))
_CURSORS: Mapping[Any, Sequence[Any]] = {
    tuple[str, str]: ((timestamp_text(at(5)), "task-20"), (timestamp_text(at(0)), "")),
    tuple[int, int]: ((30, 30), (0, 0)),
    tuple[str, int, int]: ((timestamp_text(at(2)), 25, 1), (timestamp_text(at(1)), 0, 0)),
}
_BY_TYPE: Mapping[Any, Sequence[Any]] = {int: (100, 3), bool: (True, False), datetime: _TIMES, str: ("", "no such"), **_CURSORS}


def _parts(key: tuple[Any, ...]) -> Sequence[ListPart]:
    """The parts of a list that one may ask for, some of them from or up to a key."""
    return (
        ListPart(limit=100),
        ListPart(limit=3),
        ListPart(limit=3, backward=True),
        ListPart(limit=4, after=key),
        ListPart(limit=4, before=key),
    )


CASES = (
    Case(
        "tracker",
        TrackerQueries,
        tracker_rows,
        {
            "repo_id": ("r1", "r9"),
            "task_id": ("task-4", "task-0"),
            "analysis_id": (analysis_id("r1", "part-1"), analysis_id("r0", "part-0")),
            "prefix": ("b", "a0"),
            "project": ("part-1",),
            "commit_sha": ("b3" * 20, "a0" * 20),
            "ref": (sample(Task).ref,),
            "verdict_id": ("v1", "v9"),
            "status": ("running", "completed"),
            "repos_by_url.after": (("", ""), ("https://example.com/B0", "r0")),
            "latest_analyses.after": (("", ""), ("https://example.com/r1", "part-0")),
        },
    ),
    Case(
        "pantry",
        PantryQueries,
        pantry_rows,
        {
            "ean13": (EANS[1], EANS[3]),
            "category_id": ("c1",),
            "category": ("c1", "c0"),
            "movement_id": ("m1-2", "m1-4", "m9"),
            "type": ("in", "out"),
            "search": ("4006", name_key("Apfel"), "_1", "0%"),
            "text": (EANS[0], "290000000001", "no such"),
            "after": (("", ""), (name_key(NAMES[1]), "c1")),
            "barcodes.after": ("", "290000000001"),
        },
    ),
    Case(
        "tracker",
        TrackerGraph,
        tracker_rows,
        {
            "status": ("running", "ready"),
            "repo": ("r1",),
            "project": ("part-1",),
            "url": ("https://example.com/B0", "https://example.com/none"),
            "repos_by_id.ids": (("r0", "r2", "none"),),
            "tasks_by_id.ids": ([f"task-{number}" for number in range(30)],),
            "analyses_of_tasks.ids": (("task-4", "none"),),
            "history_of.ids": ((analysis_id("r1", "part-1"), analysis_id("r0", "part-0")),),
            "latest_of.ids": ((analysis_id("r1", "part-1"), analysis_id("r0", "part-0")),),
            "tasks_of.repos": (("r1", "r2"),),
            "count_tasks_of.repos": (("r1", "r2"),),
            "count_history_of.ids": ((analysis_id("r1", "part-1"), analysis_id("r0", "part-0")),),
            "verdicts_by_id.ids": ([f"v{number}" for number in range(9)],),
            "verdicts_of.tasks": (("text", "task-4"),),
            "verdicts_of.most": (1, 20),
            "workers_by_id.ids": ([f"w{number}" for number in range(9)],),
            "repos.order": (graph.REPOS,),
            "tasks.order": (graph.TASKS,),
            "repos.part": _parts(("https://example.com/B0", "r0")),
            "tasks.part": _parts((timestamp_text(at(5)), "task-20")),
            "tasks_of.part": _parts((timestamp_text(at(5)), "task-20")),
            "latest_analyses.part": _parts(("https://example.com/r1", "part-0")),
            "history_of.part": _parts((30, 30)),
        },
    ),
    Case(
        "pantry",
        PantryGraph,
        pantry_rows,
        {
            "ean13": (EANS[1],),
            "category": ("c1", "c0"),
            "type": ("in", "out"),
            "search": ("4006", name_key("Apfel")),
            "codes": (EANS, EANS[1:2]),
            "ids": (("c0", "c1", "m1-2", "m1-4"),),
            "categories": (("c0", "c1", "c9"),),
            "products.order": (pantry_graph.PRODUCTS,),
            "movements.order": (MOVEMENTS_OF_ALL,),
            "products.part": _parts((name_key(NAMES[1]), EANS[1])),
            "products_of.part": _parts((name_key(NAMES[1]), EANS[1])),
            "categories.part": _parts((name_key(NAMES[1]), "c1")),
            "movements.part": _parts((24, 0)),
            "movements_of.part": _parts((24, 0)),
        },
    ),
)


def queries_of(case: Case) -> Sequence[str]:
    kind = typing.cast("type", case.queries)
    return [name for name, member in inspect.getmembers(kind, inspect.iscoroutinefunction) if not name.startswith("_")]


def asked(case: Case, method: str) -> Iterator[dict[str, Any]]:
    """Yield arguments for a query: the required ones, with none, each and two of the optional ones. Each value occurs."""
    function = getattr(case.queries, method)
    kinds = typing.get_type_hints(function)
    parameters = [
        parameter for name, parameter in inspect.signature(function).parameters.items() if name not in ("self", "conditions")
    ]
    values = {parameter.name: _values(case, method, parameter.name, kinds[parameter.name]) for parameter in parameters}
    needed = [parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty]
    optional = [parameter.name for parameter in parameters if parameter.name not in needed]
    for size in range(min(len(optional), 2) + 1):
        for chosen in combinations(optional, size):
            names = [*needed, *chosen]
            for turn in range(max((len(values[name]) for name in names), default=1)):
                yield {name: values[name][turn % len(values[name])] for name in names}


def _values(case: Case, method: str, name: str, kind: Any) -> Sequence[Any]:
    for key in (f"{method}.{name}", name):
        if key in case.values:
            return case.values[key]
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not types.NoneType)
    return _BY_TYPE[kind]


async def fill(store: Store, model: ReadModel, rows: Iterator[Put]) -> None:
    await Migrations(store, model).up()
    changes = list(rows)
    steps = []
    for projection in model.projections:
        after = Checkpoint(projection=projection.name, version=projection.version, incarnation="i", sequence=99, applied=9)
        mine = [change for change in changes if change.table in projection.tables]
        steps.append(Step(projection=projection, before=None, after=after, changes=mine))
    await store.advance(steps)


@pytest_asyncio.fixture
async def stores(tmp_path: Path, postgres_url: str) -> AsyncIterator[tuple[Store, Store]]:
    async with AsyncExitStack() as stack:
        sqlite = await stack.enter_async_context(SQLiteStore(tmp_path / "read.db"))
        yield sqlite, await stack.enter_async_context(PostgresStore(postgres_url))


def _text(answer: Any) -> str:
    """An answer, to be compared: to JSON, a Decimal is no int, and the order of a mapping says nothing.

    Rows are compared as they are: SQLite has 1 for true.
    """
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        answer = [{name: int(value) if isinstance(value, bool) else value for name, value in row.items()} for row in answer]
    return repr(sorted(answer.items()) if isinstance(answer, Mapping) else answer)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.queries.__name__)
async def test_each_query_gives_the_same_on_both(case: Case, stores: tuple[Store, Store]) -> None:
    for store in stores:
        await fill(store, models.load(case.model), case.rows())
    sqlite, postgres = (case.queries(store) for store in stores)
    silent = set()
    for method in queries_of(case):
        found = []
        for arguments in asked(case, method):
            expected = await getattr(sqlite, method)(**arguments)
            answer = await getattr(postgres, method)(**arguments)
            assert _text(answer) == _text(expected), f"{method}({arguments})"
            found.append(expected)
        if not any(found):
            silent.add(method)
    assert not silent, f"queries that found nothing, whatever they were asked: {silent}"


def test_every_read_model_is_asked_by_all_its_queries() -> None:
    """Each class of a read model's package that is made from a database."""
    assert {case.model for case in CASES} == set(models.names())
    asking = set()
    for entry in entry_points(group=models.GROUP):
        package = entry.module
        for module in pkgutil.iter_modules([str(ROOT / package.replace(".", "/"))]):
            for member in vars(import_module(f"{package}.{module.name}")).values():
                ours = inspect.isclass(member) and member.__module__.startswith(f"{package}.")
                if ours and "store" in getattr(member.__init__, "__annotations__", {}):
                    asking.add(member)
    assert asking == {case.queries for case in CASES}


_EXPLAIN = {"sqlite": ("EXPLAIN QUERY PLAN", "detail"), "postgres": ("EXPLAIN", "QUERY PLAN")}


class Explaining:
    """Asks a database how it would answer, and finds nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.dialect = store.dialect
        self.plan: list[str] = []
        self.asked: list[str] = []

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        self.asked.append(sql)
        explain, column = _EXPLAIN[self.dialect]
        self.plan += [row[column] for row in await self._store.fetch(f"{explain} {sql}", *arguments)]
        return []

    fetch_in_thread = fetch

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        await self.fetch(sql, *arguments)
        return None


async def test_the_tasks_of_a_repository_are_found_without_a_look_at_those_of_others(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "read.db") as store:
        await fill(store, models.load("tracker"), tracker_rows())
        asking = Explaining(store)
        await TrackerGraph(asking).tasks_of(["r1", "r2"], ListPart(limit=3))
        await TrackerGraph(asking).tasks(ListPart(limit=3), repo="r1", project="part-1", all_=True)
    looks = [line for line in asking.plan if " tasks" in line]
    assert len(looks) == 2
    assert all("INDEX tasks_by_repo" in line for line in looks), asking.plan


@pytest.mark.parametrize("model", ["pantry", "tracker"])
async def test_the_lists_of_many_parents_do_not_run_a_subquery_for_each_parent_and_row(model: str, postgres_url: str) -> None:
    """Postgres before version 17 does so for a subquery in IN that names the parent. Later versions make it a join."""
    part = ListPart(limit=3)
    async with PostgresStore(postgres_url) as store:
        asking = Explaining(store)
        await fill(store, models.load(model), {"pantry": pantry_rows, "tracker": tracker_rows}[model]())
        if model == "tracker":
            await TrackerGraph(asking).history_of(["a1", "a2"], part)
            await TrackerGraph(asking).latest_of(["a1", "a2"])
        else:
            await PantryGraph(asking).movements_of(EANS[:2], part)
            await PantryGraph(asking).products_of(["c1", "c2"], part)
    assert "SubPlan" not in "".join(asking.plan), asking.plan
    assert not [sql for sql in asking.asked if re.search(r"\bIN\s*\(\s*SELECT", sql)]


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.queries.__name__)
async def test_a_query_of_the_api_is_one_statement_so_its_answer_is_of_one_moment(case: Case, tmp_path: Path) -> None:
    """Also if it finds nothing. Queries of GraphQL have a read transaction around all of their statements."""
    async with SQLiteStore(tmp_path / "read.db") as store:
        await fill(store, models.load(case.model), case.rows())
        several = []
        for method in queries_of(case):
            for arguments in asked(case, method):
                asking = Explaining(store)
                with contextlib.suppress(AttributeError, KeyError, TypeError):  # the answer is not what it expects
                    await getattr(case.queries(asking), method)(**arguments)
                if len(asking.asked) > 1:
                    several.append(f"{method}({arguments}): {asking.asked}")
    assert several == []
