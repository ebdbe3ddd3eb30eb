"""Running one of the programs as a warm process (`warm`), on pipes or on a terminal, and waiting for its output."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from tests.support import ROOT
from tests.support.programs import warm
from tests.support.programs.documents import misfits

LIMIT = 60.0
"""Seconds that a run may take."""


@attrs.frozen
class Result:
    """The exit code and the output of a run. On a terminal both streams are in `out`."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        """The document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error in the JSON document on standard error, which holds nothing else."""
        document = json.loads(self.err)
        assert list(document) == ["error"]
        error: dict[str, str] = document["error"]
        return error

    @property
    def rows(self) -> list[list[str]]:
        """The lines on standard output, split at tabs."""
        return [line.split("\t") for line in self.out.splitlines()]


class Run:
    """A run under way."""

    def __init__(self, process: warm.WarmProcess, typing: int | None = None) -> None:
        self._process = process
        self._typing = typing
        self.out = bytearray()
        self.err = bytearray()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def type(self, text: str) -> None:
        """Write to its standard input."""
        assert self._typing is not None, "a run that is `typed` to has one"
        with os.fdopen(self._typing, "wb", closefd=False) as writing:
            await asyncio.to_thread(writing.write, text.encode())
            await asyncio.to_thread(writing.flush)

    def end_input(self) -> None:
        """End its standard input, if it has one."""
        if self._typing is not None:
            os.close(self._typing)
            self._typing = None

    async def until(self, text: str) -> None:
        """Wait until a text was written, to either stream."""
        wanted = text.encode()
        async with asyncio.timeout(LIMIT):
            while wanted not in self.out and wanted not in self.err:
                assert self._process.returncode is None, f"ended without {text!r}: {self.out!r} {self.err!r}"
                await asyncio.sleep(0.005)

    async def result(self) -> Result:
        """How it ended."""
        async with asyncio.timeout(LIMIT):
            code = await self._process.wait()
            await self._read
        return Result(code, self.out.decode(), self.err.decode())

    _read: asyncio.Future[Any]

    def reading(self, future: asyncio.Future[Any]) -> None:
        """Set the future that ends when everything is read."""
        self._read = future


def environment(url: str | None, home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A bare environment in which the program finds its server."""
    bare = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "PYTHONWARNINGS": "error"}
    return bare | ({} if url is None else {"GCTD_URL": url}) | dict(more or {})


@asynccontextmanager
async def running(
    *arguments: str, url: str | None, home: Path, env: Mapping[str, str] | None = None, program: str = "gctd", typed: bool = False
) -> AsyncIterator[Run]:
    """A program with these arguments, standard output and error on pipes; killed at the end if it still runs.

    `typed`: its standard input is a pipe that `Run.type` writes to, else there is none.
    """
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    their_input, typing = os.pipe() if typed else (None, None)
    theirs = (their_input, their_out, their_err)
    try:
        process = await warm.fork(program, *arguments, environment=environment(url, home, env), directory=home, streams=theirs)
    finally:
        for end in theirs:
            if end is not None:
                os.close(end)
    run = Run(process, typing)
    run.reading(asyncio.gather(_drain(out, run.out), _drain(err, run.err)))
    try:
        yield run
    finally:
        process.kill()
        run.end_input()
        await run.result()


async def gctd(*arguments: str, url: str | None, home: Path, env: Mapping[str, str] | None = None) -> Result:
    """Run `gctd`, and return its exit code and output."""
    async with running(*arguments, url=url, home=home, env=env) as run:
        return await run.result()


async def pantry(*arguments: str, home: Path, env: Mapping[str, str], typed: str | None = None) -> Result:
    """How `pantry` with these arguments and this standard input ends; its documents fit their schemas."""
    async with running(*arguments, url=None, home=home, env=env, program="pantry", typed=typed is not None) as run:
        if typed is not None:
            await run.type(typed)
            run.end_input()
        result = await run.result()
    assert misfits("pantry", arguments, result.out) == []
    return result


@asynccontextmanager
async def running_on_terminal(
    *arguments: str,
    url: str | None,
    home: Path,
    env: Mapping[str, str] | None = None,
    columns: int = 120,
    program: str = "gctd",
) -> AsyncIterator[Run]:
    """Run a program with these arguments on a terminal of the given width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    try:
        streams = (theirs, theirs, theirs)
        process = await warm.fork(program, *arguments, environment=environment(url, home, env), directory=home, streams=streams)
    finally:
        os.close(theirs)
    run = Run(process)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the last process on the terminal is gone
            chunk = b""
        run.out.extend(chunk)
        if not chunk:
            loop.remove_reader(ours)
            if not ended.done():
                ended.set_result(None)

    loop.add_reader(ours, read)
    run.reading(ended)
    try:
        yield run
    finally:
        process.kill()
        await run.result()
        os.close(ours)


async def gctd_on_terminal(
    *arguments: str, url: str | None, home: Path, env: Mapping[str, str] | None = None, columns: int = 120
) -> Result:
    """Run `gctd` on a terminal, and return its exit code and output."""
    async with running_on_terminal(*arguments, url=url, home=home, env=env, columns=columns) as run:
        return await run.result()


async def _drain(descriptor: int, into: bytearray) -> None:
    stream, transport = await warm.stream(descriptor)
    while chunk := await stream.read(65536):
        into.extend(chunk)
    transport.close()
