"""The tracker's API as a small server on a real socket, whose every answer a test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

import attrs
from aiohttp import web

REPO_URL = "https://github.com/example/module"
T0 = "2026-11-20T10:00:00.000000Z"

Document = dict[str, Any]
Script = Callable[["FakeApi"], Awaitable[None]]


@attrs.frozen
class Request:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@attrs.frozen
class Reply:
    """An answer other than the usual one; `cut`: the connection is cut instead, after the request was read."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    cut: bool = False


def problem(status: int, message: str, **more: Any) -> Reply:
    """An error as the API answers it."""
    body = {"type": "about:blank", "title": "refused", "status": status, "message": message, "detail": message} | more
    return Reply(status, body, {"Content-Type": "application/problem+json"})


def repo_document(status: str = "ready", *, url: str = REPO_URL, projects: Sequence[str] = (".",), **more: Any) -> Document:
    """A repository's record."""
    found = [
        {
            "name": name,
            "module_path": f"example.com/module/{name}",
            "go_version": "1.26",
            "toolchain": "",
            "in_workspace": False,
            "packages": 3,
            "has_tests": True,
            "problem": None,
        }
        for name in projects
    ]
    ready = status == "ready"
    return {
        "ID": "d3b07384d113edec49eaa6238ad5ff00",
        "URL": url,
        "Status": status,
        "StatusReason": "",
        "CommitSHA": "0123456789abcdef0123456789abcdef01234567" if ready else "",
        "DefaultRef": "main",
        "RegisteredAt": T0,
        "ProfiledAt": T0 if ready else None,
        "Profile": {"projects": found if ready else []},
    } | more


def task_document(number: int = 1, status: str = "queued", *, second: int = 0, **more: Any) -> Document:
    """A task; `second` is when it last changed, after it was created."""
    return {
        "id": f"task-{number}",
        "repo_url": REPO_URL,
        "project": ".",
        "ref": "main",
        "status": status,
        "engine": "native",
        "attempt": 0 if status == "queued" else 1,
        "max_attempts": 3,
        "created_at": T0,
        "updated_at": f"2026-11-20T10:{second // 60:02d}:{second % 60:02d}.000000Z",
        "seen": False,
        "hidden": False,
        "worker": "" if status == "queued" else "worker-1",
        "stage": "",
        "reason": "",
    } | more


def attempt_document(number: int = 1, outcome: str | None = "completed", **more: Any) -> Document:
    """An attempt that began with the task and took two stages."""
    running = outcome is None
    return {
        "attempt": number,
        "worker": "worker-1",
        "started_at": T0,
        "ended_at": None if running else "2026-11-20T10:01:05.000000Z",
        "outcome": outcome,
        "reason": "",
        "stages": [
            {"stage": "clone", "started_at": T0, "duration_ms": 1500},
            {"stage": "test", "started_at": T0, "duration_ms": None if running else 62_000},
        ],
        "log": None if running else {"size": 2048, "cut": 0},
    } | more


def analysis_document(
    project: str = ".", *, entries: Sequence[tuple[str, float]] = (("Parse", 42.5), ("Get", 2.0)), **more: Any
) -> Document:
    """An analysis with these functions and scores, worst first."""
    functions = [
        {
            "file": f"{name.lower()}.go",
            "function": name,
            "name": name,
            "receiver": "",
            "package": "module",
            "line": line,
            "cyclomatic": 6,
            "coverage": None if name == "Parse" else 66.7,
            "stmt_coverage": None,
            "crap": crap,
            "state": "measured",
        }
        for line, (name, crap) in enumerate(entries, 10)
    ]
    total = sum(crap for _, crap in entries)
    summary = {
        "average": total / max(len(entries), 1),
        "combined": total,
        "exceeded": sum(crap > 30 for _, crap in entries),
        "total_funcs": len(entries),
    }
    return {
        "id": "aa0748384d113edec49eaa6238ad5ff0",
        "repo_id": "d3b07384d113edec49eaa6238ad5ff00",
        "project": project,
        "task_id": "task-1",
        "repo_info": {
            "url": REPO_URL,
            "ref": "main",
            "commit_sha": "0123456789abcdef0123456789abcdef01234567",
            "metadata": {"stars": 0, "forks": 0, "language": "Go", "license": "MIT"},
        },
        "summary": summary,
        "measured": summary,
        "states": {"measured": len(entries)} if entries else {},
        "engine": "native",
        "crap_version": "v0.5.1",
        "uncovered": [],
        "analyzed_at": T0,
        "duration_ms": 12345,
        "entries": functions,
        "raw_output": {"version": "1.1.0", "summary": {}, "entries": []},
    } | more


def worker_document(id_: str = "worker-1", status: str = "busy", **more: Any) -> Document:
    """A worker."""
    return {
        "id": id_,
        "host": "build-7",
        "pid": 4711,
        "cpu": None if status == "gone" else 0.125,
        "memory": None if status == "gone" else 256 * 1024**2,
        "status": status,
        "tasks": [] if status == "gone" else ["task-1"],
        "concurrency": None if status == "gone" else 2,
        "version": "" if status == "gone" else "0.1.0",
        "go_version": "" if status == "gone" else "go1.26.6",
        "sandbox": "" if status == "gone" else "bubblewrap",
        "started_at": T0,
    } | more


class FakeApi:
    """Serves what its attributes hold, for use in `async with`.

    `replies[method, path]` are given one after the other instead of the usual answers, the last one for good where `always` has
    it. `after_post` runs in the background once the first POST of a repository or an analysis is answered.
    """

    def __init__(self) -> None:
        self.url = ""
        self.token: str | None = None
        self.repos: dict[str, Document] = {}
        self.tasks: dict[str, Document] = {}
        self.scheduled: Sequence[Document] = ()
        self.attempts: dict[str, list[Document]] = {}
        self.logs: dict[tuple[str, int], str] = {}
        self.results: dict[str, Document] = {}
        self.analyses: list[Document] = []
        self.workers: list[Document] = [worker_document()]
        self.page = 1000
        self.requests: list[Request] = []
        self.replies: dict[tuple[str, str], list[Reply]] = {}
        self.always: dict[tuple[str, str], Reply] = {}
        self.after_post: Script | None = None
        self.frames: list[tuple[str, str, str]] = []
        self.resumed_from: list[str | None] = []
        self.cut_after: int | None = None
        self.ahead = 0
        self._grown = asyncio.Condition()
        self._sequence = 0
        self._scripts: list[asyncio.Task[None]] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for script in self._scripts:
            script.cancel()
        done = await asyncio.gather(*self._scripts, return_exceptions=True)
        await self.stop()
        for outcome in done:
            if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                raise outcome

    async def start(self, port: int = 0) -> None:
        """Listen, on a free port or on the one given."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        self.url = site.name

    async def stop(self) -> None:
        """Close every connection and listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def seen(self, method: str, path: str) -> Sequence[Request]:
        """The requests of a method and path, in order."""
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    async def publish(self, event: str, document: Document) -> None:
        """Append a frame to the event stream."""
        self._sequence += 1
        async with self._grown:
            self.frames.append((str(self._sequence), event, json.dumps(document)))
            self._grown.notify_all()

    async def change(self, document: Document) -> None:
        """Replace a task, and publish it on the event stream."""
        self.tasks[document["id"]] = document
        await self.publish("task", document)

    async def change_repo(self, document: Document) -> None:
        """Replace a repository, and publish it on the event stream."""
        self.repos[document["URL"]] = document
        await self.publish("repo", document)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        self.requests.append(Request(request.method, request.path, dict(request.query), dict(request.headers), body))
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _response(problem(401, "a bearer token is needed"))
        key = (request.method, request.path)
        planned = self.replies.get(key)
        reply = planned.pop(0) if planned else self.always.get(key)
        if reply is not None:
            await asyncio.sleep(reply.delay)
            if reply.cut:
                assert request.transport is not None
                request.transport.abort()
            return _response(reply)
        if key == ("GET", "/api/sse"):
            return await self._stream(request)
        reply = self._usual(request, body)
        reply = attrs.evolve(reply, headers={**reply.headers, "Event-Sequence": str(self._sequence + self.ahead)})
        if request.method == "POST" and self.after_post is not None:
            self._scripts.append(asyncio.ensure_future(self.after_post(self)))
            self.after_post = None
        return _response(reply)

    def _usual(self, request: web.Request, body: Any) -> Reply:
        _, kind, *names = request.path.strip("/").split("/") + [""] * (2 - request.path.count("/"))
        answers = {"repos": self._repos, "tasks": self._tasks, "workers": self._workers}
        answer = answers[kind](request, body, request.method, *names) if kind in answers else None
        return answer or problem(404, "there is nothing here")

    def _repos(self, request: web.Request, body: Any, *route: str) -> Reply | None:
        match route:
            case ("POST",):
                return Reply(202, self.repos.setdefault(body["repo_url"], repo_document("registering", url=body["repo_url"])))
            case ("POST", "analyze"):
                self.tasks |= {task["id"]: task for task in self.scheduled}
                return Reply(202, list(self.scheduled))
            case ("GET",):
                return self._listed(request, self.analyses)
            case ("GET", "registered"):
                return self._listed(request, list(self.repos.values()))
            case ("GET", "status"):
                known = self.repos.get(request.query["url"])
                return Reply(200, known) if known else problem(404, f"{request.query['url']} is not registered")
        return None

    def _tasks(self, request: web.Request, body: Any, *route: str) -> Reply | None:
        match route:
            case ("GET",):
                wanted, all_ = request.query.get("status"), request.query.get("under_way") == "true"
                found = [task for task in self.tasks.values() if wanted in (None, task["status"])]
                alive = ("queued", "pending", "running")
                return self._listed(request, [one for one in found if (one["status"] in alive if all_ else not one["hidden"])])
            case ("GET", id_):
                return Reply(200, self.tasks[id_]) if id_ in self.tasks else problem(404, f"there is no {id_}")
            case ("GET", id_, "result"):
                return Reply(200, self.results[id_]) if id_ in self.results else problem(409, f"{id_} has not completed")
            case ("DELETE", id_):
                return Reply(204) if self.tasks.pop(id_, None) else problem(404, f"there is no {id_}")
            case ("GET", id_, "attempts", number, "log"):
                text = self.logs.get((id_, int(number)))
                return Reply(200, text.encode(), {"Content-Type": "text/plain"}) if text is not None else problem(404, "no log")
            case ("GET", id_, "attempts"):
                return Reply(200, self.attempts[id_]) if id_ in self.attempts else problem(404, f"there is no {id_}")
            case ("POST", id_, "cancel"):
                return Reply(204) if id_ in self.tasks else problem(404, f"there is no {id_}")
            case ("POST", id_, "retry"):
                return Reply(202, self.tasks[id_]) if id_ in self.tasks else problem(404, f"there is no {id_}")
            case ("POST", "hide-all") | ("POST", _, "seen"):
                return Reply(204)
        return None

    def _workers(self, request: web.Request, body: Any, *route: str) -> Reply | None:
        match route:
            case ("GET",):
                return Reply(200, self.workers)
            case ("POST", id_, "pause" | "unpause"):
                known = any(worker["id"] == id_ for worker in self.workers)
                return Reply(204) if known else problem(404, f"there is no worker {id_}")
        return None

    def _listed(self, request: web.Request, documents: Sequence[Document]) -> Reply:
        limit = min(int(request.query.get("limit", self.page)), self.page)
        start = int(request.query.get("cursor", 0))
        end = start + limit
        following = request.url.update_query(cursor=str(end), limit=str(limit))
        headers = {"Link": f'<{following}>; rel="next"'} if end < len(documents) else {}
        return Reply(200, list(documents[start:end]), headers)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID")
        self.resumed_from.append(last)
        place = (
            len(self.frames)
            if last is None
            else next((index for index, (id_, _, _) in enumerate(self.frames) if int(id_) > int(last)), len(self.frames))
        )
        here = str(self._sequence) if last is None else last
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        await response.write(f"retry: 20\nid: {here}\n\n".encode())
        given = 0
        while True:
            async with self._grown:
                while len(self.frames) <= place:
                    await self._grown.wait()
            id_, event, data = self.frames[place]
            wire = f"id: {id_}\nevent: {event}\ndata: {data}\n\n".encode()
            if self.cut_after is not None and given >= self.cut_after:
                await response.write(wire[: len(wire) // 2])
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write(wire)
            place, given = place + 1, given + 1


def _response(reply: Reply) -> web.Response:
    if reply.body is None:
        return web.Response(status=reply.status, headers=reply.headers)
    headers = {"Content-Type": "application/json"} | dict(reply.headers)
    raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    return web.Response(status=reply.status, body=raw, headers=headers)
