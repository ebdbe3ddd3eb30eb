"""Resources that a process and all its descendants use."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil


class UsageMeter:
    """Measures this process and its descendants. Ended descendants count as soon as their parent has collected them."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._looked = time.monotonic() - max(time.time() - self._process.create_time(), 0.0)
        self._spent = 0.0

    def look(self) -> tuple[float, int]:
        """Return the cores used since the look before, or since the process began (1.5: one and a half), and resident bytes now.

        It takes some milliseconds.
        """
        spent, memory = 0.0, 0
        for process in (self._process, *self._descendants()):
            with suppress(psutil.Error), process.oneshot():  # it may have ended just now
                times = process.cpu_times()
                spent += times.user + times.system + times.children_user + times.children_system
                memory += process.memory_info().rss
        now = time.monotonic()
        passed = max(now - self._looked, 1e-3)
        # A process that its parent did not collect takes its time along. A smaller sum counts as zero use.
        cpu = max(spent - self._spent, 0.0) / passed
        self._looked, self._spent = now, spent
        return round(cpu, 3), memory

    def _descendants(self) -> Sequence[psutil.Process]:
        """Return the descendants. The search reads every process of the machine, so it runs only if this process has a child."""
        if hasattr(os, "waitid"):
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return ()
        return self._process.children(recursive=True)
