"""One function of an analysis, by real scans: its source, blocks, branches, advice and history, and nothing that a test wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker.go_repo import GoRepo, make, module
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = pytest.mark.real

GATE = """package gate

// Machine decides.
type Machine struct{ open bool }

func (m *Machine) Decide(x, y int) string {
\tif x > 10 && y > 10 {
\t\treturn "both"
\t} else if x > 10 {
\t\treturn "x"
\t} else {
\t\ty++
\t}
\tfor i := 0; i < y; i++ {
\t\tif i == 7 || m.open {
\t\t\treturn "seven"
\t\t}
\t}
\tswitch {
\tcase x < 0:
\t\treturn "low"
\tcase y < 0:
\t\treturn "under"
\tdefault:
\t\tx = 1
\t}
\treturn "none"
}

func init() {}

func Plain(x int) int { return x }
"""
# The test changes its source. The stored source is from the commit.
CASE = """package gate

import (
\t"os"
\t"testing"
)

func TestPlain(t *testing.T) {
\tPlain(1)
\tos.WriteFile("gate.go", []byte("package gate // CANARY"), 0o644)
}
"""
FILES = {
    "go.mod": module("example.com/m"),
    "in/gate/gate.go": GATE,
    "in/gate/gate_test.go": CASE,
    "main.go": "package m\n\nfunc init() {}\n",
}
KEY = "in:gate:Machine.Decide"


async def analysed(system: TrackerSystem, url: str, **how: Any) -> Any:
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url, **how})
    done = await system.until_task(task["id"], "completed", "failed", timeout=110)
    assert done["status"] == "completed", done["reason"]
    return await system.get(f"/api/tasks/{task['id']}/result?entries=100")


async def test_a_function_is_shown_with_its_source_the_tests_that_it_needs_and_its_history(tmp_path: Path) -> None:
    repo = make(tmp_path / "source", files=FILES)
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)
        result = await analysed(system, repo.url)
        assert {entry["key"] for entry in result["entries"]} == {KEY, "in:gate:init", "in:gate:Plain", "init"}
        path = f"/api/repos/{result['id']}/functions"
        await shown(system, path)
        first = repo.head()
        await followed(system, path, repo)
        await hidden(system, path, repo, first)


async def shown(system: TrackerSystem, path: str) -> None:
    found = await system.get(f"{path}/{KEY}")
    assert (found["function"], found["line"], found["end_line"], found["cyclomatic"]) == ("*Machine.Decide", 6, 28, 9)
    assert (found["crap"], found["coverage"], found["threshold"], found["state"]) == (90.0, 0.0, 30.0, "measured")
    assert "CANARY" not in str(found)
    source = found["source"]
    assert (source["first"], "\n".join(source["lines"]) + "\n", source["total"]) == (1, GATE, 32)
    unmarked = {1, 2, 3, 4, 5, 6, 11, 13, 17, 18, 20, 22, 24, 26, 28, 29, 30, 31}
    assert {number for number, mark in enumerate(source["marks"], 1) if mark == " "} == unmarked
    assert source["marks"].strip().rstrip("+ ") == source["marks"][6:27]
    assert source["marks"][31] == "+"
    assert [one["token"] for one in found["branches"]] == ["if", "&&", "if", "for", "if", "||", "case", "case"]
    assert all(block["runs"] is None and not block["covered"] for block in found["blocks"])
    advice = found["advice"]
    assert (advice["kind"], found["advice_reason"], advice["parts"]) == ("cover", "", 2)
    covered = {index for step in advice["steps"] for index in step["blocks"]}
    assert len(covered) == advice["blocks"]
    assert advice["steps"][-1]["crap"] == advice["crap"] <= 30.0
    assert all(found["blocks"][index]["parent"] in {None, *covered} for index in covered)

    whole = await system.get(f"{path}/in:gate:Plain?whole=true")
    assert (whole["source"]["lines"], whole["source"]["marks"]) == (source["lines"], source["marks"])
    near = await system.get(f"{path}/in:gate:Plain?around=0")
    assert (near["source"]["first"], near["source"]["lines"]) == (32, ["func Plain(x int) int { return x }"])
    assert (near["advice"]["kind"], near["advice"]["steps"]) == ("none", [])
    assert (await system.status(f"{path}/in:gate:Nothing"))[0] == 404


async def followed(system: TrackerSystem, path: str, repo: GoRepo) -> None:
    first = repo.head()
    # The next commit changes the code, and its parent was analysed: its author is known.
    changed = repo.write({"in/gate/gate.go": GATE.replace("return x }", "return x + 1 }")}).commit("Plain adds one")
    await analysed(system, repo.url)
    history = await system.get(f"{path}/in:gate:Plain/history")
    assert [(one["commit_sha"], one["changes"]) for one in history["points"]] == [(changed, ["code"]), (first, None)]
    assert history["last_change"] == {
        "kind": "commit",
        "added": False,
        "before": first,
        "after": changed,
        "commit": {"author": "Gopher", "at": "2023-11-14T22:15:20Z", "subject": "Plain adds one", "parents": [first]},
    }
    same = await system.get(f"{path}/{KEY}/history")
    assert (same["last_change"]["kind"], same["last_change"]["before"]) == ("unchanged", first)

    # A function that moved is found again by its content. Commits that were not analysed make the change less exact.
    repo.write({"in/gate/more.go": "package gate\n"}).commit()
    moved = GATE.replace("Decide", "Choose")
    last = repo.write({"in/gate/gate.go": "package gate\n", "in/other/gate.go": moved.replace("gate", "other")}).commit()
    await analysed(system, repo.url)
    there = await system.get(f"{path}/in:other:Machine.Choose/history")
    assert [(one["commit_sha"], one["key"], one["changes"]) for one in there["points"]][:2] == [
        (last, "in:other:Machine.Choose", ["moved"]),
        (changed, KEY, []),
    ]
    new = await system.get(f"{path}/in:other:Plain/history")
    assert (new["points"][0]["changes"], new["last_change"]["kind"], new["last_change"]["added"]) == (
        ["added"],
        "between",
        True,
    )


async def hidden(system: TrackerSystem, path: str, repo: GoRepo, first: str) -> None:
    # With `never` the page of the function has no source, also of earlier analyses.
    await system.post("/api/repo-config", {"url": repo.url, "store_source": "never"})
    hidden = await system.get(f"{path}/in:gate:Plain?at={first}")
    assert (hidden["source"], "store_source" in hidden["source_reason"], hidden["branches"]) == (None, True, [])
    assert (hidden["crap"], len(hidden["blocks"])) == (1.0, 1)
    repo.write({"go.mod": module("example.com/m") + "\n"}).commit()
    await analysed(system, repo.url)
    await system.post("/api/repo-config", {"url": repo.url, "store_source": None})
    never = await system.get(f"{path}/init")
    assert (never["source"], "never" in never["source_reason"]) == (None, True)
    shown = await system.get(f"{path}/in:gate:Plain?at={first}")
    assert shown["source"]["total"] == 32


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("at", ["task-1", "0123456"])
async def test_an_unknown_analysis_is_not_found(at: str, shared: tuple[TrackerSystem, Path]) -> None:
    assert (await shared[0].status(f"/api/repos/{'0' * 32}/functions/Any?at={at}"))[0] == 404
