"""A run of tests ends within its time, and no process of it remains."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.domain.options import parse_duration
from gctd.scan.errors import GoError
from gctd.scan.go.toolchain import Toolchain
from tests.gctd.scan.go.coverage_run.go_projects import outcomes, reasons
from tests.support.pace import within
from tests.support.programs.processes import sleeping, unused_sleep
from tests.support.tracker import go_repo as gorepo
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


def hanging(directory: Path, packages: list[str], *events: Mapping[str, Any]) -> Path:
    """A program in the place of go that lists these packages, and whose `go test` says these events and then hangs."""
    (directory / "listed").write_text("".join(f"{package}\tfalse\tfalse\t\t\n" for package in packages))
    (directory / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
    go = directory / "fakego"
    go.write_text(f"#!/bin/sh\n[ $1 = test ] || exec cat {directory}/listed\ncat {directory}/events\nexec sleep 60\n")
    go.chmod(0o755)
    return go


async def test_a_package_that_takes_too_long_is_told_and_the_others_count(make: Any) -> None:
    run = await make("slow").run(test_args=("-timeout=1s",))
    assert outcomes(run) == {"quick": "ok", "slow": "timed out"}
    assert reasons(run)["slow"] == "test timed out after 1s"
    assert run.profile is not None
    assert "quick.go" in run.profile.decode()


@pytest.mark.parametrize(("asked", "given"), [("", 1755), ("-timeout=2m", 120), ("-timeout=5h", 1755)])
async def test_go_is_given_less_time_than_there_is(make: Any, tmp_path: Path, asked: str, given: float) -> None:
    """Go itself then names the test that took too long, the others count, and there is time left for the next steps."""
    go = tmp_path / "fakego"
    go.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$1" = test ] || printf "example.com/single\\tfalse\\tfalse\\t\\t\\n"\n'
    )
    go.chmod(0o755)
    project = attrs.evolve(make("single"), toolchain=Toolchain(go, "go1"))
    await project.run(timeout=1800.0, test_args=(asked,) if asked else ())
    last = (tmp_path / "calls").read_text().splitlines()[-1]
    (flag,) = [word for word in last.split() if "timeout" in word]
    assert given - 10 < parse_duration(flag.removeprefix("-timeout=")) <= given


async def test_a_run_that_tests_nothing_in_its_time_has_failed(make: Any, tmp_path: Path) -> None:
    go = hanging(tmp_path, ["single"], {"Action": "start", "Package": "single"})
    project = attrs.evolve(make("single"), toolchain=Toolchain(go, "go1"))
    with pytest.raises(GoError, match=r"its time was over, before a package was tested") as caught:
        await project.run(timeout=1.2)
    assert not caught.value.permanent


async def test_a_run_that_is_over_its_time_after_a_test_failed_counts(make: Any, tmp_path: Path) -> None:
    """A package was tested to its end, so its coverage is of use, whether its tests passed or not."""
    failed: list[dict[str, Any]] = [
        {"Action": "run", "Package": "bad", "Test": "TestOne"},
        {"Action": "fail", "Package": "bad", "Test": "TestOne"},
        {"Action": "output", "Package": "bad", "Output": "coverage: 50.0% of statements\n"},
        {"Action": "fail", "Package": "bad", "Elapsed": 0.1},
        {"Action": "start", "Package": "late"},
    ]
    project = attrs.evolve(make("single"), toolchain=Toolchain(hanging(tmp_path, ["bad", "late"], *failed), "go1"))
    run = await project.run(timeout=3.0)
    assert outcomes(run) == {"bad": "failed", "late": "timed out"}
    assert reasons(run)["bad"] == "TestOne failed"
    assert "its time was over" in reasons(run)["late"]


@pytest.mark.parametrize("before", ["", "t.Error()\n"])
async def test_tests_that_the_machine_ends_have_not_failed(make: Any, before: str) -> None:
    """As the kernel ends the largest process for want of memory. The next run may have enough of it."""
    kill = gorepo.with_test("killed", f"{before}syscall.Kill(os.Getpid(), syscall.SIGKILL)\nselect {{}}", "os", "syscall")
    files = {"go.mod": gorepo.module("example.com/x"), **gorepo.under("good", gorepo.tested("good"))}
    run = await make({**files, **gorepo.under("killed", kill)}).run()
    assert outcomes(run) == {"good": "ok", "killed": "killed"}
    assert reasons(run)["killed"] == "its tests ended by a signal: killed"
    assert not run.repeatable


async def test_a_package_whose_compiler_the_machine_ends_is_not_broken(make: Any, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"Action": "build-output", "ImportPath": "large", "Output": "large: /go/pkg/tool/compile: signal: killed\n"},
        {"Action": "fail", "Package": "large", "Elapsed": 0, "FailedBuild": "large"},
        {"Action": "output", "Package": "good", "Output": "coverage: 50.0% of statements\n"},
        {"Action": "pass", "Package": "good", "Elapsed": 0.1},
    ]
    go = hanging(tmp_path, ["good", "large"], *events)
    go.write_text(go.read_text().replace("exec sleep 60\n", "exit 1\n"))
    run = await attrs.evolve(make("single"), toolchain=Toolchain(go, "go1")).run()
    assert outcomes(run) == {"good": "no tests", "large": "killed"}
    assert reasons(run)["large"] == "large: /go/pkg/tool/compile: signal: killed"
    assert not run.repeatable


async def test_tests_that_no_time_limit_of_go_ends_are_ended(make: Any) -> None:
    """A test that stops its process: finished packages count, and the others are reported as timed out."""
    marker = unused_sleep()
    stop = "syscall.Kill(os.Getpid(), syscall.SIGSTOP)\ntime.Sleep(time.Hour)"  # another thread may take the signal, and later
    freeze = f'exec.Command("setsid", "sleep", "{marker}").Start()\n{stop}'
    frozen = gorepo.under("frozen", gorepo.with_test("frozen", freeze, "os", "os/exec", "syscall", "time"))
    files = {"go.mod": gorepo.module("example.com/x"), **gorepo.under("early", gorepo.tested("early")), **frozen}
    project = make(files)
    await project.run(test_args=("-run=None",))
    run = await project.run(timeout=7.0, test_args=("-p=1",))
    assert outcomes(run) == {"early": "ok", "frozen": "timed out"}
    assert "its time was over" in reasons(run)["frozen"]
    assert run.profile is not None
    assert "early.go" in run.profile.decode()
    assert sleeping(marker) == []


async def test_processes_that_a_test_starts_in_their_own_sessions_are_ended_with_it(make: Any) -> None:
    """No process is alive 5 s after a cancellation."""
    marker = unused_sleep()
    project = make(gorepo.sleeping(marker))
    running = asyncio.create_task(project.run())
    await wait_until(lambda: running.done() or len(sleeping(marker)) == 3, timeout=200)  # Go may have to build all of it first
    assert not running.done(), running.result()
    with within(5):
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert sleeping(marker) == []
