"""Starts programs in a process that has imported them before: a fork of it, with its own session, environment and output.

Importing a service takes more processor time than most tests need otherwise. Tests of starting itself run the interpreter.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

import attrs

from eventlog.embedded.die_with_parent import attached_command
from tests.support import ROOT

WARM = frozenset({"gctd", "graphql_fn", "pantry", "projections", "tests.gctd.cli.up.standins", "tests.support.tracker.fake_work"})
"""The programs that are started as forks."""
PREPARED = (
    *("gctd.cli", "gctd.cli.up.supervisor", "gctd.cli.up.system", "gctd.serve", "gctd.worker.process"),
    *("graphql_fn.cli", "pantry.cli", "pantry.serve", "projections.cli"),
    "tests.support.tracker.fake_work",
)
_LARGEST = 1 << 20
"""Bytes of a request."""
_PR_SET_PDEATHSIG = 1


@attrs.frozen
class Request:
    """A program to run in a directory. `streams`: the descriptors of its standard input, output and error."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    directory: str
    streams: Sequence[int]


class WarmProcess:
    """A started program, with the part of asyncio's Process that tests use."""

    def __init__(self, pid: int, ended: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._writer = writer
        self._end = asyncio.ensure_future(self._until_end(ended))

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return the exit code: negative, the number of the signal that ended it."""
        return await asyncio.shield(self._end)

    async def _until_end(self, ended: asyncio.StreamReader) -> int:
        try:
            status = int.from_bytes(await ended.readexactly(4), "big")
            self.returncode = os.waitstatus_to_exitcode(status)
        finally:
            self._writer.close()
        return self.returncode


class Forked:
    """A started program for code without an event loop, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, answering: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._answering = answering

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            with suppress(BlockingIOError):
                self._end(self._answering.recv(4, socket.MSG_DONTWAIT))
        return self.returncode

    def wait(self) -> int:
        """Return the exit code when it has ended."""
        if self.returncode is None:
            self._end(_exactly(self._answering, 4))
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _end(self, status: bytes) -> None:
        self.returncode = os.waitstatus_to_exitcode(int.from_bytes(status, "big"))
        self._answering.close()


AnyProcess = asyncio.subprocess.Process | WarmProcess
Streams = tuple[int | None, int, int]
"""Descriptors of the standard input (None: there is none), output and error of a program."""


async def start(module: str, *arguments: str, environment: Mapping[str, str], output: IO[bytes]) -> AnyProcess:
    """Run `python -m module arguments` in its own session; it ends with this process at the latest.

    Only the programs of WARM are forks: a module that changes others before it imports them needs a fresh interpreter.
    """
    if module not in WARM:
        return await asyncio.create_subprocess_exec(
            *attached_command([sys.executable, "-m", module, *arguments]),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return await fork(module, *arguments, environment=environment, streams=(None, output.fileno(), output.fileno()))


async def fork(
    module: str, *arguments: str, environment: Mapping[str, str], directory: Path = ROOT, streams: Streams
) -> WarmProcess:
    """Run one of WARM as a fork. Its streams stay open here."""
    ours = _asked(module, arguments, environment, directory, streams)
    ours.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    return WarmProcess(int.from_bytes(await reader.readexactly(8), "big"), reader, writer)


def forked(module: str, *arguments: str, environment: Mapping[str, str], directory: Path, output: IO[bytes]) -> Forked:
    """Run one of WARM as a fork without input."""
    ours = _asked(module, arguments, environment, directory, (None, output.fileno(), output.fileno()))
    return Forked(int.from_bytes(_exactly(ours, 8), "big"), ours)


async def stream(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """A reader of the end of a pipe, and the transport that closes it."""
    reader, pipe = asyncio.StreamReader(), os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport


def run(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    directory: Path = ROOT,
    seconds: float = 60.0,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one of WARM as a fork to its end, and return its output. Its input is `text`, or none.

    Raises TimeoutError, and kills it, after `seconds`.
    """
    with tempfile.TemporaryFile() as input_, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        input_.write((text or "").encode())
        input_.seek(0)
        streams = (None if text is None else input_.fileno(), out.fileno(), err.fileno())
        with _asked(module, arguments, environment, directory, streams) as ours:
            ours.settimeout(seconds)
            pid = int.from_bytes(_exactly(ours, 8), "big")
            try:
                status = int.from_bytes(_exactly(ours, 4), "big")
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess([module, *arguments], code, out.read().decode(), err.read().decode())


def _asked(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], directory: Path, streams: Streams
) -> socket.socket:
    """The socket that answers a request with the pid of the program, and with its status when it has ended."""
    ours, theirs = socket.socketpair()
    with theirs, Path(os.devnull).open("rb") as nothing:
        request = json.dumps([module, list(arguments), dict(environment), str(directory)]).encode()
        rights = array.array("i", [theirs.fileno(), nothing.fileno() if streams[0] is None else streams[0], *streams[1:]])
        _forker().sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    return ours


def _exactly(answering: socket.socket, size: int) -> bytes:
    answer = b""
    while len(answer) < size:
        more = answering.recv(size - len(answer))
        if not more:
            raise ConnectionError("the process that forks has ended")
        answer += more
    return answer


@cache
def _forker() -> socket.socket:
    """The socket of the process that forks, which ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
    with theirs:
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(requests: socket.socket) -> Request | None:
    """Fork for each request, and tell each requester when its program has ended, until no one can ask.

    A fork returns the request that it is for.
    """
    running: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with woken, wake, selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(4096)
                _tell(running)
            if requests not in ready:
                continue
            text, descriptors, _, _ = socket.recv_fds(requests, _LARGEST, 4)
            if not text:
                return None
            answer, *streams = descriptors
            teller = socket.socket(fileno=answer)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for one in (requests, teller, *running.values()):
                    one.close()
                module, arguments, environment, directory = json.loads(text)
                return Request(module, arguments, environment, directory, streams)
            for stream in streams:
                os.close(stream)
            running[pid] = teller
            teller.sendall(pid.to_bytes(8, "big"))


def _tell(running: dict[int, socket.socket]) -> None:
    """Tell the requesters of all programs that have ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as teller, suppress(OSError):  # the test has ended before its program
            teller.sendall(status.to_bytes(4, "big"))


def become(request: Request) -> None:
    """Run the program of a request, in the fork that is for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM):
        raise OSError("prctl")
    for number, source in enumerate(request.streams):
        os.dup2(source, number)
        os.close(source)
    _reopen()
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    if request.environment.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    sys.argv = [request.module, *request.arguments]
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End the process without the end of the interpreter, which takes longer than most commands: it frees every module."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _reopen() -> None:
    """Replace the streams of Python: the old ones keep properties of the descriptors of the forking process."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape")
    out, err = (io.BufferedWriter(io.FileIO(number, "w", closefd=False)) for number in (1, 2))
    sys.stdout = io.TextIOWrapper(out, "utf-8", "surrogateescape", line_buffering=os.isatty(1))
    sys.stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", line_buffering=True)


if __name__ == "__main__":
    for name in PREPARED:
        importlib.import_module(name)
    gc.freeze()
    if (asked := serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        become(asked)
