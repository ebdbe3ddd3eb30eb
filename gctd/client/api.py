"""The tracker's HTTP API as methods: arguments in, values of `gctd.client.resources` out.

The errors are in `terminalkit.client`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, TypeVar

from gctd.client.projects import Diff, Gate, Point, RepoConfig
from gctd.client.resources import Analysis, Attempt, Repo, Task, Update, Worker
from terminalkit.client import Resource, ServiceClient, Signal, only, parse, parse_list, segment

R = TypeVar("R", bound=Resource)

PROBING = 180.0
"""Seconds that a request has at least in which the server asks repositories' hosts."""

UPLOADING = 120.0
"""Timeout of the upload of a coverage profile, in seconds."""

REMOVING = 120.0
"""Timeout of the removal of a repository with all its analyses, in seconds."""

LARGEST_DIFF = 1_000_000
"""Limit of the functions of a difference, or of a verdict, in a request."""


class Client(ServiceClient):
    """A client of one tracker."""

    name = "gctd"

    # Repositories

    async def add_repo(self, repo_url: str, *, refresh: bool = False) -> Repo:
        """Register a repository, or find that it is known; `refresh`: look for the projects of a known one again."""
        answer = await self._command("/api/repos?refresh=true" if refresh else "/api/repos", {"repo_url": repo_url})
        return parse(Repo, answer.document)

    async def repo(self, repo_url: str) -> Repo:
        """Return the record of a repository. Raises NotFound if it was never registered."""
        return await self._get(Repo, "/api/repos/status", {"url": repo_url})

    async def analyze(
        self,
        repo_url: str,
        *,
        project: str | None = None,
        ref: str | None = None,
        engine: str | None = None,
        again: bool = False,
    ) -> Sequence[Task]:
        """Schedule the analysis of a registered repository: one task per project, or one for `project`.

        `ref` is for these tasks only. `again`: the tests run also if the commit was analysed before.
        """
        body: dict[str, Any] = dict(only(repo_url=repo_url, project=project, ref=ref, engine=engine))
        if again:
            body["again"] = True
        answer = await self._command("/api/repos/analyze", body)
        return parse_list(Task, answer.document, known_at=answer.sequence)

    async def upload_coverage(self, id_: str, body: Mapping[str, Any]) -> Task:
        """Upload a coverage profile for the project whose analyses have this id. A repeated upload returns the same task."""
        path = f"/api/repos/{segment(id_)}/coverage"
        answer = await self._transport.request("POST", path, body=body, at_least=UPLOADING)
        return parse(Task, answer.document, known_at=answer.sequence)

    async def rescore(
        self, repo_url: str, *, project: str | None = None, engine: str | None = None, all_history: bool = False
    ) -> Sequence[Task]:
        """Schedule that the stored profile of each project, or of `project`, is scored again; or every one ever stored."""
        body = only(repo_url=repo_url, project=project, engine=engine) | {"all_history": all_history}
        answer = await self._command("/api/repos/rescore", body)
        return parse_list(Task, answer.document, known_at=answer.sequence)

    async def remove_repo(self, repo_url: str) -> None:
        """Remove a repository with its tasks and analyses. Raises NotFound if it is not registered."""
        await self._transport.request("DELETE", "/api/repos/registered", query={"url": repo_url}, at_least=REMOVING)

    async def check_updates(
        self, repo_url: str | None = None, *, schedule: bool = False
    ) -> AsyncGenerator[Sequence[Update], None]:
        """Check whether the refs that projects track have moved, of one repository or of all. Yield the updates in parts.

        `schedule`: queue an analysis for each moved ref, once for a commit.
        """
        body = {"schedule": schedule} | only(repo_url=repo_url)
        query: dict[str, str] = {}
        while True:
            answer = await self._command("/api/repos/check-updates", body, query=query, at_least=PROBING)
            yield parse_list(Update, answer.document)
            if answer.cursor is None:
                return
            query["cursor"] = answer.cursor

    async def repos(self) -> Sequence[Repo]:
        """All registered repositories, whatever their state, by URL."""
        return await self._list(Repo, "/api/repos/registered", {})

    async def analyses(self) -> Sequence[Analysis]:
        """The latest analysis of each project of each repository, without the functions."""
        return await self._list(Analysis, "/api/repos", {})

    async def analysis(self, id_: str, *, entries: int | None = None) -> Analysis:
        """Return the latest analysis of a project by its id, with at most `entries` functions, worst first."""
        return await self._get(Analysis, f"/api/repos/{segment(id_)}", only(entries=entries))

    # Projects

    async def history(self, id_: str, *, ref: str | None = None, limit: int | None = None) -> Sequence[Point]:
        """The analyses of a project (of one ref), newest first, `limit` at most (None: however many there are)."""
        return await self._list(Point, f"/api/repos/{segment(id_)}/history", only(ref=ref), limit)

    async def diff(
        self, id_: str, *, base: str | None = None, from_: str | None = None, to: str | None = None, limit: int = 0
    ) -> Diff:
        """The difference of two analyses of a project, of `limit` functions at most (0: of all that changed)."""
        most = min(limit or LARGEST_DIFF, LARGEST_DIFF)
        query = only(base=base, to=to, limit=most) | ({} if from_ is None else {"from": from_})
        return await self._get(Diff, f"/api/repos/{segment(id_)}/diff", query)

    async def gate(self, id_: str, query: Mapping[str, Any], *, limit: int = 0) -> Gate:
        """Return the gate's judgement of a project by the limits in `query`, with at most `limit` functions (0: all)."""
        return await self._get(Gate, f"/api/repos/{segment(id_)}/gate", only(**query, limit=limit or LARGEST_DIFF))

    async def ask_for_verdict(self, id_: str, body: Mapping[str, Any], *, limit: int = 0) -> Gate:
        """Return the judgement as `gate` does, and store it. A missing analysis of the base is queued."""
        answer = await self._transport.request(
            "POST", f"/api/repos/{segment(id_)}/gate", query=only(limit=limit or LARGEST_DIFF), body=body
        )
        return parse(Gate, answer.document)

    async def gate_comment(self, id_: str, query: Mapping[str, Any]) -> bytes:
        """Return the judgement and the changes as a comment for a pull request."""
        return await self._transport.content(f"/api/repos/{segment(id_)}/gate.md", query=only(**query), media="text/markdown")

    async def config(self, repo_url: str, subdir: str | None = None) -> RepoConfig:
        """The settings of a project of a repository, or of its root."""
        return await self._get(RepoConfig, "/api/repo-config", only(url=repo_url, subdir=subdir))

    async def set_config(self, repo_url: str, subdir: str | None, changes: Mapping[str, Any]) -> RepoConfig:
        """Change settings; None removes one."""
        body = {"url": repo_url, "subdir": subdir, **changes}
        answer = await self._transport.request("POST", "/api/repo-config", body=body)
        return parse(RepoConfig, answer.document)

    async def remove_config(self, repo_url: str, subdir: str | None = None) -> None:
        """Remove all settings of a project of a repository, or of its root."""
        await self._transport.request("DELETE", "/api/repo-config", query=only(url=repo_url, subdir=subdir))

    # Tasks

    async def tasks(
        self, *, status: str | None = None, show_seen: bool = False, under_way: bool = False, limit: int | None = None
    ) -> Sequence[Task]:
        """The tasks in one status, or all, `limit` at most (None: however many there are).

        `under_way`: all tasks that wait or run, also hidden and seen ones, and no others.
        """
        query = only(status=status, show_seen=show_seen or None, under_way=under_way or None)
        return await self._list(Task, "/api/tasks", query, limit)

    async def task(self, id_: str) -> Task:
        """A task by its id."""
        return await self._get(Task, f"/api/tasks/{segment(id_)}")

    async def result(self, task_id: str, *, entries: int | None = None) -> Analysis:
        """Return the analysis of a task, with at most `entries` functions, worst first.

        Raises NotFound if it has none, Conflicting if the task has not completed.
        """
        return await self._get(Analysis, f"/api/tasks/{segment(task_id)}/result", only(entries=entries))

    async def export(self, task_id: str, form: str, *, from_: str | None = None) -> bytes:
        """Return the analysis of a task as a file. Raises NotFound if the analysis is missing.

        `from_` is the base of a comment: a task, a commit or a ref.
        """
        query = only(format=form) | ({} if from_ is None else {"from": from_})
        return await self._transport.content(f"/api/tasks/{segment(task_id)}/export", query=query, media="*/*")

    async def profile(self, task_id: str) -> bytes:
        """Return the coverage profile behind the analysis of a task. Raises NotFound if it is missing."""
        return await self._transport.content(f"/api/tasks/{segment(task_id)}/profile")

    async def attempts(self, task_id: str) -> Sequence[Attempt]:
        """The attempts at a task, in order."""
        return await self._list(Attempt, f"/api/tasks/{segment(task_id)}/attempts", {})

    async def log(self, task_id: str, attempt: int) -> str:
        """Return the log of an attempt so far. Raises NotFound if no log is kept."""
        return await self._transport.text(f"/api/tasks/{segment(task_id)}/attempts/{attempt}/log")

    def log_feed(self, task_id: str, attempt: int) -> AsyncGenerator[Signal, None]:
        """The events `log` and `end` of an attempt's log, from its beginning; after `end` there are no more.

        Close it (`contextlib.aclosing`) before the client.
        """
        return self._feed(f"/api/tasks/{segment(task_id)}/attempts/{attempt}/log/sse", None)

    async def cancel_task(self, id_: str) -> None:
        """End a task. It stays in the lists. Raises Conflicting if it has ended."""
        await self._command(f"/api/tasks/{segment(id_)}/cancel", None)

    async def retry_task(self, id_: str) -> Task:
        """Queue a task again. Raises Conflicting unless it failed or expired."""
        answer = await self._command(f"/api/tasks/{segment(id_)}/retry", None)
        return parse(Task, answer.document, known_at=answer.sequence)

    async def delete_task(self, id_: str) -> None:
        """Remove a task; one that runs is ended first."""
        await self._transport.request("DELETE", f"/api/tasks/{segment(id_)}")

    async def mark_seen(self, id_: str) -> None:
        """Mark a task as seen: lists leave it out unless asked."""
        await self._command(f"/api/tasks/{segment(id_)}/seen", None)

    async def hide_all(self) -> None:
        """Clear all tasks from the lists."""
        await self._command("/api/tasks/hide-all", None)

    # Workers

    async def workers(self) -> Sequence[Worker]:
        """The workers that the server knows."""
        return await self._list(Worker, "/api/workers", {})

    async def pause_worker(self, id_: str) -> None:
        """Let a worker take no more jobs. A running job continues."""
        await self._command(f"/api/workers/{segment(id_)}/pause", None)

    async def unpause_worker(self, id_: str) -> None:
        """Let a paused worker take jobs again."""
        await self._command(f"/api/workers/{segment(id_)}/unpause", None)

    # Events

    async def standing(self) -> Mapping[str, Any]:
        """The state of the read model, as `GET /api/projections` reports it: name, stream, incarnation and more."""
        answer = await self._transport.request("GET", "/api/projections")
        return answer.document if isinstance(answer.document, dict) else {}

    def feed(self, *, after: str | None = None) -> AsyncGenerator[Signal, None]:
        """The events `task`, `repo` and `worker` behind an event id (None: from now on), as in `follow` of terminalkit.

        Close it (`contextlib.aclosing`) before the client.
        """
        return self._feed("/api/sse", after)

    async def _get(self, type_: type[R], path: str, query: Mapping[str, str] | None = None) -> R:
        answer = await self._transport.request("GET", path, query=query)
        return parse(type_, answer.document, known_at=answer.sequence)
