"""The setting `coverpkg`: the tests of each package count for all packages, and the analysis shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tracker.go_repo import make, module, under, with_test
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = pytest.mark.real

REACHED = "package reached\n\nfunc Get(x int) int {\n\tif x > 3 {\n\t\treturn 3\n\t}\n\treturn x\n}\n\nfunc Missed() {}\n"
USER = 'package user\n\nimport "example.com/m/reached"\n\nfunc Use(x int) int { return reached.Get(x) }\n'
USER_TEST = 'package user\n\nimport "testing"\n\nfunc TestUse(t *testing.T) { Use(9) }\n'
FILES = {
    "go.mod": module("example.com/m"),
    "reached/reached.go": REACHED,
    "untested/untested.go": "package untested\n\nfunc Get() {}\n",
    "user/user.go": USER,
    "user/user_test.go": USER_TEST,
}
OWN, MODULE = ["example.com/m/reached", "example.com/m/untested"], ["example.com/m/untested"]


async def analysed(system: TrackerSystem, url: str, **how: Any) -> Any:
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url, **how})
    done = await system.until_task(task["id"], "completed", "failed", timeout=110)
    assert done["status"] == "completed", done["reason"]
    return await system.get(f"/api/tasks/{task['id']}/result")


def states(result: Any) -> dict[str, str]:
    return {f"{entry['package']}.{entry['function']}": entry["state"] for entry in result["entries"]}


def numbers(result: Any) -> list[tuple[Any, ...]]:
    return sorted((one["file"], one["line"], one["crap"], one["coverage"]) for one in result["entries"])


def without_coverage(result: Any) -> list[str]:
    return [package["path"] for package in result["uncovered"]]


async def test_tests_of_other_packages_count_with_coverpkg_and_never_for_the_engines_of_go_crap(tmp_path: Path) -> None:
    repo = make(tmp_path / "source", files=FILES)
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)
        own, compat = await analysed(system, repo.url), await analysed(system, repo.url, engine="native-compat")
        assert states(own) == {
            "reached.Get": "no_tests",
            "reached.Missed": "no_tests",
            "untested.Get": "no_tests",
            "user.Use": "measured",
        }
        assert (without_coverage(own), "-coverpkg=./..." in own["flags"]) == (OWN, False)

        await system.post("/api/repo-config", {"url": repo.url, "coverpkg": True})
        whole = await analysed(system, repo.url)
        assert states(whole) == {**states(own), "reached.Get": "other_tests"}
        assert (without_coverage(whole), "-coverpkg=./..." in whole["flags"]) == (MODULE, True)
        await system.post("/api/repo-config", {"url": repo.url, "crap_args": ["--min=100"]})
        short = await analysed(system, repo.url)
        assert (short["entries"], without_coverage(short)) == ([], MODULE)
        await system.post("/api/repo-config", {"url": repo.url, "crap_args": None})
        again = await analysed(system, repo.url, engine="native-compat", again=True)
        assert (numbers(again), again["flags"], without_coverage(again)) == (numbers(compat), compat["flags"], OWN)

        # A reached function is not without coverage if a test fails: it has a lower bound.
        bad = under("bad", with_test("bad", "t.Fatal(1)"))
        failing = repo.write(bad).commit()
        found = await analysed(system, repo.url)
        assert (states(found)["reached.Get"], found["repo_info"]["commit_sha"]) == ("tests_failed", failing)
        assert "example.com/m/reached" not in without_coverage(found)

        # Two ways of measuring are not compared with each other.
        await system.post("/api/repo-config", {"url": repo.url, "coverpkg": None})
        repo.write({"user/more.go": "package user\n\nfunc more() {}\n"}).commit()
        last = await analysed(system, repo.url)
        gate = await system.get(f"/api/repos/{last['id']}/gate?base={failing}")
        assert (gate["result"], "measured differently: flags -coverpkg=./... GOWORK=off, not" in gate["reason"]) == (
            "unknown",
            True,
        ), gate
