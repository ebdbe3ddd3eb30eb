"""Looking at processes from outside."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from os import getpid

import psutil

_numbers = count(1)


def unused_sleep() -> str:
    """An argument for `sleep`, some hours, that no other test on this machine uses: by it the process is found again."""
    return f"{40_000 + next(_numbers)}.{getpid()}"


def sleeping(marker: str) -> list[int]:
    """The ids of the living processes `sleep <marker>`."""
    found: list[int] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["sleep", marker] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
