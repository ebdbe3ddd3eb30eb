"""Badges, exports and the quality gate of a running system: over HTTP and on the command line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import pytest_asyncio

from gctd.domain.analysis import PackageProblem
from tests.support.programs.cli import Result, gctd
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import tracker_system

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

PROFILE = "mode: set\nexample.com/x/a.go:1.1,2.2 3 1\nexample.com/x/a.go:3.1,4.2 1 0\n"
FIRST = MadeUp(
    commit_sha="1" * 40, functions={"a.go:Parse": 42.0, "a.go:Store.Put": 12.0, "a.go:Gone": 2.0}, profile=PROFILE, sandbox="none"
)
SECOND = MadeUp(
    commit_sha="2" * 40,
    functions={"a.go:Parse": 20.0, "a.go:Store.Put": 13.0, "a.go:Added": 31.0},
    profile=PROFILE,
    sandbox="bubblewrap",
    uncovered=(PackageProblem(path="example.com/x/b", reason="no tests"),),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Project]:
    """A project with two analyses."""
    directory = tmp_path_factory.mktemp("exports")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        made = await Project.registered(system, directory / "analyses")
        await made.analyze(FIRST, SECOND)
        yield made


async def fetch(project: Project, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with project.system.http.get(project.system.url + path, headers=headers) as answer:
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, await answer.read()


def said(picture: bytes) -> str | None:
    root = ET.fromstring(picture)
    return root.get("aria-label")


async def test_badges_show_the_latest_analysis_to_any_page_and_are_asked_for_once(project: Project) -> None:
    path = f"{await project.path}/badge.svg"
    status, headers, picture = await fetch(project, path)
    assert (status, headers["content-type"]) == (200, "image/svg+xml; charset=utf-8")
    assert (headers["cross-origin-resource-policy"], headers["cache-control"]) == ("cross-origin", "max-age=60")
    assert said(picture) == "CRAP average: 21.3"
    assert (await fetch(project, path, **{"If-None-Match": headers["etag"]}))[::2] == (304, b"")
    shown = {}
    for metric in ("exceeded", "coverage", "grade", "functions", "total"):
        shown[metric] = said((await fetch(project, f"{path}?metric={metric}"))[2])
    assert shown == {
        "exceeded": "CRAP over 30: 1",
        "coverage": "coverage: 75%",
        "grade": "CRAP grade: F",
        "functions": "functions: 3",
        "total": "CRAP total: 64",
    }
    assert said((await fetch(project, f"{path}?metric=functions&label=<script>"))[2]) == "<script>: 3"


@pytest.mark.parametrize(("public", "seen"), [("true", 200), ("false", 401)])
async def test_badges_are_given_without_the_token_where_they_are_public_and_nothing_else_is(
    tmp_path: Path, public: str, seen: int
) -> None:
    async with tracker_system(tmp_path, GCTD_AUTH_TOKEN="a-token-of-some-length", GCTD_PUBLIC_BADGES=public) as system:
        assert (await system.status(f"/api/repos/{'0' * 32}/badge.svg"))[0] == seen
        assert (await system.status("/api/repos"))[0] == 401
        assert (await system.status(f"/api/repos/{'0' * 32}"))[0] == 401


async def test_a_badge_is_found_by_the_repository_too_and_is_neutral_where_there_is_nothing(project: Project) -> None:
    repo = await project.system.get(f"/api/repos/status?url={project.url}")
    by_repo = (await fetch(project, f"/api/repos/{repo['ID']}/badge.svg?project=."))[2]
    assert said(by_repo) == "CRAP average: 21.3"
    for path in (f"/api/repos/{'0' * 32}/badge.svg", f"/api/repos/{repo['ID']}/badge.svg?project=other"):
        status, _, picture = await fetch(project, path)
        assert (status, said(picture)) == (200, "CRAP average: unknown")
    assert (await fetch(project, f"{await project.path}/badge.svg?metric=beauty"))[0] == 400


async def test_an_analysis_is_exported_in_each_form_also_after_its_task_is_gone(project: Project) -> None:
    task = project.tasks[0]
    result = await project.system.get(f"/api/tasks/{task}/result")
    assert (await project.system.status(f"/api/tasks/{task}", "DELETE"))[0] == 204
    wanted = {
        "json": ("application/json", "json"),
        "go-crap": ("application/json", "go-crap.json"),
        "csv": ("text/csv; charset=utf-8", "csv"),
        "sarif": ("application/sarif+json", "sarif"),
        "markdown": ("text/markdown; charset=utf-8", "md"),
    }
    bodies = {}
    for form, (media, suffix) in wanted.items():
        status, headers, bodies[form] = await fetch(project, f"/api/tasks/{task}/export?format={form}")
        assert (status, headers["content-type"]) == (200, media)
        assert headers["content-disposition"] == f'attachment; filename="{task}.{suffix}"'
    assert json.loads(bodies["json"]) == result
    assert json.loads(bodies["go-crap"]) == result["raw_output"]
    rows = list(csv.DictReader(io.StringIO(bodies["csv"].decode())))
    assert next((row["function"], row["crap"], row["exceeded"]) for row in rows) == ("Parse", "42.0", "true")
    (run,) = json.loads(bodies["sarif"])["runs"]
    assert [one["locations"][0]["logicalLocations"][0]["name"] for one in run["results"]] == ["Parse"]
    assert b"no analysis of another commit" in bodies["markdown"]
    text = (await fetch(project, f"/api/tasks/{project.tasks[1]}/export?format=markdown"))[2].decode()
    assert "1 new, 1 worse, 1 fixed, 1 gone; 0 unchanged" in text
    assert "sandbox `none` → `bubblewrap`" in text
    itself = f"/api/tasks/{project.tasks[1]}/export?format=markdown&from={project.tasks[1]}"
    assert "none changed; 3 unchanged" in (await fetch(project, itself))[2].decode()
    for path, status in [(f"{task}/export?format=pdf", 400), ("task-1/export", 404)]:
        assert (await fetch(project, f"/api/tasks/{path}"))[0] == status


async def test_the_gate_judges_existing_and_added_functions(project: Project) -> None:
    path = f"{await project.path}/gate"
    usual = await project.system.get(path)
    assert [one["function"] for one in usual["functions"]] == ["Added"]
    assert (usual["rising"], [(one["function"], one["checks"]) for one in usual["worsened"]]) == (1, [("Store.Put", [])])
    verdict = await project.system.get(f"{path}?worse=any")
    assert (verdict["passed"], verdict["threshold"], verdict["offending"], verdict["rising"]) == (False, 30.0, 2, 0)
    assert (verdict["from"]["commit_sha"], verdict["to"]["commit_sha"]) == (FIRST.commit_sha, SECOND.commit_sha)
    assert [one["what"] for one in verdict["break"]] == ["sandbox"]
    assert verdict["checks"] == [
        {"name": "max_new", "passed": False, "limit": 0, "value": 1, "text": "new risky functions (CRAP over 30)"},
        {"name": "max_worse", "passed": False, "limit": 0, "value": 1, "text": "functions that are worse"},
    ]
    assert [(one["function"], one["checks"], one["before"] and one["before"]["crap"]) for one in verdict["functions"]] == [
        ("Added", ["max_new"], None),
        ("Store.Put", ["max_worse"], 12.0),
    ]
    (fixed,) = verdict["fixed"]
    assert (fixed["function"], fixed["before"]["crap"], fixed["after"]["crap"]) == ("Parse", 42.0, 20.0)
    assert (verdict["no_longer_risky"], (await project.system.get(f"{path}?limit=0"))["no_longer_risky"]) == (1, 1)

    async def failed(query: str) -> list[str]:
        judged = await project.system.get(f"{path}?{query}")
        return [one["name"] for one in judged["checks"] if one["passed"] is False]

    assert await failed("") == ["max_new"]
    assert await failed("max_new=1&max_worse=1&worse=any") == []
    assert await failed("threshold=40") == []
    assert await failed("new_risk=false&max_crap=31&max_exceeded=1&max_average=22&min_coverage=75&max_uncovered=1") == []
    assert await failed("new_risk=false&max_crap=30.9&max_exceeded=0&max_average=21&min_coverage=75.1&max_uncovered=0") == [
        *("max_crap", "max_exceeded", "max_average", "max_uncovered", "min_coverage"),
    ]
    assert await failed(f"to={project.tasks[0]}") == []
    first = await project.system.get(f"{path}?to={project.tasks[0]}")
    assert (first["from"], first["result"], [one["passed"] for one in first["checks"]]) == (None, "unknown", [None, None])
    text = (await fetch(project, f"{await project.path}/gate.md?worse=any"))[2].decode()
    assert "❌ CRAP at `222222222222`" in text
    assert "**The gate is not passed: 2 of 2 checks failed.**" in text
    for query, status in [("?max_crap=-1", 400), ("?from=task-1", 404), ("?worse=all", 400)]:
        assert (await fetch(project, path + query))[0] == status


async def test_the_command_line_ends_with_1_where_the_gate_is_not_passed(project: Project, tmp_path: Path) -> None:
    async def run(*arguments: str) -> Result:
        return await gctd("gate", project.url, *arguments, url=project.system.url, home=tmp_path)

    failed = await run()
    assert (failed.code, "gate: the gate is not passed: .: max_new\n" in failed.err) == (1, True)
    assert failed.rows[-7:] == [
        ["new risky functions (CRAP over 30)", "1", "0", "failed"],
        ["functions that are worse and risky (CRAP over 30)", "0", "0", "ok"],
        [""],
        ["BEFORE", "NOW", "FUNCTION", "LOCATION", "RESULT", "WHY"],
        ["", "31.00", "Added", "a.go:3", "max_new", "complexity 2, coverage 50.0%"],
        ["12.00", "13.00", "Store.Put", "a.go:2", "worse", ""],
        ["42.00", "20.00", "Parse", "a.go:1", "fixed", ""],
    ]
    assert "max_new, max_worse" in (await run("--worse", "any")).err
    passed = await run("--absolute", "--max-exceeded", "1", "--json")
    (document,) = passed.json
    assert (passed.code, passed.err, document["passed"]) == (0, "", True)
    comment = await run("--project", ".", "--threshold", "40", "--markdown")
    assert (comment.code, "✅ CRAP at" in comment.out) == (0, True)
    assert comment.out.encode() == (await fetch(project, f"{await project.path}/gate.md?threshold=40"))[2]
    for arguments, code in [(("--project", "nope"), 3), (("--from", "main"), 2), (("--markdown", "--json"), 2)]:
        assert (await run(*arguments)).code == code


async def test_the_command_line_writes_exports(project: Project, tmp_path: Path) -> None:
    async def run(*arguments: str) -> Result:
        return await gctd(*arguments, url=project.system.url, home=tmp_path)

    latest = project.tasks[-1]
    shown = await run("repo", "export", project.url, "--format", "csv")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.encode() == (await fetch(project, f"/api/tasks/{latest}/export?format=csv"))[2]
    file = tmp_path / "crap.sarif"
    written = await run("task", "export", latest, "--format", "sarif", "--output", str(file), "--json")
    content = (await fetch(project, f"/api/tasks/{latest}/export?format=sarif"))[2]
    assert file.read_bytes() == content
    expected: dict[str, Any] = {"task": latest, "format": "sarif", "file": str(file), "size": len(content)}
    assert written.json == expected
    assert (await run("task", "export", latest, "--format", "profile")).out == PROFILE
    for arguments, code in [
        (("task", "export", "task-1"), 3),
        (("task", "export", latest, "--from", "1111111"), 2),
        (("task", "export", latest, "-o", str(tmp_path / "no" / "file")), 1),
    ]:
        assert (await run(*arguments)).code == code
