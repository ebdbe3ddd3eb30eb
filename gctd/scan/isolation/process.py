"""Running an untrusted program: with limits, and without any process of it left when `run` returns.

Each program runs under a supervisor process (`gctd.scan.isolation.supervisor`), a small process between the program and the
worker, which the worker's fork server starts. The supervisor ends the whole tree when the program ends, when its time is over, at
the worker's request, and when the worker is gone, even by SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import psutil
import structlog

from gctd.scan.disk import LEAST_FREE_RUNNING, MIB
from gctd.scan.errors import ProcessError
from gctd.scan.isolation import cgroups
from gctd.scan.isolation.fork_server import FORK_SERVER, StartedSupervisor
from gctd.scan.isolation.messages import EndedBy, FileRules, RunRequest, RunResult, request_to_bytes, result_from_bytes
from gctd.scan.isolation.output import OnOutput, Pipe, ProgramOutput
from gctd.scan.isolation.process_table import HAS_PROC
from gctd.scan.isolation.supervisor import KILLING

MARK = "GCTD_RUN"
"""Environment variable that every process of a run inherits: the second way to find them, should the supervisor be lost."""

_log = structlog.get_logger(__name__)

_MARGIN = 0.5
_AFTERWARDS = 1.0


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of a program; None: no limit.

    `file_size` (bytes) holds for each process (setrlimit(2)). `memory` (resident bytes) and `processes` (threads count too) hold
    for the whole tree, which is checked once a second. `free_space` is the least free space of the disk in bytes. A tree beyond
    a limit is ended. `output` is the part of the output that is handed on, `tail` the part of its end that is kept, in bytes.
    """

    file_size: int = 4096 * MIB
    memory: int | None = None
    processes: int | None = 4096
    free_space: int | None = LEAST_FREE_RUNNING
    output: int = 64 * MIB
    tail: int = MIB // 16


@attrs.frozen(kw_only=True)
class Finished:
    """The end of a program: by itself with an exit code or by a signal, or from outside, with the cause in `ended_by`.

    `duration` is in seconds. `output_tail` is the end of the output, and `truncated` is true if the output was longer. `left`
    counts processes that not even SIGKILL ended within the time (blocked in the kernel).
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
        """Whether the program ended with exit code 0, and not from outside."""
        return self.ended_by == "exit" and self.exit_code == 0

    def how(self) -> str:
        """Describe the end for a sentence: `exited with code 1`."""
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
    timeout: float,  # noqa: ASYNC109 - the supervisor keeps the time, so that it holds while the worker is stopped
    on_output: OnOutput | None = None,
    on_stdout: OnOutput | None = None,
    limits: Limits = Limits(),
    grace: float = 2.0,
    inputs: Mapping[int, bytes] | None = None,
    files: FileRules | None = None,
    groups: str = "",
) -> Finished:
    """Run a program to its end, with exactly this environment, in a separate session, its standard input empty.

    It has the descriptors 0, 1 and 2, and the descriptors of `inputs`, from which it can read these contents, some thousand bytes
    each. `files` restricts its files by Landlock; None does not. `groups` is the control group in
    which the program gets its own group, with the limits of memory and processes; empty: it gets none.

    `on_output` receives the output as it arrives, up to `limits.output` bytes. With `on_stdout`, standard output goes there
    instead, and does not count for `output_tail`. An exception from either ends the program and is raised here.

    The program is ended after `timeout` seconds: SIGTERM to its group, and after `grace` more seconds SIGKILL to all its
    processes, in its session or not. Cancelling does the same before CancelledError leaves. When the program ends by itself, its
    remaining processes are killed. Raises ProcessError if it cannot be started.
    """
    mark = secrets.token_hex(16)
    request: RunRequest = {
        "argv": list(argv),
        "env": {**env, MARK: mark},
        "cwd": str(absolute(cwd)),
        "timeout": timeout,
        "grace": grace,
        "rlimits": {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits.file_size},
        "memory": limits.memory,
        "processes": limits.processes,
        "free_space": limits.free_space,
        "inputs": dict(inputs or {}),
        "files": files,
        "group": "",
    }
    if groups:
        try:
            request["group"] = cgroups.make(groups, mark, memory=limits.memory, processes=limits.processes)
        except OSError as error:
            raise ProcessError(f"cannot make a control group for {argv[0]}: {error}") from error
    program = _Program(request, ProgramOutput(limits.output, limits.tail, on_output, on_stdout))
    running = asyncio.create_task(program.run(), name=f"run {argv[0]}")
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        program.stopping.set()
        while not running.done():  # a second cancellation waits too
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if running.exception() is not None:
            _log.warning("cancelled program ended with an error", program=argv[0], error=str(running.exception()))
        raise
    finally:
        if request["group"]:
            await asyncio.to_thread(_remove_group, request["group"])


class _Program:
    """A program under its supervisor."""

    def __init__(self, request: RunRequest, output: ProgramOutput) -> None:
        self._request = request
        self._output = output
        self.stopping = asyncio.Event()

    async def run(self) -> Finished:
        """Run it to its end."""
        began = time.monotonic()
        log = Pipe(self._output.log)
        stdout = Pipe(self._output.stdout) if self._output.separate else log
        try:
            supervisor = await FORK_SERVER.start(stdout.theirs, log.theirs)
        finally:
            pumps = [asyncio.create_task(pipe.pump(self._failed)) for pipe in {log, stdout}]
        try:
            result = await self._talk(supervisor)
        finally:
            supervisor.writer.close()
        if result is None or result["left"] or not HAS_PROC:
            await asyncio.to_thread(_end_marked, self._request["env"][MARK])
        _, late = await asyncio.wait(pumps, timeout=_AFTERWARDS)
        for pump in late:  # what cannot be killed holds the pipe
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        return self._finished(result, time.monotonic() - began)

    def _failed(self, error: Exception) -> None:
        self._output.failure = self._output.failure or error
        self.stopping.set()

    async def _talk(self, supervisor: StartedSupervisor) -> RunResult | None:
        """Give the supervisor its request and wait for its result; None if it dies or exceeds the time. It has then ended."""
        reading = asyncio.create_task(supervisor.reader.read())
        stopping = asyncio.create_task(self.stopping.wait())
        last_moments = self._request["grace"] + KILLING + _MARGIN
        try:
            supervisor.writer.write(request_to_bytes(self._request))
            await asyncio.wait(
                [reading, stopping], timeout=self._request["timeout"] + last_moments, return_when="FIRST_COMPLETED"
            )
            if not reading.done() and stopping.done():
                supervisor.writer.write(b"stop")
                await asyncio.wait([reading], timeout=last_moments)
            if not reading.done():  # it does not answer, and it is there: its stream has not ended
                with suppress(ProcessLookupError):
                    os.kill(supervisor.pid, signal.SIGKILL)
                await asyncio.wait([reading], timeout=_AFTERWARDS)
                return None
            return result_from_bytes(reading.result()) if reading.exception() is None and reading.result() else None
        finally:
            for task in (reading, stopping):
                task.cancel()

    def _finished(self, result: RunResult | None, duration: float) -> Finished:
        program = self._request["argv"][0]
        if self._output.failure is not None:
            raise self._output.failure
        if result is None:
            raise ProcessError(f"the supervisor of {program} was lost; its processes were ended")
        if result["error"] is not None:
            raise ProcessError(f"cannot start {program}: {result['error']}")
        if result["left"]:
            _log.error("processes could not be ended", program=program, left=result["left"])
        return Finished(
            exit_code=result["exit_code"],
            signal=result["signal"],
            ended_by=result["ended_by"],
            duration=duration,
            output_tail=self._output.tail,
            truncated=self._output.truncated,
            left=result["left"],
        )


def absolute(path: Path) -> Path:
    """Return the absolute form of a path."""
    return path.absolute()


def _end_marked(mark: str) -> None:
    """Kill every process that has the mark in its environment, until there is none or the time is over."""
    until = time.monotonic() + KILLING
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


def _remove_group(group: str) -> None:
    try:
        cgroups.remove(group)
    except OSError as error:  # the next worker removes it
        _log.warning("control group not removed", group=group, error=str(error))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
