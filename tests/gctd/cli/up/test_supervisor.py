"""The supervisor on stand-in services and a real nats-server: order, restarts, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN
from pathlib import Path
from typing import TextIO
from unittest.mock import AsyncMock

import pytest

from gctd.cli.up.children import ChildProcess, StartFailed
from gctd.cli.up.console import Console
from servicekit.supervision import keep_running
from tests.gctd.cli.up.standins import standin
from tests.support.programs.supervised import Supervised, alive, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

ORDERLY = "ok"
LEFT = "left by one that was killed"


@contextmanager
def _standins(directory: Path, *behaviours: str, console: str = "console.txt") -> Iterator[Supervised]:
    arguments = [str(directory / "data"), str(directory / "ready.json"), *behaviours]
    with supervised(
        [sys.executable, "-m", "tests.gctd.cli.up.standins", *arguments], directory / console, dict(os.environ)
    ) as running:
        yield running


def _has_new_text(file: Path) -> bool:
    """Whether the file is a new one. The supervisor removes the old file first."""
    with suppress(FileNotFoundError):
        return LEFT not in file.read_text()
    return False


async def test_the_ready_file_is_there_while_all_is_ready_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text(LEFT)
    with _standins(tmp_path, ORDERLY, ORDERLY) as running:
        await wait_until(lambda: _has_new_text(tmp_path / "ready.json"))
        ready = await running.ready()
        assert ready["env"] == {"SOME_SETTING": "its value"}
        assert ready["nats"].startswith("nats://127.0.0.1:")
        assert len(running.descendants()) == 3
        assert await running.end(signal.SIGINT) == 130
        assert not running.ready_file.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_ends_all_in_order_and_gives_the_exit_code(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with _standins(tmp_path, ORDERLY, "slow") as running:
        await running.ready()
        children = list(running.descendants().values())
        assert await running.end(number) == code
        assert alive(children) == []
        logs = [(tmp_path / "data" / "logs" / f"service-{number}.log") for number in (1, 2)]
        assert all("ending" in log.read_text() for log in logs)
        assert all("error: standin: terminated" in log.read_text() for log in logs)
        assert "terminated" not in running.said
        assert logs[1].stat().st_mtime_ns <= logs[0].stat().st_mtime_ns, "the last stage ends first"


async def test_kill_9_of_the_supervisor_leaves_nothing_behind(tmp_path: Path) -> None:
    with _standins(tmp_path, ORDERLY, "stubborn") as running:
        await running.ready()
        children = list(running.descendants().values())
        assert len(children) == 3
        assert await running.end(signal.SIGKILL) == -9
        await wait_until(lambda: not alive(children), 10)


@pytest.mark.parametrize("part", ["standin.py", "nats-server"])
async def test_a_killed_process_comes_back(tmp_path: Path, part: str) -> None:
    with _standins(tmp_path, ORDERLY) as running:
        await running.ready()
        killed = running.find(part)
        killed.kill()
        await wait_until(lambda: "runs again" in running.said)
        assert running.find(part).pid != killed.pid
        assert "by SIGKILL, starting it again in 0.5 s" in running.said


async def test_a_service_that_will_not_end_is_killed_after_its_patience(tmp_path: Path) -> None:
    with _standins(tmp_path, "stubborn") as running:
        await running.ready()
        assert await running.end(signal.SIGINT, within=10) == 130
        assert "service-1 did not end within 3 s, killing it" in running.said


async def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    with _standins(tmp_path, "stubborn") as running:
        await running.ready()
        children = list(running.descendants().values())
        running.process.send_signal(signal.SIGINT)
        said = time.monotonic()
        await wait_until(lambda: "ending everything" in running.said and time.monotonic() > said + 0.5)
        assert running.process.poll() is None
        assert await running.end(signal.SIGINT, within=1.5) == 130
        assert alive(children) == []


async def test_a_signal_that_is_sent_to_the_process_and_to_its_group_counts_once(tmp_path: Path) -> None:
    with _standins(tmp_path, "slow") as running:
        await running.ready()
        assert await running.end(signal.SIGTERM, signal.SIGTERM) == 143
        assert "ending" in (tmp_path / "data" / "logs" / "service-1.log").read_text(), "it was given the time that it takes"


async def test_a_service_that_does_not_start_ends_all_with_the_end_of_its_log(tmp_path: Path) -> None:
    with _standins(tmp_path, ORDERLY, "fail") as running:
        assert await running.end() == 1
        assert "service-2 ended with status 1; the end of its log" in running.said
        assert "cannot start: no such thing" in running.said
        assert not running.ready_file.exists()


async def test_a_service_whose_readiness_needs_a_token_ends_all_with_advice_at_once(tmp_path: Path) -> None:
    """As a worker does if the tracker asks for tokens, and `gctd up` has none: it could wait for ever."""
    with _standins(tmp_path, ORDERLY, "guarded") as running:
        assert await running.end() == 1
        assert "error: service-2 cannot be seen: http://127.0.0.1:" in running.said
        assert "/readyz is answered with 401: set GCTD_AUTH_TOKEN to a valid token" in running.said


async def test_a_service_that_answers_https_only_ends_all_with_advice_at_once(tmp_path: Path) -> None:
    """`gctd up` gives every service an http address on this machine, which a certificate is seldom for."""
    with _standins(tmp_path, ORDERLY, "tls") as running:
        assert await running.end() == 1
        assert "error: service-2 cannot be seen: http://127.0.0.1:" in running.said
        assert "it answers https only, and gctd up serves this machine by http: unset its tls_certificate" in running.said


async def test_a_service_that_says_how_far_it_is_is_given_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have tables to make first; one that says nothing new is given up."""
    monkeypatch.setattr("gctd.cli.up.children.START_TIMEOUT", 8.0)
    busy = ChildProcess(standin("busy", "busy"), tmp_path, Console(verbose=False))
    stuck = ChildProcess(standin("stuck", "stuck"), tmp_path, Console(verbose=False))
    try:
        begun, failed = await asyncio.gather(busy.start(), stuck.start(), return_exceptions=True)
        assert begun is None
        assert "stuck was not ready, and said nothing new of it for 8 s" in str(failed)
    finally:
        await busy.stop()
        await stuck.stop()


async def test_a_service_that_the_system_cannot_start_at_one_moment_is_started_at_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = ChildProcess(standin("service", ORDERLY), tmp_path, Console(verbose=False))
    await service.start()
    said: list[str] = []
    keeping = asyncio.create_task(keep_running(service, said.append, failures=(StartFailed,)))
    try:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_subprocess_exec", AsyncMock(side_effect=BlockingIOError(EAGAIN, os.strerror(EAGAIN))))
            service.kill()
            await wait_until(lambda: any("service cannot be started" in line for line in said) or keeping.done())
        await wait_until(lambda: "service runs again" in said or keeping.done())
        assert not keeping.done()
    finally:
        keeping.cancel()
        await service.stop()


async def test_a_second_system_on_the_data_directory_is_refused(tmp_path: Path) -> None:
    with _standins(tmp_path, ORDERLY) as running:
        await running.ready()
        with _standins(tmp_path, ORDERLY, console="second.txt") as second:
            assert await second.end() == 5
            assert f"is in use by process {running.process.pid}" in second.said
        assert running.ready_file.exists(), "the first goes on, undisturbed"
        assert running.process.poll() is None


async def test_the_console_shows_problems_and_the_log_everything(tmp_path: Path) -> None:
    with _standins(tmp_path, ORDERLY) as running:
        await running.ready()
        assert "service-1: warning: a warning cause=none\n" in running.said
        assert "service-1: plain text, 100% as it is\n" in running.said
        assert "service-1: {" not in running.said
        log = (tmp_path / "data" / "logs" / "service-1.log").read_text()
        assert '"event": "starting"' in log
        assert "plain text, 100% as it is" in log


@pytest.fixture
def full() -> Iterator[TextIO]:
    """A file on a disk without room."""
    file = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 - closing it fails
    yield file
    with suppress(OSError):
        file.close()


async def test_the_output_of_a_service_is_read_and_kept_if_the_console_cannot_be_written(tmp_path: Path, full: TextIO) -> None:
    """A service whose output is not read stops at its next line, as soon as the pipe is full."""
    console = Console(verbose=True, stream=full)
    service = ChildProcess(standin("service", ORDERLY), tmp_path, console)
    await service.start()
    keeping = asyncio.create_task(keep_running(service, console.say, failures=(StartFailed,)))
    try:
        first = service.pid
        service.kill()
        await wait_until(lambda: keeping.done() or service.pid not in {first, None})
        await wait_until(lambda: keeping.done() or service.log_file.read_text().count("plain text") == 2)
        assert not keeping.done()
    finally:
        keeping.cancel()
        await service.stop()
    assert "ending" in service.log_file.read_text()
