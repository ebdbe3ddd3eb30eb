"""Programs run under limits, and no process remains after a timeout, a cancellation or the death of the worker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from gctd.scan.disk import MIB
from gctd.scan.errors import ProcessError
from gctd.scan.isolation.process import MARK, Finished, Limits, run
from tests.support.pace import within
from tests.support.programs.processes import sleeping, unused_sleep
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

PATH = {"PATH": os.environ["PATH"]}

FAMILY = (
    "setsid sleep {0} & (setsid sh -c 'sleep {0} & sleep {0}' &) ; sleep {0} & touch started; trap '' TERM; sleep {0}; sleep {0}"
)
"""A shell that leaves `sleep`s in its group, in new sessions and with dead parents, and that ignores SIGTERM."""


async def shell(script: str, directory: Path, **options: Any) -> Finished:
    return await run(["sh", "-c", script], cwd=directory, env=PATH, **{"timeout": 20, **options})


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def start_worker(source: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", source, *arguments, PATH["PATH"]])


async def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    done = await shell("echo out; echo err >&2; exit 3", tmp_path)
    assert (done.exit_code, done.signal, done.ended_by, done.ok) == (3, None, "exit", False)
    assert done.output_tail == "out\nerr\n"
    assert not done.truncated
    assert done.how() == "exited with code 3"


async def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    done = await run(
        ["printf", "%s|", "$(touch pwn)", "; touch pwn", "`touch pwn`", "*", "a\nb"], cwd=tmp_path, env=PATH, timeout=5
    )
    assert done.output_tail == "$(touch pwn)|; touch pwn|`touch pwn`|*|a\nb|"
    assert names(tmp_path) == []


async def test_a_program_sees_the_given_environment_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable of the worker's, no open file, no input, no controlling terminal."""
    monkeypatch.setenv("GCTD_NATS_URL", "nats://secret@host")
    with (tmp_path / "open").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        done = await run(
            ["sh", "-c", "env; ls -l /proc/self/fd; cat; ps -o tty= -p $$"], cwd=tmp_path, env={**PATH, "A": "1"}, timeout=5
        )
    variables = {line.partition("=")[0] for line in done.output_tail.splitlines() if "=" in line}
    assert variables - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "A", MARK}
    assert str(tmp_path / "open") not in done.output_tail
    assert "socket" not in done.output_tail
    assert done.output_tail.splitlines()[-1].strip() == "?"


@pytest.mark.parametrize("how", ["timeout", "cancel", "cancelled twice"])
async def test_nothing_is_alive_five_seconds_after_it_was_ended(tmp_path: Path, how: str) -> None:
    """Children in new sessions, orphans, and a shell that ignores SIGTERM: all of them end within 5 s."""
    marker = unused_sleep()
    running = asyncio.create_task(shell(FAMILY.format(marker), tmp_path, timeout=1 if how == "timeout" else 60, grace=1))
    await wait_until(lambda: len(sleeping(marker)) >= 5)
    with within(5):
        if how == "timeout":
            done = await running
            assert done.timed_out
            assert done.signal == 9
        else:
            running.cancel()
            if how == "cancelled twice":
                await asyncio.sleep(0.1)
                running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert sleeping(marker) == []


async def test_a_program_that_obeys_sigterm_is_not_waited_for(tmp_path: Path) -> None:
    with within(3):
        done = await shell("trap 'echo bye; exit 0' TERM; sleep 100 & wait", tmp_path, timeout=0.3, grace=10)
    assert done.timed_out
    assert done.output_tail == "bye\n"


async def test_processes_of_a_program_are_killed_at_its_end(tmp_path: Path) -> None:
    marker = unused_sleep()
    with within(5):
        done = await shell(f"sleep {marker} & setsid sleep {marker} & (setsid setsid sleep {marker} &); exit 7", tmp_path)
    assert done.exit_code == 7
    assert sleeping(marker) == []


WORKER = """
import asyncio, sys
from pathlib import Path
from gctd.scan.isolation.process import run
asyncio.run(run(["sh", "-c", sys.argv[1]], cwd=Path(sys.argv[2]), env={"PATH": sys.argv[3]}, timeout=100))
"""


async def test_a_worker_killed_by_sigkill_leaves_nothing_running(tmp_path: Path) -> None:
    marker = unused_sleep()
    worker = start_worker(WORKER, FAMILY.format(marker), str(tmp_path))
    try:
        await wait_until(lambda: len(sleeping(marker)) >= 5)
    finally:
        worker.kill()
        worker.wait()
    await wait_until(lambda: not sleeping(marker), timeout=30)


async def test_the_time_limit_holds_while_the_worker_is_stopped(tmp_path: Path) -> None:
    marker = unused_sleep()
    source = WORKER.replace("timeout=100", "timeout=2, grace=0.1")
    worker = start_worker(source, f"touch started; setsid sleep {marker}", str(tmp_path))
    try:
        await wait_until((tmp_path / "started").exists)  # on a busy machine it takes longer to look at all processes
        psutil.Process(worker.pid).suspend()
        await wait_until(lambda: not sleeping(marker), timeout=30)
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("attack", ["KILL", "STOP"])
async def test_a_program_that_attacks_its_supervisor_is_ended_all_the_same(tmp_path: Path, attack: str) -> None:
    """The supervisor is killed or frozen. Its processes are found by their mark. Their exit code cannot be known."""
    marker = unused_sleep()
    script = f"setsid sleep {marker} & sleep {marker} & kill -{attack} $PPID; sleep {marker}"
    with pytest.raises(ProcessError, match="supervisor"):
        await shell(script, tmp_path, timeout=0.5, grace=0.1)
    assert sleeping(marker) == []


async def test_output_beyond_the_limit_is_neither_kept_nor_handed_on(tmp_path: Path) -> None:
    seen = bytearray()
    limits = Limits(output=100_000, tail=1000)
    done = await shell("head -c 3000000 /dev/zero | tr '\\0' x; echo end", tmp_path, limits=limits, on_output=seen.extend)
    assert done.ok
    assert bytes(seen) == b"x" * 100_000
    assert done.output_tail == "x" * 996 + "end\n"
    assert done.truncated


async def test_standard_output_can_go_its_own_way(tmp_path: Path) -> None:
    out, log = bytearray(), bytearray()
    done = await shell("echo data; echo note >&2", tmp_path, on_stdout=out.extend, on_output=log.extend)
    assert (bytes(out), bytes(log), done.output_tail) == (b"data\n", b"note\n", "note\n")


async def test_an_exception_from_the_listener_ends_the_program(tmp_path: Path) -> None:
    marker = unused_sleep()

    def too_much(_: bytes) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        await shell(f"echo; sleep {marker}", tmp_path, on_output=too_much)
    assert sleeping(marker) == []


async def test_a_file_larger_than_allowed_cannot_be_written(tmp_path: Path) -> None:
    done = await shell("head -c 3000000 /dev/zero > big; ulimit -c", tmp_path, limits=Limits(file_size=MIB))
    assert (tmp_path / "big").stat().st_size <= MIB
    assert done.output_tail.splitlines()[-1] == "0"


@pytest.mark.parametrize(
    ("limits", "script", "ended_by"),
    [
        (Limits(memory=64 * MIB), "exec python3 -c 'import time; x = b\"x\" * 200_000_000; time.sleep(60)'", "memory"),
        (Limits(processes=20), "for i in $(seq 40); do sleep 60 & done; wait", "processes"),
        (Limits(free_space=1 << 60), "sleep 60", "disk"),
    ],
)
async def test_a_tree_that_uses_too_much_is_ended(tmp_path: Path, limits: Limits, script: str, ended_by: str) -> None:
    done = await shell(script, tmp_path, limits=limits)
    assert done.ended_by == ended_by
    assert "was ended" in done.how()


async def test_a_fork_bomb_is_ended(tmp_path: Path) -> None:
    """Each process is in a new session without a parent and ignores SIGTERM. There are more than allowed, and all of them end."""
    marker = unused_sleep()
    script = f"trap '' TERM; while :; do (setsid sleep {marker} &) ; done"
    with within(5):
        done = await shell(script, tmp_path, limits=Limits(processes=50))
        assert (done.ended_by, done.left) == ("processes", 0)
        assert sleeping(marker) == []


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="no-such-program: No such file"):
        await run(["no-such-program"], cwd=tmp_path, env=PATH, timeout=5)
    with pytest.raises(ProcessError, match="No such file"):
        await run(["true"], cwd=tmp_path / "none", env=PATH, timeout=5)


async def test_many_programs_at_a_time(tmp_path: Path) -> None:
    done = await asyncio.gather(*(shell(f"echo {n}; exit {n}", tmp_path) for n in range(12)))
    assert [(one.exit_code, one.output_tail) for one in done] == [(n, f"{n}\n") for n in range(12)]


def test_it_works_on_uvloop(tmp_path: Path) -> None:
    marker = unused_sleep()

    async def both() -> tuple[Finished, Finished]:
        return await shell("echo one", tmp_path), await shell(f"setsid sleep {marker}", tmp_path, timeout=0.3)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        one, two = runner.run(both())
    assert one.output_tail == "one\n"
    assert two.timed_out
    assert sleeping(marker) == []


def test_the_end_of_a_program_closes_no_file_of_another_thread(tmp_path: Path) -> None:
    """A descriptor that is closed twice may belong to another thread the second time."""
    ended, lost = threading.Event(), []

    def read_files() -> None:
        while not ended.is_set():
            try:
                Path(os.devnull).read_bytes()
            except OSError as error:
                lost.append(error)

    async def run_programs() -> None:
        for _ in range(200):
            await run(["true"], cwd=tmp_path, env=PATH, timeout=20, on_stdout=lambda _: None)

    threads = [threading.Thread(target=read_files) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_programs())
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert lost == []
