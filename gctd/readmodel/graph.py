"""Queries of a graph of the tracker's resources: parts of lists in both directions, and one statement for many parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gctd.readmodel.queries import LATEST
from gctd.readmodel.tables import TASKS as TASK_TABLE
from gctd.readmodel.views import AnalysisView, RepoView, TaskView
from projections.sql import FoundPart, ListPart, SortOrder, Sql, fetch_for, found, grouped
from projections.store import Queryable

REPOS = SortOrder(("url", "id"))
TASKS = SortOrder(("created_at", "id"), descending=True)
LATEST_ANALYSES = SortOrder(("repo_url", "project"))
HISTORY = SortOrder(("measured", "sequence"), descending=True)


def repo_key(repo: RepoView) -> tuple[str, str]:
    """Return the sort key of a repository."""
    return repo.url, repo.id


def task_key(task: TaskView) -> tuple[str, str]:
    """Return the sort key of a task, newest first."""
    return task.created_at, task.id


def latest_key(analysis: AnalysisView) -> tuple[str, str]:
    """Return the sort key of the latest analyses of all projects."""
    return analysis.repo_url, analysis.project


def history_key(analysis: AnalysisView) -> tuple[int, int]:
    """Return the sort key of the analyses of a project, newest first."""
    return analysis.measured, analysis.sequence


class TrackerGraph:
    """The queries, on one database."""

    def __init__(self, store: Queryable) -> None:
        self._store = store

    async def repos(self, part: ListPart, *, status: str | None = None) -> FoundPart[RepoView]:
        """Repositories by URL."""
        sql = Sql("SELECT * FROM repos WHERE TRUE")
        if status is not None:
            sql.add("AND status = {}", status)
        REPOS.limit(sql, part)
        return found(await self._store.fetch_in_thread(sql.text, *sql.arguments), part, RepoView.of)

    async def tasks(
        self,
        part: ListPart,
        *,
        status: str | None = None,
        repo: str | None = None,
        project: str | None = None,
        all_: bool = False,
    ) -> FoundPart[TaskView]:
        """Return the tasks that are neither hidden nor seen, newest first. `all_` includes seen tasks."""
        sql = Sql("SELECT * FROM tasks WHERE NOT hidden")
        if not all_:
            sql.add("AND NOT seen")
        for column, value in (("status", status), ("repo_id", repo), ("project", project)):
            if value is not None:
                sql.add(f"AND {column} = {{}}", value)
        TASKS.limit(sql, part)
        return found(await self._store.fetch_in_thread(sql.text, *sql.arguments), part, TaskView.of)

    async def latest_analyses(self, part: ListPart, *, repo: str | None = None) -> FoundPart[AnalysisView]:
        """The latest analysis of each project, by repository and project."""
        sql = Sql(LATEST)
        if repo is not None:
            sql.add("AND repo_id = {}", repo)
        LATEST_ANALYSES.limit(sql, part)
        return found(await self._store.fetch_in_thread(sql.text, *sql.arguments), part, AnalysisView.of)

    async def repo_by_url(self, url: str) -> RepoView | None:
        """The repository with this canonical URL."""
        row = await self._store.fetch_one("SELECT * FROM repos WHERE url = $1", url)
        return RepoView.of(row) if row else None

    async def repos_by_id(self, ids: Sequence[str]) -> Mapping[str, RepoView]:
        """The repositories with these ids."""
        sql = Sql("SELECT * FROM repos")
        sql.any_of("WHERE id IN ({})", ids)
        return {row["id"]: RepoView.of(row) for row in await fetch_for(self._store, sql)}

    async def tasks_by_id(self, ids: Sequence[str]) -> Mapping[str, TaskView]:
        """The tasks with these ids."""
        sql = Sql("SELECT * FROM tasks")
        sql.any_of("WHERE id IN ({})", ids)
        return {row["id"]: TaskView.of(row) for row in await fetch_for(self._store, sql)}

    async def analyses_of_tasks(self, ids: Sequence[str]) -> Mapping[str, AnalysisView]:
        """The results of these tasks."""
        sql = Sql("SELECT * FROM analyses")
        sql.any_of("WHERE task_id IN ({})", ids)
        return {row["task_id"]: AnalysisView.of(row) for row in await fetch_for(self._store, sql)}

    async def history_of(self, ids: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[AnalysisView]]:
        """Part of the analyses of each project that has one of these analysis ids, newest first."""
        sql = Sql("SELECT a.* FROM (SELECT DISTINCT analysis_id FROM analyses")
        sql.any_of("WHERE analysis_id IN ({})) AS parent JOIN analyses AS a ON a.task_id IN (", ids)
        sql.add("SELECT task_id FROM analyses WHERE analysis_id = parent.analysis_id")
        HISTORY.limit(sql, part)
        sql.add(f") ORDER BY a.analysis_id, {HISTORY.text(backward=part.backward, prefix='a.')}")
        return grouped(await fetch_for(self._store, sql), "analysis_id", part, AnalysisView.of)

    async def tasks_of(self, repos: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[TaskView]]:
        """Part of the tasks of each of these repositories, seen or not, newest first: one pass over the tasks for all of them."""
        columns = ", ".join(TASK_TABLE.names)
        order = TASKS.text(backward=part.backward)
        inner = Sql(f"SELECT {columns}, row_number() OVER (PARTITION BY repo_id ORDER BY {order}) AS place")
        inner.any_of("FROM tasks WHERE NOT hidden AND repo_id IN ({})", repos)
        TASKS.between(inner, part)
        sql = Sql(f"SELECT {columns} FROM ({inner.text}) AS numbered", inner.arguments)  # noqa: S608 - constants
        sql.add("WHERE place <= {} ORDER BY repo_id, place", part.limit + 1)
        return grouped(await fetch_for(self._store, sql), "repo_id", part, TaskView.of)
