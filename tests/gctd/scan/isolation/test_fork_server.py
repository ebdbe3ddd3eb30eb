"""Supervisors are forks of one process: if it is lost or stopped, programs start all the same, and it ends with the worker."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gctd.scan.errors import ProcessError
from gctd.scan.isolation import fork_server, process
from gctd.scan.isolation.process import Finished, run
from gctd.scan.isolation.sandbox import find_sandbox
from tests.support.programs.supervised import alive
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

PATH = {"PATH": os.environ["PATH"]}
WORKER = """
import asyncio, sys
from pathlib import Path
from gctd.scan.isolation.process import run
asyncio.run(run(["sh", "-c", "touch started; sleep 100"], cwd=Path(sys.argv[1]), env={"PATH": sys.argv[2]}, timeout=100))
"""


async def shell(script: str, directory: Path) -> Finished:
    return await run(["sh", "-c", script], cwd=directory, env=PATH, timeout=60)


def servers(of: int | None = None) -> list[psutil.Process]:
    """The fork servers of a process, of this one if none is given."""
    return [child for child in psutil.Process(of).children() if any("import serve" in word for word in child.cmdline())]


async def test_programs_share_one_fork_server(tmp_path: Path) -> None:
    done = await asyncio.gather(*(shell(f"exit {number}", tmp_path) for number in range(8)))
    assert [one.exit_code for one in done] == list(range(8))
    assert len(servers()) == 1


async def test_after_the_death_of_the_fork_server_running_programs_go_on_and_others_start(tmp_path: Path) -> None:
    running = asyncio.create_task(shell("touch started; while [ ! -e go ]; do sleep 0.05; done; exit 3", tmp_path))
    await wait_until((tmp_path / "started").exists)
    (lost,) = servers()
    lost.kill()
    assert (await shell("exit 4", tmp_path)).exit_code == 4
    assert lost not in servers()
    (tmp_path / "go").touch()
    assert (await running).exit_code == 3


async def test_a_stopped_fork_server_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_ANSWER", 0.5)
    await shell("true", tmp_path)
    (stopped,) = servers()
    stopped.suspend()
    assert (await shell("exit 5", tmp_path)).exit_code == 5
    assert not stopped.is_running()
    assert len(servers()) == 1


async def test_it_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, str(tmp_path), PATH["PATH"])
    try:
        await wait_until((tmp_path / "started").exists, timeout=30)
        (server,) = servers(worker.pid)
    finally:
        worker.kill()
        await worker.wait()
    await wait_until(lambda: not alive([server]))


async def test_a_worker_that_takes_a_control_group_has_no_fork_server_outside_of_it(tmp_path: Path) -> None:
    await shell("true", tmp_path)
    before = servers()
    await find_sandbox("off", tmp_path, takes_group=True)
    assert before != []
    assert servers() == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (f"import os\ndef fork(): raise OSError(11, 'Try it later')\nos.fork = fork\n{fork_server._SERVE}", "fork: Try it later"),
        ("raise SystemExit(1)", "does not answer"),
    ],
)
async def test_a_supervisor_that_cannot_be_started_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    server = fork_server.ForkServer()
    monkeypatch.setattr(fork_server, "_SERVE", source)
    monkeypatch.setattr(process, "FORK_SERVER", server)
    try:
        with pytest.raises(ProcessError, match=reason):
            await shell("true", tmp_path)
    finally:
        server.end()


async def test_a_fork_server_that_has_ended_before_its_first_request_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ending(fork_server.ForkServer):
        @staticmethod
        def _open() -> tuple[subprocess.Popen[bytes], socket.socket]:
            child, channel = fork_server.ForkServer._open()
            child.wait(30)
            started.append(child)
            return child, channel

    started: list[subprocess.Popen[bytes]] = []
    server = Ending()
    monkeypatch.setattr(fork_server, "_SERVE", "raise SystemExit(1)")
    monkeypatch.setattr(process, "FORK_SERVER", server)
    try:
        with pytest.raises(ProcessError, match="does not answer"):
            await shell("true", tmp_path)
    finally:
        server.end()
    assert len(started) == 2
