"""The output of a program: through pipes, to listeners, bounded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

OnOutput = Callable[[bytes], None]
OnLog = Callable[[str], None]
"""Called with a line of a log, without its line break."""

_CHUNK = 64 * 1024
_LONGEST_LINE = 64 * 1024


def no_log(_: str) -> None:
    """A log without readers."""


class Lines:
    """Chunks of bytes to lines of text."""

    def __init__(self, take: OnLog) -> None:
        self._take = take
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take a chunk, and hand on the lines that it completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))
        if len(self._rest) > _LONGEST_LINE:
            self.end()

    def end(self) -> None:
        """Hand on the rest, which has no line break."""
        if self._rest:
            self._take(self._rest.decode(errors="replace"))
            self._rest = b""


class ProgramOutput:
    """The output of a program: at most `handed_on` bytes go to the listeners, the last `tail` ones are kept."""

    def __init__(self, handed_on: int, tail: int, on_output: OnOutput | None, on_stdout: OnOutput | None) -> None:
        self._most = handed_on
        self._longest_tail = tail
        self._on_output = on_output
        self._on_stdout = on_stdout
        self._tail = bytearray()
        self._logged = 0
        self._handed_on = 0
        self.failure: Exception | None = None

    @property
    def separate(self) -> bool:
        """Whether standard output goes another way than standard error."""
        return self._on_stdout is not None

    @property
    def tail(self) -> str:
        return bytes(self._tail).decode(errors="replace")

    @property
    def truncated(self) -> bool:
        return self._logged > len(self._tail) or self._handed_on > self._most

    def log(self, chunk: bytes) -> None:
        """Take what belongs to the log."""
        self._logged += len(chunk)
        self._tail += chunk
        del self._tail[: max(0, len(self._tail) - self._longest_tail)]
        self._hand_on(chunk, self._on_output)

    def stdout(self, chunk: bytes) -> None:
        """Take what belongs to `on_stdout`."""
        self._hand_on(chunk, self._on_stdout)

    def _hand_on(self, chunk: bytes, to: OnOutput | None) -> None:
        allowed = chunk[: max(0, self._most - self._handed_on)]
        self._handed_on += len(chunk)
        if to is not None and allowed and self.failure is None:
            to(allowed)


class Pipe:
    """A pipe from the program to one of its listeners.

    The event loop only watches it. A transport of uvloop closes the descriptor twice, and the second time it may be one that
    another thread has just opened (https://github.com/MagicStack/uvloop/issues/763).
    """

    def __init__(self, take: OnOutput) -> None:
        self._take = take
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)

    async def pump(self, failed: Callable[[Exception], None]) -> None:
        """Hand on the output until all its ends are closed. This closes the worker's copy of the program's end."""
        os.close(self.theirs)
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._ours, ready.set)
        try:
            while True:
                await ready.wait()
                ready.clear()
                with suppress(BlockingIOError):
                    if not (chunk := os.read(self._ours, _CHUNK)):
                        return
                    self._hand_on(chunk, failed)
        finally:
            loop.remove_reader(self._ours)
            os.close(self._ours)

    def _hand_on(self, chunk: bytes, failed: Callable[[Exception], None]) -> None:
        try:
            self._take(chunk)
        except Exception as error:  # noqa: BLE001 - whatever the caller's function raises is raised by run()
            failed(error)
