"""Tests are run with coverage by a real go, and every package is accounted for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gctd.domain.task.events import Progress
from gctd.scan.go.coverage_run.events import PackageResult
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import Toolchain
from tests.gctd.scan.go.coverage_run.go_projects import module, outcomes, reasons
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


async def test_a_profile_comes_of_tests_that_pass(make: Any, toolchain: Toolchain) -> None:
    project = make("single")
    run = await project.run()
    assert run.packages == (PackageResult(path="example.com/single", outcome="ok", seconds=run.packages[0].seconds),)
    assert run.profile is not None
    lines = run.profile.decode().splitlines()
    assert lines[0] == "mode: set"
    assert {line.split(":")[0] for line in lines[1:]} == {"example.com/single/single.go"}
    assert (run.go_version, run.workspace) == (toolchain.version, False)
    assert project.stages == ["modules", "test"]
    assert any("coverage:" in line for line in project.log)


async def test_the_packages_are_counted_while_their_tests_run(make: Any) -> None:
    files = {"go.mod": gorepo.module("example.com/many")}
    for name in ("one", "two"):
        files |= {f"{name}/{file}": text for file, text in gorepo.tested(name).items()}
    project, told = make(files), list[Progress]()

    async def on_progress(progress: Progress) -> None:
        told.append(progress)

    run = await run_tests(project.toolchain, project.plan(), project._stage, project.log.append, on_progress)
    assert outcomes(run) == {"one": "ok", "two": "ok"}
    assert (told[0].done, {progress.total for progress in told}) == (0, {2})
    assert {name for progress in told for name in progress.running} <= {"one", "two"}


async def test_packages_that_fail_are_told_with_their_reason_and_the_others_count(make: Any) -> None:
    run = await make("failing").run()
    assert outcomes(run) == {
        "good": "ok",
        "bad": "failed",
        "panics": "panicked",
        "quits": "failed",
        "untested": "no tests",
        "broken": "build failed",
    }
    told = reasons(run)
    assert told["bad"] == "TestOne failed"
    assert told["panics"].startswith("panic: as it must")
    assert "before their coverage was written" in told["quits"]
    assert "undefined: undefinedName" in told["broken"]
    assert run.profile is not None
    covered = {line.split(":")[0].split("/")[2] for line in run.profile.decode().splitlines()[1:]}
    assert covered == {"good", "bad", "untested"}


async def test_a_package_whose_tests_end_before_they_run_is_not_one_without_tests(make: Any) -> None:
    files = {"go.mod": gorepo.module("example.com/two"), **gorepo.under("good", gorepo.tested("good"))}
    files["leaves/leaves.go"] = "package leaves\n\nfunc Get() int { return 1 }\n"
    files["leaves/leaves_test.go"] = (
        'package leaves\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n\n'
        "func TestGet(t *testing.T) { Get() }\n"
    )
    files["bare/bare.go"] = "package bare\n\nfunc Get() int { return 1 }\n"
    run = await make(files).run()
    assert outcomes(run) == {"good": "ok", "leaves": "failed", "bare": "no tests"}
    assert reasons(run)["leaves"] == "its test program ended with success before it ran a test"


async def test_lines_of_a_test_that_look_like_lines_of_go_do_not_count(make: Any) -> None:
    """Tests of a program that reads the output of go print such lines."""
    project = make(module('fmt.Println("FAIL\\texample.com/other [build failed]")', "fmt"))
    assert outcomes(await project.run()) == {"one": "ok"}


async def test_a_project_whose_tests_all_panic_has_no_profile_and_says_so(make: Any) -> None:
    run = await make("panicking").run()
    assert outcomes(run) == {"panicking": "panicked"}
    assert run.profile is None


async def test_flags_reach_go(make: Any) -> None:
    files = {**gorepo.KINDS["single"], **gorepo.under("tagged", {"t.go": "//go:build extra\n\npackage tagged\n\nvar X = 1\n"})}
    run = await make(files).run(go_flags=("-tags=extra", "-short"), test_args=("-covermode=atomic", "-run=None", "-timeout=20s"))
    assert outcomes(run) == {"single": "no tests", "tagged": "no tests"}
    assert run.flags == ("-tags=extra", "-short", "-vet=off", "-covermode=atomic", "-run=None")
    assert run.profile is not None
    assert run.profile.decode().startswith("mode: atomic\n")


async def test_each_run_runs_the_tests(make: Any, tmp_path: Path) -> None:
    """Go knows the result of an earlier run with the same limit, if the tests may write the build cache."""
    noted = tmp_path / "runs"
    project = make({"go.mod": gorepo.module("example.com/single"), **gorepo.with_test("single", gorepo.noting(noted), "os")})
    for _ in range(2):
        assert outcomes(await project.run(test_args=("-timeout=20s",))) == {"single": "ok"}
    assert noted.read_text() == ".."


async def test_output_without_end_does_not_fill_the_memory(make: Any) -> None:
    """Thirty megabytes: the outcome is known all the same."""
    body = 'for range 30000 {\n\tos.Stdout.WriteString(strings.Repeat("x", 1000) + "\\n")\n}'
    project = make({**module(body, "os", "strings"), "go.mod": gorepo.module("example.com/one", go="1.22")})
    run = await project.run()
    assert outcomes(run) == {"one": "ok"}


async def test_a_module_that_only_pins_tools_is_run_without_a_test_and_without_a_failure(make: Any) -> None:
    tools = '//go:build tools\n\npackage tools\n\nimport _ "fmt"\n'
    project = make({"go.mod": gorepo.module("example.com/tools"), "tools.go": tools})
    run = await project.run()
    assert (run.packages, run.profile) == ((), None)
    assert "nothing to test" in project.log[-1]
