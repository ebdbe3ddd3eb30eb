"""Looking at processes from outside."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil

from tests.support.waiting import wait_until

_numbers = count(1)


def unused_sleep() -> str:
    """An argument for `sleep`, some hours, that no other test on this machine uses: by it the process is found again."""
    return f"{40_000 + next(_numbers)}.{os.getpid()}"


def sleeping(marker: str) -> list[int]:
    """The ids of the living processes `sleep <marker>`."""
    found: list[int] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["sleep", marker] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


async def stand_still(pid: int) -> None:
    """Pause a process, and return when it is paused: its threads continue for a moment after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)

    def stands() -> bool:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()]
        return set(states) == {"T"}

    await wait_until(stands, timeout=10, every=0.001)
