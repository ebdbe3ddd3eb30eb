"""What is asked of the tracker's read model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from projections.store import Argument, Store
from projections.tracker.views import AnalysisView, RepoView, TaskView, WorkerView


class TrackerQueries:
    """The queries, on one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def repo(self, repo_id: str) -> RepoView | None:
        """A repository by its id."""
        row = await self._store.fetch_one("SELECT * FROM repos WHERE id = $1", repo_id)
        return RepoView.of(row) if row else None

    async def repos_waiting(self) -> Sequence[RepoView]:
        """The repositories whose projects are being looked for, oldest request first."""
        rows = await self._store.fetch("SELECT * FROM repos WHERE status = 'registering' ORDER BY requested, id")
        return [RepoView.of(row) for row in rows]

    async def task(self, task_id: str) -> TaskView | None:
        """A task by its id."""
        row = await self._store.fetch_one("SELECT * FROM tasks WHERE id = $1", task_id)
        return TaskView.of(row) if row else None

    async def tasks(
        self,
        *,
        status: str | None = None,
        show_seen: bool = False,
        before: tuple[str, str] | None = None,
        limit: int,
    ) -> Sequence[TaskView]:
        """At most `limit` tasks that are not hidden, newest first; `before` is created_at and id of the last one known."""
        sql = "SELECT * FROM tasks WHERE NOT hidden"
        arguments: list[Argument] = []
        if not show_seen:
            sql += " AND NOT seen"
        if status is not None:
            arguments.append(status)
            sql += f" AND status = ${len(arguments)}"
        if before is not None:
            arguments.extend(before)
            sql += f" AND (created_at, id) < (${len(arguments) - 1}, ${len(arguments)})"
        arguments.append(limit)
        sql += f" ORDER BY created_at DESC, id DESC LIMIT ${len(arguments)}"
        return [TaskView.of(row) for row in await self._store.fetch(sql, *arguments)]

    async def tasks_shown(self) -> Sequence[str]:
        """The ids of all tasks that are not hidden."""
        return [row["id"] for row in await self._store.fetch("SELECT id FROM tasks WHERE NOT hidden")]

    async def tasks_running(self) -> Sequence[TaskView]:
        """The tasks that a worker has a lease on."""
        return [TaskView.of(row) for row in await self._store.fetch("SELECT * FROM tasks WHERE status = 'running'")]

    async def tasks_waiting(self, *, since: datetime) -> Sequence[TaskView]:
        """The tasks that have waited for a worker since that time or longer."""
        rows = await self._store.fetch(
            "SELECT * FROM tasks WHERE status IN ('queued', 'pending') AND waiting_since <= $1 ORDER BY waiting_since, id",
            since,
        )
        return [TaskView.of(row) for row in rows]

    async def analysis_of_task(self, task_id: str) -> AnalysisView | None:
        """The result of a task."""
        row = await self._store.fetch_one("SELECT * FROM analyses WHERE task_id = $1", task_id)
        return AnalysisView.of(row) if row else None

    async def analysis(self, analysis_id: str) -> AnalysisView | None:
        """The latest analysis with that id."""
        row = await self._store.fetch_one(
            "SELECT * FROM analyses WHERE analysis_id = $1 ORDER BY sequence DESC LIMIT 1", analysis_id
        )
        return AnalysisView.of(row) if row else None

    async def latest_analyses(self, *, after: tuple[str, str] | None = None, limit: int) -> Sequence[AnalysisView]:
        """The latest analysis of each project, by repository and project; `after` are those of the last one known."""
        sql = """
            SELECT * FROM analyses AS newest
            WHERE sequence = (
                SELECT max(sequence) FROM analyses WHERE repo_id = newest.repo_id AND project = newest.project
            )"""
        arguments: list[Argument] = []
        if after is not None:
            arguments.extend(after)
            sql += " AND (repo_url, project) > ($1, $2)"
        arguments.append(limit)
        sql += f" ORDER BY repo_url, project LIMIT ${len(arguments)}"
        return [AnalysisView.of(row) for row in await self._store.fetch(sql, *arguments)]

    async def workers(self) -> Sequence[WorkerView]:
        """All workers that were ever started, by id."""
        return [WorkerView.of(row) for row in await self._store.fetch("SELECT * FROM workers ORDER BY id")]
