"""Functions are found by name in the latest analyses of all projects: the same name first, then the riskiest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from gctd.control import function_search
from gctd.control.function_search import FunctionSearch
from gctd.readmodel.reports import FunctionView, Reports
from tests.support.tracker.analyses import REPORT, analysis
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem

MANY = {f"p{number}/f.go:Other{number}": 900.0 - number for number in range(300)}
ROUTER = MadeUp(
    commit_sha="a" * 40,
    functions={**MANY, "mux/tree.go:node.findRoute": 39.0, "mux/api.go:FindRoute": 700.0, "x.go:findRouteOf": 60.0},
)


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_the_same_name_in_the_same_case_comes_first_then_the_riskiest(shared: tuple[TrackerSystem, Path]) -> None:
    project = await Project.registered(*shared, "router")
    await project.analyze(ROUTER)
    other = await Project.registered(*shared, "second")
    await other.analyze(attrs.evolve(ROUTER, functions={"a.go:Parse": 5.0, "b.go:findroute": 90.0}))

    async def found(text: str, limit: int = 30) -> list[tuple[str, str]]:
        body = await project.system.get(f"/api/functions?search={text}&limit={limit}")
        assert (body["left_out"], body["searched"] >= 2) == (0, True)
        return [(one["function"], one["repo_url"].rsplit("/", 1)[1]) for one in body["functions"]]

    names = [("node.findRoute", "router"), ("FindRoute", "router"), ("findroute", "second"), ("findRouteOf", "router")]
    assert await found("findRoute") == names
    assert await found("FindRoute", 1) == [("FindRoute", "router")]
    assert await found("findroute+second") == [("findroute", "second")]
    assert await found("tree.go") == [("node.findRoute", "router")]
    assert await found("no-such-function") == []
    (one,) = (await project.system.get("/api/functions?search=node.findRoute&limit=1"))["functions"]
    assert (await project.system.get(f"/api/repos/{one['id']}/functions/{one['key']}"))["file"] == "mux/tree.go"


class Slow(Reports):
    """Reports of which each takes some time."""

    def __init__(self) -> None:
        """Have no store."""

    async def functions(self, digest: str) -> list[FunctionView]:
        await asyncio.sleep(0.05)
        entry = {name: getattr(REPORT.entries[0], name) for name in FunctionView.__struct_fields__ if name != "identity"}
        return [FunctionView(**entry)]


async def test_a_search_ends_in_time_and_counts_the_projects_that_it_did_not_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_search, "SECONDS", 0.12)
    analyses = [analysis(REPORT, project=f"p{number}") for number in range(8)]
    found = await FunctionSearch(Slow()).find(REPORT.entries[0].function, analyses, limit=9)
    assert found.searched + found.left_out == 8
    assert 0 < found.searched == len(found.functions) < 8
