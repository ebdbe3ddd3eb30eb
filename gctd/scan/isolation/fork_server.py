"""The fork server of this process: it starts supervisors in a millisecond, because it has imported their modules before.

The fork server (`gctd.scan.isolation.supervisor.serve`) is a small process with one thread. It starts with the first program, and
ends with this process, even by SIGKILL. If it is lost or does not answer, another one takes its place.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from gctd.scan.errors import ProcessError
from gctd.scan.isolation.messages import DIGITS

_ROOT = str(Path(__file__).parents[3])
_SERVE = "import sys; sys.path.insert(0, sys.argv[1]); from gctd.scan.isolation.supervisor import serve; serve(int(sys.argv[2]))"
"""The fork server in an interpreter without site packages, which takes less time to start."""
_ANSWER = 10.0
"""Seconds after which a fork server that does not answer is replaced."""
_ENDING = 1.0
"""Seconds after which a fork server that does not end is killed."""


@attrs.frozen
class StartedSupervisor:
    """A started supervisor: its process number, and the stream to it. The end of the stream is the end of the process."""

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class ForkServer:
    """Starts supervisors, from any thread and event loop of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    async def start(self, stdout: int, stderr: int) -> StartedSupervisor:
        """Start a supervisor with these descriptors for its output. Raises ProcessError."""
        for _ in range(2):
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    used = self._ask([theirs.fileno(), stdout, stderr])
                except OSError as error:
                    ours.close()
                    raise ProcessError(f"cannot start a supervisor of programs: {error.strerror}") from error
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            try:
                async with asyncio.timeout(_ANSWER):
                    pid = int(await reader.readexactly(DIGITS), 16)
                    reason = "" if pid else (await reader.read()).decode()
            except (asyncio.IncompleteReadError, TimeoutError, OSError):
                writer.close()
                self.end(used)
            else:
                if pid:
                    return StartedSupervisor(pid, reader, writer)
                writer.close()
                raise ProcessError(f"cannot start a supervisor of programs: fork: {reason}")
        raise ProcessError("cannot start a supervisor of programs: its fork server does not answer")

    def end(self, which: subprocess.Popen[bytes] | None = None) -> None:
        """End the fork server; with `which`, only if it is this one. It does not affect supervisors."""
        with self._lock:
            if self._running is not None and which in (None, self._running[0]):
                self._end(*self._running)

    def _end(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._running = None
        channel.close()
        try:
            process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _ask(self, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
        """Hand these descriptors over to the fork server, which is started if there is none. Raises OSError."""
        with self._lock:
            if self._running is not None:
                process, channel = self._running
                with suppress(OSError):  # it has ended, or its queue is full because it is stopped
                    self._hand_over(channel, descriptors)
                    return process
                self._end(process, channel)
            process, channel = self._running = self._open()
            with suppress(ConnectionError):  # it has ended already: the stream to the supervisor ends without an answer
                self._hand_over(channel, descriptors)
            return process

    @staticmethod
    def _hand_over(channel: socket.socket, descriptors: Sequence[int]) -> None:
        channel.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])

    @staticmethod
    def _open() -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _SERVE, _ROOT, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    env={},
                    cwd=os.sep,
                )
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)  # noqa: FBT003 - it takes no keyword
        return process, ours


FORK_SERVER = ForkServer()
atexit.register(FORK_SERVER.end)
