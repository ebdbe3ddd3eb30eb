"""Queries of a graph of the tracker's resources: parts of lists in both directions, and one statement for many parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from gctd.readmodel.latest import LATEST, OF_PROJECT, PROJECTS
from gctd.readmodel.tables import TASKS as TASK_TABLE
from gctd.readmodel.tables import VERDICTS
from gctd.readmodel.views import AnalysisView, RepoView, TaskView, VerdictView, WorkerView
from projections import (
    FoundPart,
    JoinedList,
    ListPart,
    Queryable,
    Row,
    SortOrder,
    Sql,
    count_of,
    counts_for,
    fetch_for,
    grouped,
    keyed,
    selected,
)

T = TypeVar("T")

REPOS = SortOrder(("url", "id"))
REPOS_BY_CHANGE = SortOrder(("updated_at", "id"))
TASKS = SortOrder(("created_at", "id"), descending=True)
TASKS_BY_CHANGE = SortOrder(("updated_at", "id"), descending=True)
LATEST_ANALYSES = SortOrder(("repo_url", "project"))
HISTORY = SortOrder(("measured", "sequence"), descending=True)
_OF_PROJECT = JoinedList(table="analyses", alias="a", key="task_id", condition="analysis_id = parent.analysis_id")
_ON_TRACKED_REF = attrs.evolve(_OF_PROJECT, condition=OF_PROJECT)


class TrackerGraph:
    """The queries, on one database."""

    def __init__(self, store: Queryable) -> None:
        self._store = store

    async def repos(self, part: ListPart, order: SortOrder = REPOS, *, status: str | None = None) -> FoundPart[RepoView]:
        """Repositories in an order."""
        return await selected(self._store, _repos(status), order, part, RepoView.of)

    async def count_repos(self, *, status: str | None = None) -> int:
        """The number of repositories."""
        return await count_of(self._store, _repos(status))

    async def tasks(self, part: ListPart, order: SortOrder = TASKS, **conditions: Any) -> FoundPart[TaskView]:
        """Return the tasks that are neither hidden nor seen, in an order. `all_` includes seen tasks."""
        return await selected(self._store, _tasks(**conditions), order, part, TaskView.of)

    async def count_tasks(self, **conditions: Any) -> int:
        """The number of such tasks."""
        return await count_of(self._store, _tasks(**conditions))

    async def latest_analyses(self, part: ListPart, *, repo: str | None = None) -> FoundPart[AnalysisView]:
        """The latest analysis of each project, by repository and project."""
        return await selected(self._store, _latest(repo), LATEST_ANALYSES, part, AnalysisView.of)

    async def count_latest_analyses(self, *, repo: str | None = None) -> int:
        """The number of projects that have an analysis."""
        return await count_of(self._store, _latest(repo))

    async def count_history_of(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The number of analyses of each project that has one of these analysis ids."""
        sql = Sql("SELECT analysis_id, count(*) AS found FROM analyses")
        sql.any_of("WHERE analysis_id IN ({}) GROUP BY analysis_id", ids)
        return await counts_for(self._store, sql, "analysis_id")

    async def count_tasks_of(self, repos: Sequence[str]) -> Mapping[str, int]:
        """The number of tasks of each of these repositories, seen or not."""
        sql = Sql("SELECT repo_id, count(*) AS found FROM tasks WHERE NOT hidden")
        sql.any_of("AND repo_id IN ({}) GROUP BY repo_id", repos)
        return await counts_for(self._store, sql, "repo_id")

    async def verdicts_by_id(self, ids: Sequence[str]) -> Mapping[str, VerdictView]:
        """The verdicts with these ids."""
        return await self._by_key("verdicts", "id", ids, VerdictView.of)

    async def verdicts_of(self, tasks: Sequence[str], most: int) -> Mapping[str, Sequence[VerdictView]]:
        """The verdicts on the analyses of these tasks, newest first, `most` of each."""
        columns = ", ".join(VERDICTS.names)
        inner = Sql(f"SELECT {columns}, row_number() OVER (PARTITION BY head_task ORDER BY asked_at DESC, id) AS place")
        inner.any_of("FROM verdicts WHERE head_task IN ({})", tasks)
        sql = Sql(f"SELECT {columns} FROM ({inner.text}) AS numbered", inner.arguments)  # noqa: S608 - constants
        sql.add("WHERE place <= {} ORDER BY head_task, place", most)
        lists: dict[str, list[VerdictView]] = {}
        for row in await fetch_for(self._store, sql):
            lists.setdefault(row["head_task"], []).append(VerdictView.of(row))
        return lists

    async def workers_by_id(self, ids: Sequence[str]) -> Mapping[str, WorkerView]:
        """The workers with these ids."""
        return await self._by_key("workers", "id", ids, WorkerView.of)

    async def repo_by_url(self, url: str) -> RepoView | None:
        """The repository with this canonical URL."""
        row = await self._store.fetch_one("SELECT * FROM repos WHERE url = $1", url)
        return RepoView.of(row) if row else None

    async def repos_by_id(self, ids: Sequence[str]) -> Mapping[str, RepoView]:
        """The repositories with these ids."""
        return await self._by_key("repos", "id", ids, RepoView.of)

    async def tasks_by_id(self, ids: Sequence[str]) -> Mapping[str, TaskView]:
        """The tasks with these ids."""
        return await self._by_key("tasks", "id", ids, TaskView.of)

    async def analyses_of_tasks(self, ids: Sequence[str]) -> Mapping[str, AnalysisView]:
        """The results of these tasks."""
        return await self._by_key("analyses", "task_id", ids, AnalysisView.of)

    async def history_of(self, ids: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[AnalysisView]]:
        """Part of the analyses of each project that has one of these analysis ids, newest first."""
        parents = "SELECT DISTINCT newest.analysis_id FROM analyses AS newest"
        return await self._analyses_of(parents, ids, part, _OF_PROJECT)

    async def latest_of(self, ids: Sequence[str]) -> Mapping[str, AnalysisView]:
        """The latest analysis of each project that has one of these analysis ids, as in `latest_analyses`."""
        latest = await self._analyses_of(PROJECTS, ids, ListPart(limit=1), _ON_TRACKED_REF)
        return {id_: part.items[0] for id_, part in latest.items()}

    async def _analyses_of(
        self, parents: str, ids: Sequence[str], part: ListPart, of: JoinedList
    ) -> Mapping[str, FoundPart[AnalysisView]]:
        sql = Sql(f"SELECT a.* FROM ({parents}")  # noqa: S608 - constants
        sql.any_of("WHERE newest.analysis_id IN ({})) AS parent", ids)
        HISTORY.join(sql, part, of, self._store.dialect)
        sql.add(f"ORDER BY a.analysis_id, {HISTORY.text(backward=part.backward, prefix='a.')}")
        return await grouped(await fetch_for(self._store, sql), "analysis_id", part, AnalysisView.of)

    async def tasks_of(self, repos: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[TaskView]]:
        """Part of the tasks of each of these repositories, seen or not, newest first: one pass over the tasks for all of them."""
        columns = ", ".join(TASK_TABLE.names)
        order = TASKS.text(backward=part.backward)
        inner = Sql(f"SELECT {columns}, row_number() OVER (PARTITION BY repo_id ORDER BY {order}) AS place")
        inner.any_of("FROM tasks WHERE NOT hidden AND repo_id IN ({})", repos)
        TASKS.between(inner, part)
        sql = Sql(f"SELECT {columns} FROM ({inner.text}) AS numbered", inner.arguments)  # noqa: S608 - constants
        sql.add("WHERE place <= {} ORDER BY repo_id, place", part.limit + 1)
        return await grouped(await fetch_for(self._store, sql), "repo_id", part, TaskView.of)

    async def _by_key(self, table: str, key: str, ids: Sequence[str], view: Callable[[Row], T]) -> Mapping[str, T]:
        sql = Sql(f"SELECT * FROM {table}")  # noqa: S608 - a constant
        sql.any_of(f"WHERE {key} IN ({{}})", ids)
        return await keyed(await fetch_for(self._store, sql), key, view)


def _repos(status: str | None) -> Sql:
    sql = Sql("SELECT * FROM repos WHERE TRUE")
    if status is not None:
        sql.add("AND status = {}", status)
    return sql


def _tasks(*, status: str | None = None, repo: str | None = None, project: str | None = None, all_: bool = False) -> Sql:
    sql = Sql("SELECT * FROM tasks WHERE NOT hidden")
    if not all_:
        sql.add("AND NOT seen")
    for column, value in (("status", status), ("repo_id", repo), ("project", project)):
        if value is not None:
            sql.add(f"AND {column} = {{}}", value)
    return sql


def _latest(repo: str | None) -> Sql:
    sql = Sql(LATEST)
    if repo is not None:
        sql.add("AND newest.repo_id = {}", repo)
    return sql
