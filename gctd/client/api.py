"""The tracker's HTTP API as methods: arguments in, values of `gctd.client.resources` out, errors of `gctd.client.errors`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self
from uuid import uuid4

from gctd.client.errors import Unavailable
from gctd.client.feed import Signal, follow
from gctd.client.resources import Analysis, R, Repo, Task, Worker, parse, parse_list
from gctd.client.transport import Answer, Transport, segment

TIMEOUT = 30.0
"""Seconds that one request may take, unless a caller says otherwise."""

LARGEST_PAGE = 1000
"""Elements that are asked for at once."""

_RETRY_WAIT = 0.1
_LONGEST_RETRY_WAIT = 2.0


class Client:
    """A client of one server, for use in `async with`.

    `url`: where the server listens, `http://host:port`; `token`: its bearer token, where it wants one; `timeout`: seconds that
    one request may take; `trace`: called with a line for each request. Every method raises ClientError; what a class of error
    means stands with it. Raises Rejected where `url` cannot be the address of a server.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = TIMEOUT, trace: Callable[[str], None] | None = None
    ) -> None:
        self._transport = Transport(url, token=token, timeout=timeout, trace=trace)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._transport.__aexit__(*details)

    # Repositories

    async def add_repo(self, repo_url: str, *, refresh: bool = False) -> Repo:
        """Register a repository, or find that it is known; `refresh`: look for the projects of a known one again."""
        answer = await self._command("/api/repos?refresh=true" if refresh else "/api/repos", {"repo_url": repo_url})
        return parse(Repo, answer.document)

    async def repo(self, repo_url: str) -> Repo:
        """The record of a repository. Raises NotFound where it was never registered."""
        answer = await self._transport.request("GET", "/api/repos/status", query={"url": repo_url})
        return parse(Repo, answer.document)

    async def analyze(
        self, repo_url: str, *, project: str | None = None, ref: str | None = None, engine: str | None = None
    ) -> Sequence[Task]:
        """Schedule the analysis of a registered repository: one task per project, or one for `project`."""
        body = _only(repo_url=repo_url, project=project, ref=ref, engine=engine)
        answer = await self._command("/api/repos/analyze", body)
        return parse_list(Task, answer.document)

    async def analyses(self) -> Sequence[Analysis]:
        """The latest analysis of each project of each repository, without the functions."""
        return await self._list(Analysis, "/api/repos", {})

    async def analysis(self, id_: str, *, entries: int | None = None) -> Analysis:
        """The latest analysis of a project by its id, with at most so many functions, worst first."""
        answer = await self._transport.request("GET", f"/api/repos/{segment(id_)}", query=_only(entries=entries))
        return parse(Analysis, answer.document)

    # Tasks

    async def tasks(self, *, status: str | None = None, show_seen: bool = False, limit: int | None = None) -> Sequence[Task]:
        """The tasks in one status, or all, `limit` at most (None: however many there are)."""
        query = _only(status=status, show_seen="true" if show_seen else None)
        return await self._list(Task, "/api/tasks", query, limit)

    async def task(self, id_: str) -> Task:
        """A task by its id."""
        answer = await self._transport.request("GET", f"/api/tasks/{segment(id_)}")
        return parse(Task, answer.document)

    async def result(self, task_id: str, *, entries: int | None = None) -> Analysis:
        """The analysis that a task led to, with at most so many functions, worst first.

        Raises NotFound where there is none, Conflicting where the task has not completed.
        """
        path = f"/api/tasks/{segment(task_id)}/result"
        answer = await self._transport.request("GET", path, query=_only(entries=entries))
        return parse(Analysis, answer.document)

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
        """Let a worker take no more jobs; one that runs goes on."""
        await self._command(f"/api/workers/{segment(id_)}/pause", None)

    async def unpause_worker(self, id_: str) -> None:
        """Let a paused worker take jobs again."""
        await self._command(f"/api/workers/{segment(id_)}/unpause", None)

    # Events

    def feed(self, *, after: str | None = None) -> AsyncGenerator[Signal, None]:
        """The events `task`, `repo` and `worker` behind an event id (None: from now on), as in `gctd.client.feed.follow`.

        Close it (`contextlib.aclosing`) before the client.
        """

        def connect(last_id: str | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
            return self._transport.stream("/api/sse", last_id)

        return follow(connect, after=after)

    async def _command(self, path: str, body: object) -> Answer:
        """A POST: made a second time, under the same key, where it is unknown whether the first took effect."""
        headers = {"Idempotency-Key": str(uuid4())}
        try:
            return await self._transport.request("POST", path, body=body, headers=headers)
        except Unavailable as error:
            if not error.sent:
                raise
            await asyncio.sleep(min(error.retry_after or _RETRY_WAIT, _LONGEST_RETRY_WAIT))
        return await self._transport.request("POST", path, body=body, headers=headers)

    async def _list(self, type_: type[R], path: str, query: Mapping[str, str], limit: int | None = None) -> Sequence[R]:
        """The elements of a list, page by page, `limit` at most."""
        found: list[R] = []
        page = dict(query)
        while limit is None or len(found) < limit:
            if limit is not None:
                page["limit"] = str(min(limit - len(found), LARGEST_PAGE))
            answer = await self._transport.request("GET", path, query=page)
            found += parse_list(type_, answer.document)
            if answer.cursor is None:
                break
            page["cursor"] = answer.cursor
        return found[:limit]


def _only(**values: str | int | None) -> dict[str, str]:
    """Those of the values that are given, as text."""
    return {name: str(value) for name, value in values.items() if value is not None}
