"""Running a program that is not trusted: with limits, and so that nothing of it is left when `run` returns.

Each program runs under a supervisor process (`gctd.scan.isolation.supervisor`), a small process between the program and the
worker. The supervisor ends the whole tree when the program ends, when its time is over, when the worker says so, and when the
worker is gone, even by SIGKILL.
"""

from __future__ import annotations

import asyncio
import marshal
import secrets
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs
import psutil
import structlog

from gctd.scan.errors import ProcessError
from gctd.scan.isolation import supervisor as warden
from gctd.scan.isolation.messages import EndedBy, Order, Report
from gctd.scan.isolation.output import OnOutput, Output, Pipe

MIB = 1024 * 1024
MARK = "GCTD_RUN"
"""Environment variable that every process of a run inherits: the second way to find them, should the warden be lost."""

_log = structlog.get_logger(__name__)

_MARGIN = 0.5
_AFTERWARDS = 1.0


@attrs.frozen(kw_only=True)
class Limits:
    """What a program may use; None: no limit.

    `file_size`, `address_space` (bytes) and `cpu` (seconds) hold for each process (setrlimit(2)). `memory` (resident bytes) and
    `processes` (threads count too) hold for the whole tree, which is looked at once a second, and `free_space` is how many bytes
    must be left on the disk that it runs on; what goes beyond is ended. `output` is how much of what it writes is handed on,
    `tail` how much of its end is kept, in bytes.
    """

    file_size: int | None = 4096 * MIB
    address_space: int | None = None
    cpu: int | None = None
    memory: int | None = None
    processes: int | None = 4096
    free_space: int | None = 256 * MIB
    output: int = 64 * MIB
    tail: int = MIB // 16

    def rlimits(self) -> dict[str, int]:
        """As setrlimit(2) names them."""
        wanted = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": self.file_size, "RLIMIT_AS": self.address_space, "RLIMIT_CPU": self.cpu}
        return {name: limit for name, limit in wanted.items() if limit is not None}


@attrs.frozen(kw_only=True)
class Finished:
    """How a program ended: by itself with an exit code or by a signal, or because it was `ended_by` something else.

    `duration` is in seconds. `output_tail` is the end of what it wrote, `truncated` where that was more. `left` counts processes
    that not even SIGKILL ended within the time (blocked in the kernel).
    """

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    duration: float
    output_tail: str
    truncated: bool
    left: int

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was over."""
        return self.ended_by == "timeout"

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.ended_by == "exit" and self.exit_code == 0

    def how(self) -> str:
        """How it ended, for a sentence: `exited with code 1`."""
        match self.ended_by:
            case "timeout":
                return f"was ended after {self.duration:.0f} s: its time was over"
            case "stop":
                return "was stopped"
            case "memory":
                return "was ended: it used more memory than allowed"
            case "processes":
                return "was ended: it started more processes than allowed"
            case "disk":
                return "was ended: the disk is nearly full"
            case "exit" if self.signal is not None:
                return f"was killed by {_signal_name(self.signal)}"
            case _:
                return f"exited with code {self.exit_code}"


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109 - the warden keeps the time, so that it holds while the worker is stopped
    on_output: OnOutput | None = None,
    on_stdout: OnOutput | None = None,
    limits: Limits = Limits(),
    stop: asyncio.Event | None = None,
    grace: float = 2.0,
) -> Finished:
    """Run a program to its end, with exactly this environment, in a session of its own, its standard input empty.

    What it writes goes to `on_output` as it comes, up to `limits.output` bytes; with `on_stdout` its standard output goes there
    instead, and does not count for `output_tail`. An exception from either ends the program and is raised here.

    It is ended after `timeout` seconds, or when `stop` is set: SIGTERM to its group, SIGKILL to everything that it started after
    `grace` seconds more, whether in its session or not. Cancelling does the same before CancelledError leaves. When the
    program ends by itself, what it left running is killed. Raises ProcessError where it cannot be started.
    """
    mark = secrets.token_hex(16)
    order: Order = {
        "argv": list(argv),
        "env": {**env, MARK: mark},
        "cwd": str(cwd),
        "timeout": timeout,
        "grace": grace,
        "rlimits": limits.rlimits(),
        "memory": limits.memory,
        "processes": limits.processes,
        "free_space": limits.free_space,
    }
    program = _Program(order, Output(limits.output, limits.tail, on_output, on_stdout))
    running = asyncio.create_task(program.run(), name=f"run {argv[0]}")
    forwarding = asyncio.create_task(program.stop_with(stop)) if stop is not None else None
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        program.stopping.set()
        while not running.done():  # whoever cancels again waits too
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if running.exception() is not None:
            _log.warning("cancelled program ended with an error", program=argv[0], error=str(running.exception()))
        raise
    finally:
        if forwarding is not None:
            forwarding.cancel()


class _Program:
    """A program under its warden."""

    def __init__(self, order: Order, output: Output) -> None:
        self._order = order
        self._output = output
        self.stopping = asyncio.Event()

    async def stop_with(self, event: asyncio.Event) -> None:
        """Stop when an event is set."""
        await event.wait()
        self.stopping.set()

    async def run(self) -> Finished:
        """Run it to its end."""
        began = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            log = await Pipe.open(self._output.log)
            stdout = await Pipe.open(self._output.stdout) if self._output.separate else log
            try:
                process = await self._start_warden(theirs, stdout, log)
            except OSError as error:
                ours.close()
                raise ProcessError(f"cannot start the warden of {self._order['argv'][0]}: {error.strerror}") from error
            finally:
                pumps = [asyncio.create_task(pipe.pump(self._failed)) for pipe in {log, stdout}]
        report = await self._talk(ours)
        if report is None:  # the warden was killed, or does not answer
            with suppress(ProcessLookupError):
                process.kill()
        if report is None or report["left"] or not warden.HAS_PROC:
            await asyncio.to_thread(_end_marked, self._order["env"][MARK])
        await process.wait()
        _, late = await asyncio.wait(pumps, timeout=_AFTERWARDS)
        for pump in late:  # what cannot be killed holds the pipe
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        return self._finished(report, time.monotonic() - began)

    async def _start_warden(self, theirs: socket.socket, stdout: Pipe, stderr: Pipe) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", warden.__file__, str(theirs.fileno())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout.theirs,
            stderr=stderr.theirs,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=self._order["env"],
        )

    def _failed(self, error: Exception) -> None:
        self._output.failure = self._output.failure or error
        self.stopping.set()

    async def _talk(self, ours: socket.socket) -> Report | None:
        """Give the warden its order and wait for its report; None where it dies or does not keep its own time."""
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        order = marshal.dumps(cast("dict[str, Any]", self._order))
        reading = asyncio.create_task(reader.read())
        stopping = asyncio.create_task(self.stopping.wait())
        last_moments = self._order["grace"] + warden.KILLING + _MARGIN
        try:
            writer.write(b"%08x" % len(order) + order)
            await asyncio.wait([reading, stopping], timeout=self._order["timeout"] + last_moments, return_when="FIRST_COMPLETED")
            if not reading.done() and stopping.done():
                writer.write(b"stop")
                await asyncio.wait([reading], timeout=last_moments)
            if not reading.done() or reading.exception() is not None or not reading.result():
                return None
            return _parsed(reading.result())
        finally:
            for task in (reading, stopping):
                task.cancel()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _finished(self, report: Report | None, duration: float) -> Finished:
        program = self._order["argv"][0]
        if self._output.failure is not None:
            raise self._output.failure
        if report is None:
            raise ProcessError(f"the warden of {program} was lost; what it watched was ended")
        if report["error"] is not None:
            raise ProcessError(f"cannot start {program}: {report['error']}")
        if report["left"]:
            _log.error("processes could not be ended", program=program, left=report["left"])
        return Finished(
            exit_code=report["exit_code"],
            signal=report["signal"],
            ended_by=report["ended_by"],
            duration=duration,
            output_tail=self._output.tail,
            truncated=self._output.truncated,
            left=report["left"],
        )


def _parsed(report: bytes) -> Report:
    exit_code, number, ended_by, left, error = report.decode().split("\0")
    return {
        "exit_code": int(exit_code) if exit_code else None,
        "signal": int(number) if number else None,
        "ended_by": cast("EndedBy", ended_by),
        "left": int(left),
        "error": error or None,
    }


def _end_marked(mark: str) -> None:
    """Kill every process that has the mark in its environment, until there is none or the time is over."""
    until = time.monotonic() + warden.KILLING
    while time.monotonic() < until:
        found = False
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark:
                    found = True
                    process.kill()
        if not found:
            return
        time.sleep(0.02)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
