"""Programs of a repository run in a sandbox: no network, and only their own files, processes and secrets."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gctd.engines.engine import EngineInput
from gctd.engines.native import NativeEngine
from gctd.scan.errors import NoSandbox
from gctd.scan.go.coverage_run.plan import GoTestRun, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain
from gctd.scan.isolation.process import Finished, Limits, run
from gctd.scan.isolation.sandbox import Sandbox, View, candidates, find_sandbox
from gctd.worker.scans.scoring import score
from tests.support.pace import within
from tests.support.programs.processes import sleeping, unused_sleep
from tests.support.tracker import go_repo as gorepo
from tests.support.waiting import wait_until

PATH = {"PATH": os.environ["PATH"]}
HOME = Path.home()
BEST = "bubblewrap" if shutil.which("bwrap") else "namespaces"

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/ns/user").exists(), reason="the host of the tests has no namespaces"),
    pytest.mark.real,
]


NO_BUBBLEWRAP = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bwrap on this machine")


@pytest.fixture(params=["namespaces", pytest.param("bubblewrap", marks=NO_BUBBLEWRAP)])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return sandbox_of(request.param)


@pytest.fixture(params=["namespaces", pytest.param("bubblewrap", marks=[NO_BUBBLEWRAP, pytest.mark.long])])
def go_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox of a run of Go's tests: the arguments of both kinds are the same."""
    return sandbox_of(request.param)


def sandbox_of(kind: str) -> Sandbox:
    return next(sandbox for sandbox in candidates() if sandbox.kind == kind)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    directory = tmp_path / "jobs" / "one"
    directory.mkdir(parents=True)
    return directory


async def shell(sandbox: Sandbox, script: str, job: Path, *, network: bool = False, **options: Any) -> Finished:
    view = View(cwd=job, scratch=job, writable=[job], network=network)
    argv = sandbox.around(["sh", "-c", script], view)
    return await run(argv, cwd=job, env=PATH, inputs=sandbox.inputs, **{"timeout": 20, **options})


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on this machine's loopback that programs in the sandbox may not reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


# Trying it out


async def test_the_first_sandbox_that_works_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await find_sandbox("auto", tmp_path)).kind == BEST
    assert (await find_sandbox("require", tmp_path)).kind == BEST
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - of a local directory, once
    monkeypatch.chdir(tmp_path)
    assert (await find_sandbox("auto", Path())).kind == BEST


async def test_where_there_is_none_that_is_said_and_a_worker_that_requires_one_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Sequence[Sandbox]:
        return [Sandbox(kind="bubblewrap", program=("/no/bwrap",)), Sandbox(kind="namespaces", program=("/bin/false",))]

    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", broken)
    monkeypatch.setattr("gctd.scan.isolation.landlock.version", lambda: 0)
    found = await find_sandbox("auto", tmp_path)
    assert found.kind == "none"
    assert "/no/bwrap: No such file" in found.reason
    assert "exited with code 1" in found.reason
    with pytest.raises(NoSandbox, match="required"):
        await find_sandbox("require", tmp_path)
    assert (await find_sandbox("off", tmp_path)).kind == "none"


@pytest.mark.real
async def test_the_limit_of_namespaces_is_not_reported_as_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ("/bin/sh", "-c", "echo 'unshare: No space left on device' >&2; exit 125")

    def limited() -> Sequence[Sandbox]:
        return [Sandbox(kind="bubblewrap", program=refused), Sandbox(kind="namespaces", program=refused)]

    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", limited)
    with capture_logs() as logs:
        found = await find_sandbox("auto", tmp_path)
    reason = "bubblewrap and namespaces: the limit of namespaces is reached (user.max_user_namespaces)"
    assert found.reason.startswith(reason)
    (warning,) = (entry for entry in logs if entry["log_level"] == "warning")
    assert warning["reason"].startswith(reason)
    assert warning["remedy"].startswith("install bubblewrap")
    with pytest.raises(NoSandbox, match="the limit of namespaces is reached") as error:
        await find_sandbox("require", tmp_path)
    assert error.value.hint == warning["remedy"]


@pytest.mark.parametrize(
    ("leak", "found"),
    [
        ("network", "there is a network"),
        ("files", "other files can be seen"),
    ],
)
async def test_a_sandbox_with_a_hole_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: str, found: str) -> None:
    whole = View

    def leaking(**options: Any) -> View:
        more = {"network": True} if leak == "network" else {"writable": [*options["writable"], options["scratch"]]}
        return whole(**{**options, **more})

    monkeypatch.setattr("gctd.scan.isolation.sandbox.View", leaking)
    assert found in (await find_sandbox("auto", tmp_path)).reason


# The content of the sandbox


async def test_only_the_job_s_folder_can_be_written_to(sandbox: Sandbox, job: Path) -> None:
    other = job.parent / "other"
    other.mkdir()
    script = (
        f"echo x > mine; echo x > /tmp/scratch; for f in /x /usr/x /etc/x /dev/x {other}/x {HOME}/x /var/tmp/../x"
        " /proc/sys/kernel/core_pattern; do (echo x > $f) 2>/dev/null && echo WROTE $f; done; true"
    )
    done = await shell(sandbox, script, job)
    assert done.ok, done.output_tail
    assert done.output_tail == ""
    assert (job / "mine").read_text() == "x\n"
    assert list(other.iterdir()) == []


async def test_nothing_of_the_host_is_seen_but_its_programs(sandbox: Sandbox, job: Path) -> None:
    """Not the worker's HOME and folders, not other jobs, not its processes, not its user."""
    (job.parent / "other").mkdir()
    script = f"ls {job.parent}; ls -A {HOME} /root /home /run /srv 2>/dev/null; ls /proc | grep -c '^[0-9]'; id -u"
    done = await shell(sandbox, script, job)
    names = done.output_tail.split()
    assert names[0] == "one"
    assert "other" not in names
    processes, user = names[-2:]
    assert int(processes) < 8
    assert user != "0"
    assert [name for name in names[1:-2] if not name.startswith("/")] == []


async def test_no_privilege_can_be_had(sandbox: Sandbox, job: Path) -> None:
    attempts = "unshare -Ur true && echo USERNS; mount -t tmpfs none /tmp && echo MOUNT; mount -o remount,rw / && echo REMOUNT"
    script = f"({attempts}) 2>/dev/null; grep CapEff /proc/self/status"
    done = await shell(sandbox, script, job)
    assert done.output_tail == "CapEff:\t0000000000000000\n"


async def test_there_is_a_loopback_interface_of_its_own_and_no_other_network(
    sandbox: Sandbox, job: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    script = (
        "import socket, sys\n"
        "own = socket.create_server(('127.0.0.1', 0)); socket.create_connection(own.getsockname()).close(); print('own')\n"
        f"for place in [('127.0.0.1', {port}), ('192.0.2.1', 80)]:\n"
        "    try: socket.create_connection(place, 2); print('REACHED', place)\n"
        "    except OSError: pass\n"
    )
    (job / "try.py").write_text(script)
    done = await shell(sandbox, "/usr/bin/env python3 try.py", job)
    assert done.output_tail == "own\n"
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert "REACHED" in (await shell(sandbox, "/usr/bin/env python3 try.py", job, network=True)).output_tail


# How it ends


async def test_output_environment_and_exit_code_come_through(sandbox: Sandbox, job: Path) -> None:
    done = await shell(sandbox, "echo out; env | cut -d= -f1 | sort | tr '\\n' ' '; exit 7", job)
    assert (done.exit_code, done.ended_by) == (7, "exit")
    assert done.output_tail.splitlines()[0] == "out"
    assert set(done.output_tail.splitlines()[1].split()) <= {"PATH", "GCTD_RUN", "PWD", "SHLVL", "_", "OLDPWD"}


async def test_a_signal_is_told_as_one(job: Path) -> None:
    sandbox = next(found for found in candidates() if found.kind == "namespaces")
    assert (await shell(sandbox, "kill -SEGV $$", job)).signal == 11
    assert (await shell(sandbox, "kill -KILL $$", job)).signal == 9


async def test_a_program_that_cannot_start_is_named(sandbox: Sandbox, job: Path) -> None:
    done = await run(
        sandbox.around(["no-such-program"], View(cwd=job, scratch=job, writable=[job])),
        cwd=job,
        env=PATH,
        timeout=5,
        inputs=sandbox.inputs,
    )
    assert not done.ok
    assert "no-such-program" in done.output_tail


FAMILY = "setsid sleep {0} & (setsid sh -c 'sleep {0} & sleep {0}' &) ; sleep {0} & trap '' TERM; sleep {0}; sleep {0}"


@pytest.mark.parametrize("how", ["timeout", "cancel", "exit"])
async def test_nothing_in_it_is_alive_five_seconds_after_its_end(sandbox: Sandbox, job: Path, how: str) -> None:
    """Children in new sessions, orphans, and a shell that ignores SIGTERM."""
    marker = unused_sleep()
    script = FAMILY.format(marker) if how != "exit" else f"setsid sleep {marker} & (setsid setsid sleep {marker} &); exit 3"
    running = asyncio.create_task(shell(sandbox, script, job, timeout=1 if how == "timeout" else 60, grace=0.5))
    if how == "exit":
        assert (await running).exit_code == 3
    else:
        await wait_until(lambda: len(sleeping(marker)) >= 5)
    with within(5):
        if how == "timeout":
            assert (await running).timed_out
        elif how == "cancel":
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert sleeping(marker) == []


async def test_a_fork_bomb_is_ended(sandbox: Sandbox, job: Path) -> None:
    """Each process is in a new session without a parent and ignores SIGTERM. There are more than allowed, and all of them end."""
    marker = unused_sleep()
    script = f"trap '' TERM; while :; do (setsid sleep {marker} &) ; done"
    with within(5):
        done = await shell(sandbox, script, job, limits=Limits(processes=50))
        assert (done.ended_by, done.left) == ("processes", 0)
        assert sleeping(marker) == []


# Go's tests in it


async def go(files: dict[str, str], job: Path, cache: Path, toolchain: Toolchain, sandbox: Sandbox, **options: Any) -> Any:
    source = job / "src"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    lines: list[str] = []

    async def stage(_: str) -> None:
        pass

    plan = Plan(source=source, project=".", job=job, caches=GoCaches.below(cache), timeout=100.0, sandbox=sandbox, **options)
    result: GoTestRun = await run_tests(toolchain, plan, stage, lines.append)
    return result, lines


def one(body: str, *imports: str) -> dict[str, str]:
    return {"go.mod": gorepo.module("example.com/one"), **gorepo.with_test("one", body, *imports)}


async def test_tests_are_run_with_coverage_as_without_it(
    go_sandbox: Sandbox, job: Path, go_cache: Path, toolchain: Toolchain
) -> None:
    result, _ = await go(dict(gorepo.KINDS["single"]), job, go_cache, toolchain, go_sandbox)
    assert [package.outcome for package in result.packages] == ["ok"]
    assert result.profile is not None
    assert "single.go" in result.profile.decode()


async def test_a_test_that_wants_the_network_fails_as_any_other_and_breaks_nothing(
    job: Path, go_cache: Path, toolchain: Toolchain, go_sandbox: Sandbox, listener: socket.socket
) -> None:
    body = (
        f'if _, err := net.Dial("tcp", "127.0.0.1:{listener.getsockname()[1]}"); err != nil {{\n\tt.Error(err)\n}}\n'
        'own, err := net.Listen("tcp", "127.0.0.1:0")\nif err != nil {\n\tt.Fatal(err)\n}\n'
        'println("listens", own.Addr().String())'
    )
    files = {**one(body, "net"), **gorepo.under("fine", gorepo.tested("fine"))}
    result, lines = await go(files, job, go_cache, toolchain, go_sandbox)
    assert {package.path.rpartition("/")[2]: package.outcome for package in result.packages} == {"one": "failed", "fine": "ok"}
    assert result.profile is not None
    assert any("listens 127.0.0.1" in line for line in lines)
    with pytest.raises(BlockingIOError):
        listener.accept()
    result, _ = await go(files, job, go_cache, toolchain, go_sandbox, test_network=True)
    assert [package.outcome for package in result.packages] == ["ok", "ok"]


async def test_a_test_finds_no_secret_anywhere(
    job: Path, go_cache: Path, toolchain: Toolchain, go_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not in the environment of the test or of a visible process, nor in a file below HOME, the worker's or a job's."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine example.com login me password geheim\n")
    (tmp_path / "data").write_text("geheim")
    for name in ("GCTD_NATS_URL", "GITHUB_TOKEN", "NETRC", "GCTD_AUTH_TOKEN"):
        monkeypatch.setenv(name, f"{home}/.netrc?geheim")
    monkeypatch.setenv("HOME", str(home))
    body = f"""secret := strings.Map(func(r rune) rune {{ return r - 1 }}, "hfifjn") // the test's own program has it nowhere
seen := strings.Join(os.Environ(), "\\n")
processes, _ := filepath.Glob("/proc/[0-9]*/environ")
for _, name := range processes {{
\ttext, _ := os.ReadFile(name)
\tseen += string(text)
}}
for _, root := range []string{{os.Getenv("HOME"), "{tmp_path}", "{home}", "/root", "/home"}} {{
\tfilepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {{
\t\tif err == nil && !entry.IsDir() && filepath.Ext(path) != ".go" {{
\t\t\ttext, _ := os.ReadFile(path)
\t\t\tif strings.Contains(string(text), secret) {{
\t\t\t\tt.Error(path)
\t\t\t}}
\t\t}}
\t\treturn nil
\t}})
}}
if len(processes) == 0 || len(processes) > 20 || strings.Contains(seen, secret) {{
\tt.Error(len(processes), "processes, and:", strings.Contains(seen, secret))
}}"""
    downloads = Downloads(credentials={"example.com": "me:geheim"}, netrc=home / ".netrc", proxy="http://me:geheim@127.0.0.1:9")
    files = one(body, "io/fs", "os", "path/filepath", "strings")
    result, lines = await go(files, job, go_cache, toolchain, go_sandbox, downloads=downloads, go_flags=("-mod=mod",))
    assert [package.outcome for package in result.packages] == ["ok"], lines


async def test_the_engine_scores_in_it(job: Path, sandbox: Sandbox) -> None:
    repo = gorepo.make(job / "src")
    given = EngineInput(module_dir=repo.path, repository=repo.path, module_path="example.com/single", profile=None, nested=())
    outside = job.parent / "outside"
    outside.write_text("mine")
    for name in ("order.json", "report.json", "profile"):  # as a test could leave them
        (job / name).symlink_to(outside)
    report = await score(NativeEngine(), given, b"mode: set\n", job, 60.0, sandbox, print)
    assert report.summary.total_funcs == 2
    assert outside.read_text() == "mine"
