"""A supervisor in a separate process: its descendants, its ready file, and its output."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

from tests.support import ROOT
from tests.support.programs import warm
from tests.support.waiting import wait_until


class Supervised:
    """The running supervisor; `ready` is the content of its ready file."""

    def __init__(self, process: subprocess.Popen[bytes] | warm.Forked, output: Path, ready_file: Path) -> None:
        self.process = process
        self.ready_file = ready_file
        self._output = output

    @property
    def said(self) -> str:
        """Return the output on its console up to now."""
        return self._output.read_text(encoding="utf-8")

    async def ready(self, within: float = 60) -> Any:
        """The content of the ready file, as soon as it is there."""
        await wait_until(lambda: self.ready_file.exists() or self.process.poll() is not None, within)
        assert self.ready_file.exists(), self.said
        return json.loads(self.ready_file.read_bytes())

    def descendants(self) -> dict[str, psutil.Process]:
        """Its processes that run, by the part of the command line that names them."""
        found: dict[str, psutil.Process] = {}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended during the look, and a zombie has no command line
                found[" ".join(child.cmdline())] = child
        return found

    def find(self, part: str) -> psutil.Process:
        """The one descendant whose command line has this part."""
        [found] = [child for line, child in self.descendants().items() if part in line]
        return found

    async def end(self, *signals: signal.Signals, within: float = 30) -> int:
        """Send it signals, one by one; its exit code."""
        for number in signals:
            self.process.send_signal(number)
        await wait_until(lambda: self.process.poll() is not None, within)
        assert self.process.returncode is not None
        return self.process.returncode


@contextmanager
def supervised(
    command: Sequence[str], output: Path, environment: Mapping[str, str], directory: Path = ROOT
) -> Iterator[Supervised]:
    """Run a supervisor with this console and a `ready.json` next to it. At the end no process of it remains."""
    with output.open("wb") as file:
        process = _started(command, environment, directory, file)
    started = Supervised(process, output, output.with_name("ready.json"))
    try:
        yield started
    finally:
        left = [] if process.poll() is not None else [*psutil.Process(process.pid).children(recursive=True)]
        process.kill()
        process.wait()
        for child in left:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def _started(
    command: Sequence[str], environment: Mapping[str, str], directory: Path, output: IO[bytes]
) -> subprocess.Popen[bytes] | warm.Forked:
    """Start the command, as a fork if it is a module whose imports can be made before."""
    if command[:2] == [sys.executable, "-m"] and command[2] in warm.WARM:
        return warm.forked(command[2], *command[3:], environment=environment, directory=directory, output=output)
    return subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def alive(processes: Sequence[psutil.Process]) -> list[str]:
    """Return the process ids of the processes that still run."""
    found: list[str] = []
    for each in processes:
        with suppress(psutil.NoSuchProcess):  # it may end between two looks
            if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                found.append(str(each.pid))
    return found
