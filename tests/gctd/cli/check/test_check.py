"""`gctd check`: the gate in a working copy, without a server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.scan.go.toolchain import finds_c_compiler
from tests.support.programs import warm
from tests.support.programs.documents import misfits
from tests.support.tracker import go_library, go_repo

pytestmark = pytest.mark.real

RISKY = """
func Risky(a, b, c, d, e int) int {
\tif a > 0 && b > 0 || c > 0 {
\t\tif d > 0 || e > 0 {
\t\t\treturn 1
\t\t}
\t}
\treturn 0
}
"""
SOURCES = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "shop.go": "package shop\n\nfunc Total(a, b int) int {\n\treturn a + b\n}\n",
    "shop_test.go": """package shop

import "testing"

func TestTotal(t *testing.T) {
\tif Total(1, 2) != 3 {
\t\tt.Fatal("wrong")
\t}
}
""",
}
NOTED = """package shop

import (
	"os"
	"testing"
)

func TestNoted(t *testing.T) {
	NOTING
	if _, err := os.Stat("NEEDED"); err != nil {
		t.Fatal(err)
	}
	Choice(1)
}
"""
CHOICE = """
func Choice(a int) int {
	switch a {
	case 1:
		return 2
	CASESdefault:
		return 0
	}
}
"""
PROFILE = "mode: set\nexample.com/shop/shop.go:3.26,5.2 1 1\n"


@attrs.frozen
class Shop:
    """A repository with one commit, and the environment of its commands: no server, no settings, a warm cache of Go."""

    root: Path
    environment: Mapping[str, str]

    def commit(self) -> None:
        """Commit the tree."""
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        for arguments in (["add", "--all"], ["commit", "--quiet", "--message=one"]):
            subprocess.run(["git", *who, *arguments], cwd=self.root, check=True)

    def check(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = warm.run("gctd", "check", *arguments, environment=self.environment, directory=self.root, seconds=240)
        assert done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory whose build cache has Go's library."""
    directory = tmp_path_factory.mktemp("check")
    asyncio.run(go_library.give_packages(directory / "check" / "go" / "build"))
    return directory


@pytest.fixture
def shop(tmp_path: Path, cache: Path) -> Shop:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in SOURCES.items():
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=root, check=True)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GCTD_")}
    made = Shop(root, {**bare, "GCTD_CACHE_DIRECTORY": str(cache)})
    made.commit()
    return made


@pytest.mark.timeout(400)
def test_a_tree_is_compared_with_a_commit_and_with_a_report(shop: Shop) -> None:
    """A new risky function fails the gate: in a text, as SARIF, as a comment. The tree is not touched."""
    (shop.root / "shop.go").write_text(SOURCES["shop.go"] + RISKY)
    done = shop.check("--base", "main", "--output", "../out.sarif", "--output", "../out.md", code=1)
    assert "new risky functions (CRAP over 30)\t1\t0\tfailed" in done.stdout
    assert "42.00\tRisky\tshop.go:7\tmax_new" in done.stdout
    assert "the gate is not passed: .: max_new" in done.stderr
    assert "**The gate is not passed: 1 of 2 checks failed.**" in (shop.root.parent / "out.md").read_text()
    [run] = json.loads((shop.root.parent / "out.sarif").read_text())["runs"]
    assert [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]] == ["shop.go"]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=shop.root, capture_output=True, text=True, check=True)
    assert status.stdout == " M shop.go\n"
    report = shop.root.parent / "report.json"
    report.write_text(shop.check("--absolute", "--format", "json").stdout)
    assert "gate\tpassed" in shop.check("--baseline", str(report)).stdout, "nothing is new since the report"


@pytest.mark.timeout(400)
def test_the_kept_measurement_of_a_base_is_of_the_same_circumstances_and_without_a_failure(shop: Shop) -> None:
    """The tests note each of their runs, and fail for lack of a file. Without a sandbox they can do so."""
    noted, needed = shop.root.parent / "runs", shop.root.parent / "needed"
    (shop.root / "noted_test.go").write_text(NOTED.replace("NOTING", go_repo.noting(noted)).replace("NEEDED", str(needed)))
    (shop.root / "shop.go").write_text(SOURCES["shop.go"] + CHOICE.replace("CASES", ""))
    shop.commit()
    (shop.root / "shop.go").write_text(SOURCES["shop.go"] + CHOICE.replace("CASES", "case 2:\n\t\treturn 5\n\t"))

    def runs(*arguments: str, code: int, cgo: str = "auto") -> int:
        before = noted.stat().st_size if noted.exists() else 0
        environment = {**shop.environment, "GCTD_CGO": cgo}
        attrs.evolve(shop, environment=environment).check(
            "--base", "main", "--worse", "any", "--sandbox", "off", *arguments, code=code
        )
        return noted.stat().st_size - before

    assert runs(code=8) == 2, "tree and base"
    needed.touch()
    assert [runs(code=1), runs(code=1)] == [2, 1], "worse than at the base: the failed run is not kept, the other one is"
    for kept in (Path(shop.environment["GCTD_CACHE_DIRECTORY"]) / "check" / "bases").glob("*.json"):
        kept.write_text('{"analysis": {}}')
    assert [runs(code=1), runs(code=1)] == [2, 1], "a measurement that another version has kept is replaced"
    assert runs("--test-network", code=1) == 2
    assert runs(cgo="on" if finds_c_compiler() else "off", code=1) == 1, "what auto means on this machine"


def profiled(shop: Shop, *arguments: str, profile: str = PROFILE, code: int = 0) -> Any:
    (shop.root.parent / "cover.out").write_text(profile)
    done = shop.check("--profile", "../cover.out", "--json", *arguments, code=code)
    assert misfits("gctd", ("check", "--json"), done.stdout) == []
    return json.loads(done.stdout)


def test_a_profile_needs_no_test_run_and_serves_as_a_baseline(shop: Shop) -> None:
    found = profiled(shop, "--absolute", "--min-coverage", "80")
    assert found["schema"] == "gctd.check/1"
    [project] = found["projects"]
    assert (project["project"], project["result"], project["coverage"]) == (".", "passed", 100.0)
    assert [entry["function"] for entry in project["report"]["entries"]] == ["Total"]
    report = shop.root.parent / "report.json"
    report.write_text(json.dumps(found))
    (shop.root / "shop.go").write_text(SOURCES["shop.go"] + RISKY)
    uncovered = f"{PROFILE}example.com/shop/shop.go:7.35,8.30 1 0\n"
    [project] = profiled(shop, "--baseline", str(report), profile=uncovered, code=1)["projects"]
    assert [(one["function"], one["checks"]) for one in project["functions"]] == [("Risky", ["max_new"])]


def test_a_profile_of_another_tree_is_refused_with_the_mismatch(shop: Shop) -> None:
    (shop.root / "shop.go").write_text(SOURCES["shop.go"].replace("func", "// Total adds.\nfunc"))
    (shop.root.parent / "cover.out").write_text(PROFILE)
    done = shop.check("--profile", "../cover.out", "--absolute", "--max-crap", "30", code=2)
    assert "does not fit the source" in done.stderr
    assert "shop.go has 7 lines, and not 3.26 to 5.2" in done.stderr
    assert done.stdout == ""


@pytest.mark.timeout(400)
def test_a_profile_is_compared_with_the_report_of_a_test_run_with_the_same_flags(shop: Shop) -> None:
    (shop.root / "extra.go").write_text("//go:build extra\n\npackage shop\n\nfunc Extra() int {\n\treturn 1\n}\n")
    same = ("--test-args", "-tags=extra -timeout=5m", "--coverpkg")
    report = shop.root.parent / "report.json"
    report.write_text(shop.check("--absolute", "--format", "json", *same).stdout)
    profile = f"{PROFILE}example.com/shop/extra.go:5.18,7.2 1 0\n"
    [project] = profiled(shop, "--baseline", str(report), *same, profile=profile)["projects"]
    assert (project["result"], project["reason"]) == ("passed", "")
    states = {entry["function"]: entry["state"] for entry in project["report"]["entries"]}
    assert states == {"Total": "measured", "Extra": "measured"}
    [project] = profiled(shop, "--baseline", str(report), profile=profile, code=8)["projects"]
    assert "measured differently: flags" in project["reason"]


def test_a_share_without_a_tested_package_is_not_known(shop: Shop) -> None:
    (shop.root / "cart").mkdir()
    for name in ("shop.go", "shop_test.go"):
        (shop.root / "cart" / name.replace("shop", "cart")).write_text(SOURCES[name].replace("package shop", "package cart"))
    [project] = profiled(shop, "--absolute", "--min-coverage", "80", code=8)["projects"]
    assert (project["result"], project["coverage"], project["coverage_complete"]) == ("unknown", 100.0, False)
    assert [(check["name"], check["passed"]) for check in project["checks"]] == [("min_coverage", None)]


def test_a_module_without_packages_is_not_judged_unless_it_is_named(shop: Shop) -> None:
    """Such a module pins the versions of tools."""
    (shop.root / "tools").mkdir()
    (shop.root / "tools" / "go.mod").write_text("module example.com/shop/tools\n\ngo 1.24\n\ntool example.com/linter\n")
    assert [one["project"] for one in profiled(shop, "--absolute")["projects"]] == ["."]
    assert "there are no Go packages in it" in shop.check("--project", "tools", code=2).stderr
    assert "there are no Go packages in it" in shop.check("tools", code=2).stderr


@pytest.mark.timeout(400)
def test_the_module_of_a_submodule_is_compared_with_its_commit_at_the_base(shop: Shop, tmp_path: Path) -> None:
    """A submodule that is not checked out has no module, neither in the tree nor at the base."""
    other = tmp_path / "other"
    other.mkdir()
    for name, text in SOURCES.items():
        (other / name).write_text(text.replace("example.com/shop", "example.com/other"))
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=other, check=True)
    attrs.evolve(shop, root=other).commit()
    adding = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "third party/other")
    subprocess.run(["git", *adding], cwd=shop.root, check=True)
    shop.commit()
    module = shop.root / "third party" / "other"
    (module / "shop.go").write_text(SOURCES["shop.go"] + RISKY)
    found = json.loads(shop.check("--json", "--base", "main", code=1).stdout)["projects"]
    assert [(one["project"], one["result"]) for one in found] == [(".", "passed"), ("third party/other", "failed")]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=module, capture_output=True, text=True, check=True)
    assert status.stdout == " M shop.go\n"


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("go.mod", None, "has no project ."),
        (
            "shop.go",
            "package shop\n\nfunc Total(a, b int) int { return absent }\n",
            "cannot be measured: no package could be built",
        ),
    ],
)
def test_a_base_that_cannot_be_measured_gives_an_unknown_result(shop: Shop, name: str, text: str | None, reason: str) -> None:
    file = shop.root / name
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    shop.commit()
    file.write_text(SOURCES[name])
    [project] = json.loads(shop.check("--json", code=8).stdout)["projects"]
    assert (project["result"], reason in project["reason"]) == ("unknown", True), project["reason"]


def test_an_answer_that_cannot_be_given_has_the_exit_code_8_or_a_reason(shop: Shop) -> None:
    report = shop.root.parent / "report.json"
    document = profiled(shop, "--absolute")
    document["projects"][0]["analysis"]["go_version"] = "go1.20"
    report.write_text(json.dumps(document))
    assert "measured differently" in profiled(shop, "--baseline", str(report), code=8)["projects"][0]["reason"]
    report.write_text(json.dumps({**document, "projects": []}))
    assert "has no project ." in profiled(shop, "--baseline", str(report), code=8)["projects"][0]["reason"]
    report.write_text('{"schema": "other/1"}')
    assert "has the form 'other/1'" in shop.check("--baseline", str(report), code=2).stderr
    assert "compare with --baseline FILE" in shop.check("--profile", str(report), code=2).stderr
    assert "there is no module in web: the modules are ." in shop.check("--project", "web", code=2).stderr
    assert "nothing is no branch, tag or commit" in shop.check("--base", "nothing", code=2).stderr
