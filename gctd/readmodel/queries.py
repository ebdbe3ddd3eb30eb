"""Queries of the tracker's read model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from gctd.readmodel.attempts import AttemptView, attempts_of
from gctd.readmodel.latest import LATEST, NEWEST_FIRST
from gctd.readmodel.views import AnalysisView, RepoView, TaskView, VerdictView, WorkerView
from projections import Queryable, Sql


@attrs.frozen
class LiveTasks:
    """Number of tasks with a status, and the time since which the oldest has waited."""

    count: int
    oldest: datetime


class TrackerQueries:
    """The queries, on one store."""

    def __init__(self, store: Queryable) -> None:
        self._store = store

    async def repo(self, repo_id: str) -> RepoView | None:
        """A repository by its id."""
        row = await self._store.fetch_one("SELECT * FROM repos WHERE id = $1", repo_id)
        return RepoView.of(row) if row else None

    async def repos_waiting(self) -> Sequence[RepoView]:
        """Return the repositories that wait for their projects, oldest request first."""
        rows = await self._store.fetch("SELECT * FROM repos WHERE status = 'registering' ORDER BY requested, id")
        return [RepoView.of(row) for row in rows]

    async def repos_by_url(self, *, after: tuple[str, str], limit: int) -> Sequence[RepoView]:
        """Return at most `limit` repositories, by URL. `after` is URL and id of the last one known."""
        rows = await self._store.fetch("SELECT * FROM repos WHERE (url, id) > ($1, $2) ORDER BY url, id LIMIT $3", *after, limit)
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
        under_way: bool = False,
        before: tuple[str, str] | None = None,
        limit: int,
    ) -> Sequence[TaskView]:
        """Return at most `limit` tasks that are not hidden, newest first. `before` is created_at and id of the last one known.

        `under_way`: the tasks that wait or run instead, also if they are seen.
        """
        if under_way:
            sql = Sql("SELECT * FROM tasks WHERE status IN ('queued', 'pending', 'running')")
        else:
            sql = Sql("SELECT * FROM tasks WHERE NOT hidden")
            if not show_seen:
                sql.add("AND NOT seen")
        if status is not None:
            sql.add("AND status = {}", status)
        if before is not None:
            sql.add("AND (created_at, id) < ({}, {})", *before)
        sql.add("ORDER BY created_at DESC, id DESC LIMIT {}", limit)
        return [TaskView.of(row) for row in await self._store.fetch(sql.text, *sql.arguments)]

    async def tasks_ended(self) -> Sequence[str]:
        """Return the ids of all tasks that have ended and are not hidden."""
        sql = "SELECT id FROM tasks WHERE NOT hidden AND status IN ('completed', 'failed', 'expired') ORDER BY id"
        return [row["id"] for row in await self._store.fetch(sql)]

    async def tasks_running(self) -> Sequence[TaskView]:
        """The tasks that a worker has a lease on."""
        rows = await self._store.fetch("SELECT * FROM tasks WHERE status = 'running' ORDER BY id")
        return [TaskView.of(row) for row in rows]

    async def tasks_waiting(self, *, since: datetime) -> Sequence[TaskView]:
        """Return the tasks that have waited for a worker since that time or longer."""
        rows = await self._store.fetch(
            "SELECT * FROM tasks WHERE status IN ('queued', 'pending') AND waiting_since <= $1 ORDER BY waiting_since, id",
            since,
        )
        return [TaskView.of(row) for row in rows]

    async def tasks_alive(self) -> Mapping[str, LiveTasks]:
        """The tasks that wait or run, counted, by status."""
        rows = await self._store.fetch(
            """
            SELECT status, count(*) AS tasks, min(waiting_since) AS oldest FROM tasks
            WHERE status IN ('queued', 'pending', 'running') GROUP BY status"""
        )
        return {row["status"]: LiveTasks(row["tasks"], datetime.fromisoformat(row["oldest"])) for row in rows}

    async def attempts(self, task_id: str) -> Sequence[AttemptView] | None:
        """Return the attempts at a task, in order; None if the task does not exist."""
        row = await self._store.fetch_one("SELECT attempts FROM tasks WHERE id = $1", task_id)
        return attempts_of(row["attempts"]) if row else None

    async def tasks_left(self, repo_id: str) -> Sequence[str]:
        """Return the ids of the tasks of a repository that are in the tables, or whose analyses are; unfinished tasks first."""
        rows = await self._store.fetch(
            """
            SELECT id, status IN ('completed', 'failed', 'expired') AS ended FROM tasks WHERE repo_id = $1
            UNION SELECT task_id, TRUE FROM analyses WHERE repo_id = $1 AND task_id NOT IN (SELECT id FROM tasks)
            ORDER BY ended, id""",
            repo_id,
        )
        return [row["id"] for row in rows]

    async def verdicts_left(self, repo_id: str) -> Sequence[str]:
        """Return the ids of the verdicts on analyses of a repository."""
        rows = await self._store.fetch("SELECT id FROM verdicts WHERE repo_id = $1 ORDER BY id", repo_id)
        return [row["id"] for row in rows]

    async def unregistered(self) -> Sequence[str]:
        """Return the ids of the repositories that have tasks, analyses or verdicts in the tables and are not registered."""
        rows = await self._store.fetch(
            """
            SELECT repo_id FROM (
                SELECT DISTINCT repo_id FROM tasks UNION SELECT DISTINCT repo_id FROM analyses
                UNION SELECT DISTINCT repo_id FROM verdicts
            ) AS named WHERE repo_id NOT IN (SELECT id FROM repos) ORDER BY repo_id"""
        )
        return [row["repo_id"] for row in rows]

    async def tasks_under_way(self, repo_id: str) -> Sequence[TaskView]:
        """The tasks of a repository that wait or run."""
        rows = await self._store.fetch(
            "SELECT * FROM tasks WHERE repo_id = $1 AND status IN ('queued', 'pending', 'running') ORDER BY id", repo_id
        )
        return [TaskView.of(row) for row in rows]

    async def analysis_of_task(self, task_id: str) -> AnalysisView | None:
        """The result of a task."""
        row = await self._store.fetch_one("SELECT * FROM analyses WHERE task_id = $1", task_id)
        return AnalysisView.of(row) if row else None

    async def analysis(self, analysis_id: str) -> AnalysisView | None:
        """The latest analysis with that id."""
        row = await self._store.fetch_one(f"{LATEST} AND newest.analysis_id = $1 {NEWEST_FIRST} LIMIT 1", analysis_id)
        return AnalysisView.of(row) if row else None

    async def history(
        self, analysis_id: str, *, ref: str | None = None, before: tuple[int, int] | None = None, limit: int
    ) -> Sequence[AnalysisView]:
        """Return at most `limit` analyses of a project, newest first: by their test run, then by the time of their scoring.

        `ref`: only the analyses of that ref, without the ones that were made only for comparisons. `before` are `measured` and
        `sequence` of the last one known.
        """
        sql = Sql("SELECT * FROM analyses WHERE analysis_id = $1", [analysis_id])
        if ref is not None:
            sql.add("AND NOT baseline AND ref = {}", ref)
        if before is not None:
            sql.add("AND (measured, sequence) < ({}, {})", *before)
        sql.add("ORDER BY measured DESC, sequence DESC LIMIT {}", limit)
        return [AnalysisView.of(row) for row in await self._store.fetch(sql.text, *sql.arguments)]

    async def analyses_of_commit(self, analysis_id: str, prefix: str, *, limit: int) -> Sequence[AnalysisView]:
        """The latest analysis of each of at most `limit` commits that begin with these hex digits."""
        rows = await self._store.fetch(
            """
            SELECT * FROM analyses AS newest
            WHERE analysis_id = $1 AND commit_sha LIKE $2 || '%' AND sequence = (
                SELECT sequence FROM analyses WHERE analysis_id = $1 AND commit_sha = newest.commit_sha
                ORDER BY measured DESC, sequence DESC LIMIT 1
            ) ORDER BY commit_sha LIMIT $3""",
            analysis_id,
            prefix,
            limit,
        )
        return [AnalysisView.of(row) for row in rows]

    async def analysis_of_ref(self, analysis_id: str, ref: str) -> AnalysisView | None:
        """The last analysis of a ref of a project, without bases of comparisons: these have the ref of another commit."""
        row = await self._store.fetch_one(
            """
            SELECT * FROM analyses WHERE analysis_id = $1 AND ref = $2 AND NOT baseline
            ORDER BY measured DESC, sequence DESC LIMIT 1""",
            analysis_id,
            ref,
        )
        return AnalysisView.of(row) if row else None

    async def analyses_at(self, analysis_id: str, commit_sha: str) -> Sequence[AnalysisView]:
        """Return all analyses of a commit of a project, the first one first: so the answer for a commit does not change."""
        rows = await self._store.fetch(
            "SELECT * FROM analyses WHERE analysis_id = $1 AND commit_sha = $2 ORDER BY measured, sequence",
            analysis_id,
            commit_sha,
        )
        return [AnalysisView.of(row) for row in rows]

    async def commits_before(self, analysis_id: str, ref: str, commit_sha: str, *, limit: int) -> Sequence[str]:
        """The commits of a ref that were analysed before this commit was for the first time, the last first.

        A scoring counts as the test run behind it.
        """
        rows = await self._store.fetch(
            """
            SELECT commit_sha, max(measured) AS latest FROM analyses
            WHERE analysis_id = $1 AND ref = $2 AND commit_sha <> $3 AND NOT baseline AND measured < (
                SELECT min(measured) FROM analyses WHERE analysis_id = $1 AND ref = $2 AND commit_sha = $3
            ) GROUP BY commit_sha ORDER BY latest DESC LIMIT $4""",
            analysis_id,
            ref,
            commit_sha,
            limit,
        )
        return [row["commit_sha"] for row in rows]

    async def verdict(self, verdict_id: str) -> VerdictView | None:
        """A verdict by its id."""
        row = await self._store.fetch_one("SELECT * FROM verdicts WHERE id = $1", verdict_id)
        return VerdictView.of(row) if row else None

    async def verdicts_waiting(self) -> Mapping[str, int | None]:
        """The ids of the requested verdicts without a result, the oldest first.

        The value is the sequence of the last analysis of the base commit, or None without one.
        """
        rows = await self._store.fetch(
            """
            SELECT id, (
                SELECT max(a.sequence) FROM analyses AS a
                WHERE a.analysis_id = verdicts.analysis_id AND a.commit_sha = verdicts.base_commit
            ) AS latest FROM verdicts WHERE result = 'unknown' ORDER BY asked_at, id"""
        )
        return {row["id"]: row["latest"] for row in rows}

    async def deliveries_under_way(self) -> Sequence[str]:
        """The ids of the deliveries that have not ended, the oldest first."""
        rows = await self._store.fetch("SELECT id FROM deliveries WHERE status <> 'ended' ORDER BY received_at, id")
        return [row["id"] for row in rows]

    async def deliveries_after(self, repo_id: str, commit_sha: str, received_at: datetime) -> Sequence[str]:
        """Return the ids of the deliveries about a commit that were received after that time."""
        rows = await self._store.fetch(
            "SELECT id FROM deliveries WHERE repo_id = $1 AND commit_sha = $2 AND received_at > $3 ORDER BY received_at, id",
            repo_id,
            commit_sha,
            received_at,
        )
        return [row["id"] for row in rows]

    async def tasks_of_commit(self, repo_id: str, project: str, commit_sha: str) -> Sequence[TaskView]:
        """The tasks of a commit of a project, the newest first."""
        rows = await self._store.fetch(
            """
            SELECT * FROM tasks WHERE repo_id = $1 AND project = $2 AND commit_sha = $3 AND rescored_from IS NULL
            ORDER BY created_at DESC, id DESC""",
            repo_id,
            project,
            commit_sha,
        )
        return [TaskView.of(row) for row in rows]

    async def latest_analyses(self, *, after: tuple[str, str] | None = None, limit: int) -> Sequence[AnalysisView]:
        """Return the latest analysis of each project, by repository and project. `after` is the key of the last known one."""
        sql = Sql(LATEST)
        if after is not None:
            sql.add("AND (newest.repo_url, newest.project) > ({}, {})", *after)
        sql.add("ORDER BY newest.repo_url, newest.project LIMIT {}", limit)
        return [AnalysisView.of(row) for row in await self._store.fetch(sql.text, *sql.arguments)]

    async def latest_commits(self, repo_id: str) -> Mapping[str, str]:
        """The commit of the latest analysis of each project of a repository that has one."""
        rows = await self._store.fetch(f"{LATEST} AND newest.repo_id = $1", repo_id)
        return {row["project"]: row["commit_sha"] for row in rows}

    async def measured_analyses(
        self, repo_id: str, project: str | None = None, *, latest: bool = False
    ) -> Sequence[AnalysisView]:
        """The analyses of a repository (of one project) except for scorings, the last first.

        For each of them tests were run, or the run of an earlier task was used. `latest`: only the run behind the latest
        analysis of each project.
        """
        sql = Sql("SELECT * FROM analyses WHERE repo_id = $1 AND measured = sequence AND NOT baseline", [repo_id])
        if latest:
            sql.add(f"AND sequence IN (SELECT measured FROM ({LATEST} AND newest.repo_id = $1) AS latest)")  # noqa: S608 - a constant
        if project is not None:
            sql.add("AND project = {}", project)
        rows = await self._store.fetch(f"{sql.text} ORDER BY sequence DESC", *sql.arguments)
        return [AnalysisView.of(row) for row in rows]

    async def workers(self) -> Sequence[WorkerView]:
        """All workers that were ever started, by id."""
        return [WorkerView.of(row) for row in await self._store.fetch("SELECT * FROM workers ORDER BY id")]
