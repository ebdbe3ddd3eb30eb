"""Becomes another program that the kernel ends together with the process that started it.

Run by path in a bare interpreter, as `attached` writes it, so it imports no module of ours. It is a separate program because
the request has to be made in the child, and running Python between fork and exec (`preexec_fn`) can deadlock where the parent
has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def attached_command(command: Sequence[str], *, end: signal.Signals = signal.SIGTERM, account: int | None = None) -> list[str]:
    """The command line that runs `command` (its program by full path) so that it is sent `end` when this process ends.

    `account` is the id of user and group that it runs as, where root starts it. Linux only: elsewhere the command runs on.
    Start it from a thread that stays, since it ends with that thread.
    """
    user = "" if account is None else str(account)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(end)), user, *command]


def main(parent: int, end: int, user: str, command: list[str]) -> None:
    """Ask for the signal at the parent's death (prctl(2), Linux), then become the command; exit 1 where the parent has gone."""
    if user:  # first: a change of user takes the request back
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, end, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - becoming the program without a shell is the point


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
