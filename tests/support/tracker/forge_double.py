"""A double of a forge's API on loopback: commit statuses and comments as GitHub and GitLab have them, with faults on request."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
from aiohttp import web

TOKEN = "token-of-the-forge-0123456789"
SECRET = "secret-of-the-webhook-0123456789"


@attrs.define
class ForgeDouble:
    """Statuses by commit and comments by number, the oldest first. `sent` has method and path of every change that was made.

    `faults` are answered first, one for each change: a status code with headers. `pause(when, kind, key)` is awaited
    before and after each change. `kind` is `status` or `comment`, `key` the commit or the number.
    """

    url: str = ""
    statuses: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict)
    comments: dict[int, list[dict[str, Any]]] = attrs.field(factory=dict)
    sent: list[tuple[str, str]] = attrs.field(factory=list)
    asked: list[str] = attrs.field(factory=list)
    faults: list[tuple[int, dict[str, str]]] = attrs.field(factory=list)
    pause: Callable[[str, str, str], Awaitable[None]] | None = None
    _ids: int = 0

    def app(self) -> web.Application:
        """The API of GitHub at the root, and of GitLab below /api/v4."""
        app = web.Application()
        for path in (
            *("/repos/{owner}/{name}/commits/{sha}/statuses", "/repos/{owner}/{name}/statuses/{sha}"),
            *("/api/v4/projects/{project}/repository/commits/{sha}/statuses", "/api/v4/projects/{project}/statuses/{sha}"),
        ):
            app.router.add_route("*", path, self._status)
        for path in (
            *("/repos/{owner}/{name}/issues/{number:[0-9]+}/comments", "/repos/{owner}/{name}/issues/comments/{id}"),
            "/api/v4/projects/{project}/merge_requests/{number}/notes",
            "/api/v4/projects/{project}/merge_requests/{number}/notes/{id}",
        ):
            app.router.add_route("*", path, self._comment)
        return app

    async def _change(self, request: web.Request, kind: str, key: str, make: Callable[[Any], Any]) -> web.StreamResponse:
        if self.faults:
            status, headers = self.faults.pop(0)
            return web.json_response({}, status=status, headers=headers)
        body = await request.json()
        if self.pause is not None:
            await self.pause("before", kind, key)
        made = make(body)
        if isinstance(made, web.Response):
            return made
        self.sent.append((request.method, request.path))
        if self.pause is not None:
            await self.pause("after", kind, key)
        return web.json_response(made, status=200 if request.method in {"PATCH", "PUT"} else 201)

    def _refused(self, request: web.Request) -> web.Response | None:
        self.asked.append(request.path)
        given = request.headers.get("Authorization") or f"Bearer {request.headers.get('PRIVATE-TOKEN')}"
        return None if given == f"Bearer {TOKEN}" else web.json_response({"message": "Bad credentials"}, status=401)

    async def _status(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._refused(request)) is not None:
            return refused
        known = self.statuses.setdefault(request.match_info["sha"], [])
        gitlab = "project" in request.match_info
        if request.method == "GET":
            name = request.query.get("name")
            return web.json_response([one for one in known[::-1] if name is None or one["name"] == name])

        def make(body: Any) -> Any:
            if len(body["description"]) > 140 or body["state"] not in {"success", "failure", "error", "failed"}:
                return web.json_response({"message": "Validation Failed"}, status=422)
            same = [one for one in known if one.get("name") == body.get("name")]
            if gitlab and same and same[-1]["status"] == body["state"]:
                return web.json_response({"message": "Cannot transition status"}, status=400)
            known.append({**body, "status": body["state"]})
            return known[-1]

        return await self._change(request, "status", request.match_info["sha"], make)

    async def _comment(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._refused(request)) is not None:
            return refused
        if "id" in request.match_info:
            id_ = int(request.match_info["id"])
            (comment,) = [one for comments in self.comments.values() for one in comments if one["id"] == id_]

            def replace(body: Any) -> Any:
                comment["body"] = body["body"]
                return comment

            return await self._change(request, "comment", "", replace)
        known = self.comments.setdefault(int(request.match_info["number"]), [])
        if request.method == "GET":
            page = int(request.query.get("page", "1"))
            return web.json_response(known[100 * (page - 1) : 100 * page])

        def add(body: Any) -> Any:
            self._ids += 1
            known.append({"id": self._ids, "body": body["body"]})
            return known[-1]

        return await self._change(request, "comment", request.match_info["number"], add)


@asynccontextmanager
async def forge_double() -> AsyncIterator[ForgeDouble]:
    """A double that runs; `url` is its address."""
    double = ForgeDouble()
    runner = web.AppRunner(double.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    double.url = f"http://{host}:{port}"
    try:
        yield double
    finally:
        await runner.cleanup()


def signed(body: bytes, *, event: str, delivery: str, secret: str = SECRET) -> dict[str, str]:
    """The headers with which GitHub delivers a body."""
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": signature,
    }


def with_token(*, event: str, delivery: str, secret: str = SECRET) -> dict[str, str]:
    """The headers with which GitLab delivers a body."""
    return {
        "Content-Type": "application/json",
        "X-Gitlab-Event": event,
        "Idempotency-Key": delivery,
        "X-Gitlab-Token": secret,
    }


def github_push(path: str, before: str, after: str, *, branch: str = "main") -> bytes:
    """A push to a branch."""
    repository = {"full_name": path, "default_branch": "main"}
    return json.dumps({"ref": f"refs/heads/{branch}", "before": before, "after": after, "repository": repository}).encode()


def github_pull(path: str, number: int, commit: str, base: str, *, action: str = "opened") -> bytes:
    """A pull request."""
    pull = {"head": {"ref": "feature", "sha": commit}, "base": {"ref": base, "sha": "0" * 40}}
    document = {"action": action, "number": number, "pull_request": pull, "repository": {"full_name": path}}
    return json.dumps(document).encode()


def gitlab_merge(path: str, number: int, commit: str, base: str, *, action: str = "open") -> bytes:
    """A merge request."""
    merge = {
        "action": action,
        "iid": number,
        "source_branch": "feature",
        "target_branch": base,
        "last_commit": {"id": commit},
    }
    return json.dumps({"project": {"path_with_namespace": path}, "object_attributes": merge}).encode()


def gitlab_push(path: str, before: str, after: str) -> bytes:
    """A push to main."""
    project = {"path_with_namespace": path, "default_branch": "main"}
    return json.dumps({"ref": "refs/heads/main", "before": before, "after": after, "project": project}).encode()
