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
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import IO

import attrs

from eventlog.embedded.die_with_parent import attached
from tests.support import ROOT

WARM = frozenset({"gctd", "pantry", "tests.support.tracker.fake_work"})
"""The programs that are started as forks."""
PREPARED = ("gctd.cli", "gctd.serve", "gctd.worker.process", "pantry.cli", "pantry.serve", "tests.support.tracker.fake_work")
_LARGEST = 1 << 20
"""Bytes of a request."""
_PR_SET_PDEATHSIG = 1


@attrs.frozen
class Request:
    """A program to run. `output`: the descriptor of its standard output and error."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    output: int


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


AnyProcess = asyncio.subprocess.Process | WarmProcess


async def start(module: str, *arguments: str, environment: Mapping[str, str], output: IO[bytes]) -> AnyProcess:
    """Run `python -m module arguments` in its own session; it ends with this process at the latest.

    Only the programs of WARM are forks: a module that changes others before it imports them needs a fresh interpreter.
    """
    if module not in WARM:
        return await asyncio.create_subprocess_exec(
            *attached([sys.executable, "-m", module, *arguments]),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    ours, theirs = socket.socketpair()
    with theirs:
        request = json.dumps([module, arguments, dict(environment)]).encode()
        rights = array.array("i", [theirs.fileno(), output.fileno()])
        _forker().sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    ours.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    return WarmProcess(int.from_bytes(await reader.readexactly(8), "big"), reader, writer)


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
            text, descriptors, _, _ = socket.recv_fds(requests, _LARGEST, 2)
            if not text:
                return None
            answer, output = descriptors
            teller = socket.socket(fileno=answer)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for one in (requests, teller, *running.values()):
                    one.close()
                module, arguments, environment = json.loads(text)
                return Request(module, arguments, environment, output)
            os.close(output)
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
    for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, request.output), (2, request.output)):
        os.dup2(source, number)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    sys.argv = [request.module, *request.arguments]
    runpy.run_module(request.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in PREPARED:
        importlib.import_module(name)
    gc.freeze()
    if (asked := serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        become(asked)
