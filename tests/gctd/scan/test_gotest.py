"""Tests are run with coverage by a real go: every package is accounted for, and no process or file remains."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.domain.repo.options import parse_duration
from gctd.domain.task import Progress
from gctd.scan.errors import GoError, NoToolchain
from gctd.scan.go.coverage_run.events import PackageResult
from gctd.scan.go.coverage_run.plan import GoTestRun, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.staging import STAGED, staged
from gctd.scan.go.toolchain import GoCaches, Toolchain, find_toolchain
from gctd.scan.isolation.files import Directory
from tests.support.pace import within
from tests.support.programs.processes import sleeping, unused_sleep
from tests.support.tracker import go_repo as gorepo
from tests.support.waiting import wait_until


@attrs.frozen
class Project:
    """A Go module on the disk, and how its tests are run."""

    source: Path
    project: str
    job: Path
    cache: Path
    toolchain: Toolchain
    stages: list[str] = attrs.field(factory=list)
    log: list[str] = attrs.field(factory=list)

    @property
    def directory(self) -> Path:
        return self.source / self.project

    def plan(self, **options: Any) -> Plan:
        given = {"source": self.source, "project": self.project, "job": self.job, "caches": GoCaches.below(self.cache)}
        return Plan(**{"timeout": 100.0, **given, **options})

    async def run(self, **options: Any) -> GoTestRun:
        return await run_tests(self.toolchain, self.plan(**options), self._stage, self.log.append)

    async def _stage(self, name: str) -> None:
        self.stages.append(name)


@pytest.fixture
def make(tmp_path: Path, go_cache: Path, toolchain: Toolchain) -> Any:
    """Makes a Project of a kind of repository, or of files."""

    def project(files: str | Mapping[str, str], below: str = ".") -> Project:
        root, job = tmp_path / f"src{len(list(tmp_path.iterdir()))}", tmp_path / "job"
        for name, text in (gorepo.KINDS[files] if isinstance(files, str) else files).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        job.mkdir(exist_ok=True)
        return Project(root, below, job, go_cache, toolchain)

    return project


def outcomes(run: GoTestRun) -> dict[str, str]:
    return {package.path.rpartition("/")[2]: package.outcome for package in run.packages}


def reasons(run: GoTestRun) -> dict[str, str]:
    return {package.path.rpartition("/")[2]: package.reason for package in run.packages}


def hanging(directory: Path, packages: list[str], *events: Mapping[str, Any]) -> Path:
    """A program in the place of go that lists these packages, and whose `go test` says these events and then hangs."""
    (directory / "listed").write_text("".join(f"{package}\tfalse\tfalse\t\n" for package in packages))
    (directory / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
    go = directory / "fakego"
    go.write_text(f"#!/bin/sh\n[ $1 = test ] || exec cat {directory}/listed\ncat {directory}/events\nexec sleep 60\n")
    go.chmod(0o755)
    return go


def module(body: str, *imports: str) -> dict[str, str]:
    """A module of one package whose test has these statements."""
    return {"go.mod": gorepo.module("example.com/one"), **gorepo.with_test("one", body, *imports)}


async def test_a_profile_comes_of_tests_that_pass(make: Any, toolchain: Toolchain) -> None:
    project = make("single")
    run = await project.run()
    assert run.packages == (PackageResult(path="example.com/single", outcome="ok", seconds=run.packages[0].seconds),)
    assert run.profile is not None
    lines = run.profile.decode().splitlines()
    assert lines[0] == "mode: set"
    assert {line.split(":")[0] for line in lines[1:]} == {"example.com/single/single.go"}
    assert (run.exit_code, run.go_version, run.workspace, run.ended_early) == (0, toolchain.version, False, "")
    assert project.stages == ["modules", "test"]
    assert any("coverage:" in line for line in project.log)
    assert run.log_tail.splitlines()[-1] == project.log[-1]


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
    assert run.exit_code == 1
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


async def test_a_project_whose_tests_all_panic_has_no_profile_and_says_so(make: Any) -> None:
    run = await make("panicking").run()
    assert outcomes(run) == {"panicking": "panicked"}
    assert run.profile is None


async def test_a_package_that_takes_too_long_is_told_and_the_others_count(make: Any) -> None:
    run = await make("slow").run(test_args=("-timeout=1s",))
    assert outcomes(run) == {"quick": "ok", "slow": "timed out"}
    assert reasons(run)["slow"] == "test timed out after 1s"
    assert run.ended_early == ""
    assert run.profile is not None
    assert "quick.go" in run.profile.decode()


@pytest.mark.parametrize(("asked", "given"), [("", 1755), ("-timeout=2m", 120), ("-timeout=5h", 1755)])
async def test_go_is_given_less_time_than_there_is(make: Any, tmp_path: Path, asked: str, given: float) -> None:
    """Go itself then names the test that took too long, the others count, and there is time left for the next steps."""
    go = tmp_path / "fakego"
    go.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$1" = test ] || printf "example.com/single\\tfalse\\tfalse\\t\\n"\n'
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
    assert "its time was over" in run.ended_early


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
    assert "its time was over" in run.ended_early
    assert reasons(run)["frozen"] == run.ended_early
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


async def test_a_module_that_needs_a_newer_go(make: Any) -> None:
    for files, reason in [
        ({"go.mod": gorepo.module("example.com/x", go="1.99"), "x.go": "package x\n"}, "newer Go"),
        ({"go.mod": "modul x\n", "x.go": "package x\n"}, "cannot be loaded"),
        ({"go.mod": gorepo.module("example.com/x"), "x.go": "package x\n\nfunc f() { g() }\n"}, "undefined: g"),
    ]:
        with pytest.raises(GoError, match=reason) as caught:
            await make(files).run()
        assert caught.value.permanent


async def test_without_a_network_the_reason_is_that_modules_could_not_be_downloaded(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one whose go.mod files are in reach, and for one where not even those are. Another attempt may do better."""
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GONOSUMCHECK", "1")
    files = {
        "go.mod": gorepo.module("example.com/x") + "\nrequire example.org/dep v1.0.0\n",
        "go.sum": "example.org/dep v1.0.0 h1:g61tztE5qeGQ89tm6NTjjM9VPIm088od1l6aSorWRWg=\n",
        "x.go": 'package x\n\nimport "example.org/dep"\n\nvar X = dep.X\n',
    }
    for number, sums in enumerate(("", "example.org/dep v1.0.0/go.mod h1:NqM8EUOU14njkJ3fqMW+pc6Ldnwhi/IjpwHt7yyuwOQ=\n")):
        project = attrs.evolve(make({**files, "go.sum": files["go.sum"] + sums}), cache=tmp_path / f"cache{number}")
        with pytest.raises(GoError, match=r"module download failed: .*127.0.0.1:9") as caught:
            await project.run()
        assert not caught.value.permanent


async def test_vendored_modules_need_no_network(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    files = {
        "go.mod": gorepo.module("example.com/x") + "\nrequire example.org/dep v1.0.0\n",
        "vendor/modules.txt": "# example.org/dep v1.0.0\n## explicit; go 1.21\nexample.org/dep\n",
        "vendor/example.org/dep/dep.go": "package dep\n\n// X is 1.\nvar X = 1\n",
        **gorepo.with_test("x", "if dep.X != 1 {\n\tt.Fail()\n}", "example.org/dep"),
    }
    assert outcomes(await make(files).run()) == {"x": "ok"}


# Workspaces


@pytest.mark.parametrize(("below", "member"), [("api", True), ("lib", True), ("tools", False)])
async def test_a_member_runs_in_its_workspace_and_another_module_without_it(make: Any, below: str, member: bool) -> None:
    run = await make("workspace", below).run(workspace=member)
    assert outcomes(run) == {below: "ok"}
    assert run.workspace is member


async def test_a_workspace_that_cannot_be_loaded_is_left_aside(make: Any) -> None:
    files = {**gorepo.KINDS["workspace"], "go.work": "go 1.21\n\nuse (\n\t./lib\n\t./gone\n)\n"}
    project = make(files, "lib")
    run = await project.run(workspace=True)
    assert outcomes(run) == {"lib": "ok"}
    assert not run.workspace
    assert any("gone" in line for line in project.log)


async def test_a_vendored_workspace_needs_no_network(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor directory is made as by `go work vendor`, and belongs to the workspace."""
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    files = {
        "go.work": "go 1.22\n\nuse ./one\n",
        "vendor/modules.txt": "## workspace\n# example.org/dep v1.0.0\n## explicit; go 1.21\nexample.org/dep\n",
        "vendor/example.org/dep/dep.go": "package dep\n\n// X is 1.\nvar X = 1\n",
        "one/go.mod": gorepo.module("example.com/one", go="1.22") + "\nrequire example.org/dep v1.0.0\n",
        **gorepo.under("one", gorepo.with_test("one", "if dep.X != 1 {\n\tt.Fail()\n}", "example.org/dep")),
    }
    run = await make(files, "one").run(workspace=True)
    assert outcomes(run) == {"one": "ok"}
    assert run.workspace


async def test_nested_modules_are_not_tested_with_their_parent(make: Any) -> None:
    assert set(outcomes(await make("nested").run())) == {"nested", "inner"}


async def test_a_workspace_above_the_checkout_has_no_effect(make: Any, tmp_path: Path) -> None:
    (tmp_path / "go.work").write_text("go 1.21\n\nuse ./elsewhere\n")
    assert outcomes(await make("single").run()) == {"single": "ok"}


# Flags and environment


async def test_flags_reach_go(make: Any) -> None:
    files = {**gorepo.KINDS["single"], **gorepo.under("tagged", {"t.go": "//go:build extra\n\npackage tagged\n\nvar X = 1\n"})}
    run = await make(files).run(go_flags=("-tags=extra", "-short"), test_args=("-covermode=atomic", "-run=None", "-timeout=20s"))
    assert outcomes(run) == {"single": "no tests", "tagged": "no tests"}
    assert run.flags == ("-tags=extra", "-short", "-vet=off", "-covermode=atomic", "-run=None")
    assert run.profile is not None
    assert run.profile.decode().startswith("mode: atomic\n")


async def test_a_test_sees_no_secret_and_no_setting_of_the_worker(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its HOME and TMPDIR are in the job's folder; credentials for modules do not reach it."""
    secrets = ("GCTD_NATS_URL", "GITHUB_TOKEN", "NETRC", "HTTPS_PROXY", "https_proxy", "GOPRIVATE", "AWS_SECRET_ACCESS_KEY")
    for name in secrets:
        monkeypatch.setenv(name, "geheim")
    monkeypatch.setenv("GOPROXY", "https://user:geheim@proxy.example")
    monkeypatch.setenv("GOFLAGS", "-toolexec=/geheim")
    monkeypatch.setenv("GOENV", "/geheim")
    project = make(module('for _, v := range os.Environ() {\n\tfmt.Println("ENV " + v)\n}', "fmt", "os"))
    await project.run()
    seen = dict(line.removeprefix("ENV ").split("=", 1) for line in project.log if line.startswith("ENV "))
    assert not any("geheim" in value for value in seen.values())
    assert Path(seen["HOME"]).is_relative_to(project.job)
    assert Path(seen["TMPDIR"]).is_relative_to(project.job)
    assert set(seen) <= {
        *("PATH", "HOME", "TMPDIR", "LANG", "PWD", "GCTD_RUN", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
        *("GOCACHE", "GOMODCACHE", "GOPATH", "GOTOOLCHAIN", "GOENV", "GOFLAGS", "GOWORK", "GOPROXY", "GOSUMDB"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "GOCOVERDIR"),
    }


async def test_the_repository_s_own_settings_of_go_are_not_read(make: Any, tmp_path: Path) -> None:
    """A go.env in the module, a `toolchain` line, a generator, a script of git: none is followed."""
    canary = tmp_path / "pwn"
    tool = f"#!/bin/sh\ntouch {canary}\n"
    files = {
        **gorepo.KINDS["single"],
        "go.mod": gorepo.module("example.com/single") + "\ntoolchain go1.99.0\n",
        "go.env": "GOFLAGS=-toolexec=./tool\n",
        "tool": tool,
        "gen.go": "package single\n\n//go:generate ./tool\n",
        ".git/hooks/post-checkout": tool,
        ".git/config": "[core]\n\tfsmonitor = ./tool\n",
    }
    project = make(files)
    (project.directory / "tool").chmod(0o755)
    assert outcomes(await project.run()) == {"single": "ok"}
    assert not canary.exists()


async def test_output_without_end_does_not_fill_the_memory(make: Any) -> None:
    """Thirty megabytes: the outcome is known all the same, the tail of the log is small."""
    body = 'for range 30000 {\n\tos.Stdout.WriteString(strings.Repeat("x", 1000) + "\\n")\n}'
    project = make({**module(body, "os", "strings"), "go.mod": gorepo.module("example.com/one", go="1.22")})
    run = await project.run()
    assert outcomes(run) == {"one": "ok"}
    assert len(run.log_tail) <= 64 * 1024


# Staging


async def test_the_profile_is_staged_in_the_module_and_removed(make: Any) -> None:
    project = make("single")
    run = await project.run()
    with Directory.open(project.source) as source, staged(source, project.source, ".", run.profile) as profile:
        assert profile is not None
        assert profile == project.directory / ".go-crap-cover.out"
        assert profile.read_bytes() == run.profile
    assert not profile.exists()
    with Directory.open(project.source) as source, staged(source, project.source, ".", None) as profile:
        assert profile is None


@pytest.mark.parametrize("there", ["file", "directory", "link", "full directory"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_is_in_the_place_of_the_profile_is_removed_and_not_followed(tmp_path: Path, there: str, when: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    module_dir = tmp_path / "module"
    module_dir.mkdir()

    def put() -> None:
        place = module_dir / STAGED
        if there == "file":
            place.write_text("x")
        elif there == "link":
            place.symlink_to(outside)
        else:
            place.mkdir()
            if there == "full directory":
                (place / "x").touch()

    if when == "before":
        put()
    with suppress(LookupError), Directory.open(tmp_path) as source, staged(source, tmp_path, "module", b"mode: set\n"):
        assert (module_dir / STAGED).read_text() == "mode: set\n"
        if when == "after":
            (module_dir / STAGED).unlink()
            put()
        raise LookupError
    assert list(module_dir.iterdir()) == []
    assert outside.read_text() == "kept"


async def test_a_profile_that_a_test_replaced_by_a_link_is_not_read(make: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mode: set\nsecret.go:1.1,2.2 1 1\n")
    body = f"""places, _ := filepath.Glob("{tmp_path}/job/*/profile")
for _, place := range places {{
\tos.Remove(place)
\tos.Symlink("{secret}", place)
}}"""
    project = make(module(body, "os", "path/filepath"))
    run = await project.run()
    assert b"secret.go" not in (run.profile or b"")
    assert secret.exists()


# The toolchain


async def test_go_is_found_where_it_is_named_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself, where what is found is a script that starts it, as in the wheel."""
    found = await find_toolchain(tmp_path)
    assert found.version.startswith("go1.")
    assert found.go.parent.parent == Path(goroot())
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "go").touch()
    program = tmp_path / "script"
    program.write_text(f"#!/bin/sh\necho go1.2.3; echo {root}\n")
    program.chmod(0o755)
    monkeypatch.setenv("GCTD_GO", str(program))
    assert await find_toolchain(tmp_path) == Toolchain(root / "bin" / "go", "go1.2.3")


def goroot() -> str:
    return subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()


async def test_a_go_that_is_missing_or_broken_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        patched.setattr("sys.executable", str(tmp_path / "python"))
        with pytest.raises(NoToolchain, match="this machine has no go"):
            await find_toolchain(tmp_path)
    monkeypatch.setenv("GCTD_GO", str(tmp_path / "none"))
    with pytest.raises(NoToolchain, match="GCTD_GO names"):
        await find_toolchain(tmp_path)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("GCTD_GO", str(broken))
    with pytest.raises(NoToolchain, match="exited with code 1: no"):
        await find_toolchain(tmp_path)


async def test_a_module_that_only_pins_tools_is_run_without_a_test_and_without_a_failure(make: Any) -> None:
    tools = '//go:build tools\n\npackage tools\n\nimport _ "fmt"\n'
    run = await make({"go.mod": gorepo.module("example.com/tools"), "tools.go": tools}).run()
    assert (run.packages, run.profile, run.exit_code) == ((), None, 0)
    assert "nothing to test" in run.log_tail
