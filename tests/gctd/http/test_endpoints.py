"""Each endpoint of the tracker's API: the status and the shape of its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gctd.http.api import TABLE
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

REPO = "https://example.com/endpoints/ready"
NEW = "https://example.com/endpoints/new"
BROKEN = "https://example.com/endpoints/broken"
UNKNOWN = "https://example.com/endpoints/unknown"

Shape = dict[str, Any]
TASK: Shape = {
    **dict.fromkeys(("id", "repo_url", "project", "ref", "status", "engine", "created_at", "updated_at"), str),
    **dict.fromkeys(("attempt", "max_attempts"), int),
    **dict.fromkeys(("seen", "hidden"), bool),
}
SUMMARY: Shape = {"average": float, "combined": float, "exceeded": int, "total_funcs": int}
METADATA: Shape = {"stars": int, "forks": int, "language": str, "license": str}
LISTED: Shape = {
    **dict.fromkeys(("id", "repo_id", "engine", "crap_version", "analyzed_at"), str),
    "repo_info": {"url": str, "ref": str, "commit_sha": str, "metadata": METADATA},
    "summary": SUMMARY,
    "duration_ms": int,
}
ANALYSIS: Shape = {**LISTED, "entries": [dict], "raw_output": {"version": str, "summary": dict, "entries": [dict]}}
PROJECTS: Shape = {"projects": [{"name": str, "module_path": str}]}
REGISTERED: Shape = {
    "Status": str,
    "StatusReason": str,
    "CommitSHA": str,
    "RegisteredAt": str,
    "ProfiledAt": str,
    "Profile": PROJECTS,
}
WORKER: Shape = {"id": str, "host": str, "pid": int, "cpu": float, "status": str}
CONFIG: Shape = {"url": str, "subdir": str, "stored": {"ref": None}, "effective": {"ref": str}, "origin": {"ref": str}}
MEASURED: Shape = {"task_id": str, "commit_sha": str, "summary": SUMMARY, "break": []}
DIFF: Shape = {"from": dict, "to": dict, "counts": {"new": int}, "functions": []}
GATE: Shape = {"passed": bool, "from": None, "to": {"task_id": str}, "checks": [{"name": str}], "functions": []}
FUNCTION: Shape = {"key": str, "file": str, "crap": float, "state": str, "source_reason": str, "blocks": [], "others": []}
RECORD: Shape = {"position": str, "sequence": int, "aggregate": str, "type": str, "at": str, "data": dict}
PROBLEM: Shape = {"message": str, "status": int}
OK: Shape = {"status": str}

ROWS: list[tuple[str, str, Any, int, Any]] = [
    # method, path, body, status, shape; the tasks are: one that is done and has an analysis, and one that waits
    ("POST", "/api/tasks", {"repo_url": REPO, "project": "p1", "ref": "main", "engine": "native"}, 201, TASK),
    ("POST", "/api/tasks", {"repo_url": REPO}, 201, TASK),
    ("POST", "/api/tasks", {"repo_url": UNKNOWN}, 404, PROBLEM),
    ("GET", "/api/tasks", None, 200, [TASK]),
    ("GET", "/api/tasks?status=completed&show_seen=true", None, 200, [TASK | {"analysis_id": str}]),
    ("GET", "/api/tasks?status=expired", None, 200, []),
    ("GET", "/api/tasks/{done}", None, 200, TASK | {"analysis_id": str}),
    ("GET", "/api/tasks/task-1", None, 404, PROBLEM),
    ("GET", "/api/tasks/{done}/result", None, 200, ANALYSIS),
    ("GET", "/api/tasks/task-1/result", None, 404, PROBLEM),
    ("GET", "/api/tasks/{waiting}/result", None, 409, PROBLEM),
    ("GET", "/api/tasks/{done}/export", None, 200, ANALYSIS),
    ("GET", "/api/tasks/{done}/attempts", None, 200, [{"attempt": int}]),
    ("POST", "/api/tasks/{waiting}/seen", None, 204, None),
    ("DELETE", "/api/tasks/{waiting}", None, 204, None),
    ("DELETE", "/api/tasks/{waiting}", None, 404, PROBLEM),
    ("POST", "/api/tasks/hide-all", {"ids": "task-1"}, 400, PROBLEM),
    ("POST", "/api/tasks/hide-all", {"ids": ["task-1"]}, 204, None),
    ("GET", "/api/tasks?limit=1", None, 200, [TASK]),
    ("POST", "/api/tasks/hide-all", None, 204, None),
    ("GET", "/api/tasks?status=completed", None, 200, []),
    ("GET", "/api/workers", None, 200, [WORKER]),
    ("POST", "/api/workers/worker-1/unpause", None, 204, None),
    ("POST", "/api/workers/worker-1/pause", None, 204, None),
    ("POST", "/api/workers/nobody/pause", None, 404, PROBLEM),
    ("DELETE", f"/api/repos/registered?url={UNKNOWN}", None, 404, PROBLEM),
    ("GET", "/api/repos/registered", None, 200, [{"ID": str, "URL": str, "Status": str}]),
    ("POST", "/api/repos", {"repo_url": NEW}, 202, REGISTERED | {"ProfiledAt": None, "Profile": {"projects": []}}),
    ("POST", "/api/repos", {"repo_url": REPO}, 202, REGISTERED),
    ("POST", "/api/repos/analyze", {"repo_url": REPO}, 202, [TASK]),
    ("POST", "/api/repos/analyze", {"repo_url": REPO, "project": "p1"}, 202, [TASK]),
    ("POST", "/api/repos/analyze", {"repo_url": UNKNOWN}, 404, PROBLEM),
    ("POST", "/api/repos/analyze", {"repo_url": REPO, "project": "nope"}, 404, PROBLEM),
    ("POST", "/api/repos/analyze", {"repo_url": NEW}, 409, PROBLEM),
    ("GET", f"/api/repos/status?url={REPO}", None, 200, REGISTERED),
    ("GET", f"/api/repos/status?url={UNKNOWN}", None, 404, PROBLEM),
    ("GET", "/api/repos/status", None, 400, PROBLEM),
    ("GET", "/api/repos", None, 200, [LISTED]),
    ("GET", "/api/repos/{analysis}", None, 200, ANALYSIS),
    ("GET", "/api/functions?search=Parse", None, 200, {"searched": int, "left_out": int}),
    ("GET", "/api/functions", None, 400, PROBLEM),
    ("GET", "/api/repos/{analysis}/gate", None, 200, GATE),
    ("POST", "/api/repos/{analysis}/gate", {"new_risk": False, "max_exceeded": 5}, 200, GATE),
    ("GET", f"/api/repos/{'0' * 32}", None, 404, PROBLEM),
    ("GET", "/api/repos/{analysis}/history", None, 200, [MEASURED]),
    ("GET", "/api/repos/{analysis}/diff?from={done}&to={done}", None, 200, DIFF),
    ("GET", "/api/repos/{analysis}/functions/Parse", None, 200, FUNCTION),
    ("GET", "/api/repos/{analysis}/functions/Nope", None, 404, PROBLEM),
    ("GET", "/api/repos/{analysis}/functions/Parse/history", None, 200, {"points": [dict], "cut": bool, "last_change": dict}),
    ("GET", f"/api/repo-config?url={REPO}", None, 200, CONFIG | {"stored": {"ref": str}}),
    ("GET", f"/api/repo-config?url={REPO}&subdir=p1", None, 200, CONFIG),
    ("POST", "/api/repo-config", {"url": REPO, "subdir": "p1", "ref": "dev"}, 200, CONFIG | {"stored": {"ref": str}}),
    ("DELETE", f"/api/repo-config?url={REPO}&subdir=p1", None, 204, None),
    ("DELETE", f"/api/repo-config?url={UNKNOWN}", None, 404, PROBLEM),
    ("GET", "/api/log?limit=1", None, 200, {"from": int, "to": int, "end": int, "events": [RECORD]}),
    ("GET", "/api/log/state?aggregate=gctd.worker.worker-1", None, 200, {"state": dict, "events": [RECORD]}),
    ("GET", "/api/projections", None, 200, {"state": str, "head": int, "projections": [{"name": str}], "parked": []}),
    ("GET", "/livez", None, 200, OK),
    ("GET", "/readyz", None, 200, OK),
    ("GET", "/health", None, 200, OK),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A system with a paused worker, so that scheduled tasks wait."""
    directory = tmp_path_factory.mktemp("endpoints")
    MadeUp(commit_sha="c" * 40, functions={"a.go:Parse": 42.5, "a.go:Get": 2.5}).write(directory / "analyses", "main")
    async with tracker_system(directory) as running:
        await running.start_worker(1, FAKE_PROJECTS="3", FAKE_ANALYSES=str(directory / "analyses"))
        await running.register(REPO)
        await running.post("/api/repos", {"repo_url": BROKEN})
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def names(system: TrackerSystem) -> dict[str, str]:
    """Ids of a task that is done, of its analysis, and of one that waits."""
    (done,) = await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "."})
    analysis = (await system.until_task(done["id"], "completed"))["analysis_id"]
    await system.post("/api/workers/worker-1/pause")
    await system.until_worker("worker-1", "paused")
    (waiting,) = await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "p2"})
    return {"done": done["id"], "waiting": waiting["id"], "analysis": analysis}


async def test_every_row(system: TrackerSystem, names: dict[str, str]) -> None:
    """In this order: some rows change what later ones find."""
    for method, path, body, status, shape in ROWS:
        where = f"{method} {path}"
        async with system.http.request(method, system.url + path.format_map(names), json=body) as answer:
            text = await answer.text()
            assert (where, answer.status) == (where, status), text
            if shape is None:
                assert (where, text) == (where, "")
            else:
                problem = "application/problem+json"
                assert answer.content_type == (problem if shape is PROBLEM else "application/json"), where
                assert misfit(await answer.json(), shape) is None, where


async def test_a_documented_route_is_a_row(system: TrackerSystem) -> None:
    described = {(route.method, route.path) for route in TABLE if not route.is_stream}
    rows = {(method, path.partition("?")[0]) for method, path, *_ in ROWS}

    def is_there(method: str, path: str) -> bool:
        head, _, tail = path.replace("{key}", "Parse").partition("{id}")
        return any(method == m and p.startswith(head) and (not tail or p.endswith(tail)) for m, p in rows)

    missing = {route for route in described if not is_there(*route)}
    others = {
        "github",
        "gitlab",
        "coverage",
        "check-updates",
        "rescore",
        "cancel",
        "retry",
        "profile",
        "log",
        "gate.md",
        "badge.svg",
        "projections",
    }
    assert {path for _, path in missing if path.rpartition("/")[2] not in others} == set()
    async with system.http.get(f"{system.url}/api/sse") as stream:
        assert (stream.status, stream.content_type) == (200, "text/event-stream")
    async with system.http.get(f"{system.url}/") as page:
        assert (page.status, page.content_type) == (200, "text/html")


WRONG = [
    ({"repo_url": "ftp://example.com/a"}, "repo_url"),
    ({"repo_url": UNKNOWN, "ref": "a b"}, "ref"),
    ({"repo_url": NEW, "ref": "--upload-pack=x"}, "ref"),
    ({"repo_url": NEW, "project": "../x"}, "project"),
    ({"repo_url": REPO, "project": "/etc"}, "project"),
    ({"repo_url": REPO, "engine": "nope"}, "engine"),
    ({"repo_url": REPO, "ref": 7}, "ref"),
    ({"project": "."}, "repo_url"),
]


@pytest.mark.parametrize("path", ["/api/tasks", "/api/repos/analyze"])
@pytest.mark.parametrize(("body", "field"), WRONG, ids=str)
async def test_a_wrong_request_is_400_also_for_an_unknown_repository(
    system: TrackerSystem, path: str, body: dict[str, Any], field: str
) -> None:
    status, problem = await system.status(path, "POST", json=body)
    assert (status, [error["pointer"] for error in problem["errors"]]) == (400, [f"#/{field}"])


async def test_a_known_repository_is_discovered_again_only_where_it_was_in_error_or_on_request(system: TrackerSystem) -> None:
    async def registered(url: str, query: str = "") -> Any:
        status, repo = await system.status(f"/api/repos{query}", "POST", json={"repo_url": url})
        assert status == 202
        return repo

    async def discoveries(url: str) -> int:
        id_ = (await registered(url))["ID"]
        events = await system.events(f"gctd.repo.{id_}")
        return sum(event.type in {"RepoRegistered", "DiscoveryRequested"} for event in events)

    await system.post("/api/workers/worker-1/unpause")
    ready, broken = f"{REPO}-again", f"{BROKEN}-again"
    known = await system.register(ready)
    assert await registered(ready) == known
    assert await discoveries(ready) == 1
    again = await registered(ready, "?refresh=true")
    assert (again["Status"], again["ID"]) == ("registering", known["ID"])
    assert await discoveries(ready) == 2

    await registered(broken)
    failed = await system.until_repo(broken, "error")
    assert failed["StatusReason"] == "there is no go.mod"
    status, problem = await system.status("/api/repos/analyze", "POST", json={"repo_url": broken})
    assert (status, "there is no go.mod" in problem["message"]) == (409, True)
    assert (await registered(broken))["Status"] == "registering"
    await system.until_repo(broken, "error")


async def test_the_list_of_analyses_comes_in_pages(system: TrackerSystem, names: dict[str, str]) -> None:
    await system.post("/api/workers/worker-1/unpause")
    for task in await system.post("/api/repos/analyze", {"repo_url": REPO, "ref": "main"}):
        await system.until_task(task["id"], "completed")
    whole = await system.get("/api/repos")
    assert [one["project"] for one in whole] == [".", "p1", "p2"]
    assert whole[0]["id"] == names["analysis"]
    pages: list[Any] = []
    url: str | None = f"{system.url}/api/repos?limit=2"
    while url:
        async with system.http.get(url) as answer:
            pages.append(await answer.json())
            link = answer.links.get("next")
            url = str(link["url"]) if link else None
    assert pages == [whole[:2], whole[2:]]


def misfit(value: Any, shape: Any, where: str = "") -> str | None:
    """Return the place at which a value differs from a shape: required members, types of leaves. Items of a list share one."""
    if shape is None or isinstance(shape, type):
        fits = value is None if shape is None else isinstance(value, shape) or (shape is float and type(value) is int)
        return None if fits else f"{where}: {value!r}"
    if isinstance(shape, list):
        if not isinstance(value, list) or bool(value) != bool(shape):
            return f"{where}: {value!r}"
        return next((found for index, item in enumerate(value) if (found := misfit(item, shape[0], f"{where}[{index}]"))), None)
    if not isinstance(value, dict):
        return f"{where}: {value!r}"
    return next((found for name in shape if (found := misfit(value.get(name), shape[name], f"{where}.{name}"))), None)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/api/tasks?statuss=failed", "is unknown; did you mean status?"),
        ("/api/repos/check-updates?cursor=", "is not a cursor of this list"),
    ],
)
async def test_a_wrong_query_parameter_is_refused_and_selects_nothing(system: TrackerSystem, path: str, detail: str) -> None:
    method, body = ("POST", {"repo_url": REPO}) if "check-updates" in path else ("GET", None)
    status, problem = await system.status(path, method, json=body)
    assert (status, [error["detail"] for error in problem["errors"]]) == (400, [detail])
