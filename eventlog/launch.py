"""Becomes another program that the kernel ends together with the process that started it.

Run by path in a bare interpreter (`python -I -S launch.py PARENT_PID PROGRAM ARGUMENT...`), so it imports nothing of ours. It is
a program of its own because the request has to be made in the child, and running Python between fork and exec
(`preexec_fn`) can deadlock where the parent has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for SIGTERM at the parent's death (prctl(2), Linux), then become the command; exit 1 where the parent has gone."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - becoming the program without a shell is the point


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
