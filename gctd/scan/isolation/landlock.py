"""Landlock (landlock(7)): the kernel keeps the signals and the abstract Unix sockets of a program to others in.

A sandbox hides neither kind of socket nor, without a namespace of processes, a process. No file is restricted: that is done by
mounts.
"""

# ruff: noqa: PTH116 - pathlib would double the time that the supervisor takes to start

from __future__ import annotations

import ctypes
import os
import stat
import sys

PR_SET_NO_NEW_PRIVS = 38
CREATE, RESTRICT = 444, 446
"""System calls: landlock_create_ruleset(2) and landlock_restrict_self(2) have the same numbers on all processors."""
SCOPES_SINCE = 6
"""The version of Landlock that knows scopes: Linux 6.12."""
SCOPES = 3
"""LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and LANDLOCK_SCOPE_SIGNAL."""


def encloses() -> bool:
    """Return whether the kernel can keep signals and abstract sockets in."""
    return version() >= SCOPES_SINCE


def version() -> int:
    """The version of Landlock that the kernel has; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def enclose(program: str) -> None:
    """Keep this process and all that it starts from signals and abstract sockets to others (landlock(7)), if the kernel can.

    That takes away the rights of set-user-ID programs, so a sandbox that is one goes without.
    """
    if not encloses() or _is_set_user_id(program):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = (ctypes.c_uint64 * 3)(0, 0, SCOPES)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    rules = libc.syscall(ctypes.c_long(CREATE), attributes, size, ctypes.c_uint32(0))
    if (
        rules < 0
        or libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        or libc.syscall(ctypes.c_long(RESTRICT), ctypes.c_int(rules), ctypes.c_uint32(0))
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock")
    os.close(rules)


def _is_set_user_id(program: str) -> bool:
    try:
        return os.getuid() != 0 and bool(os.stat(program).st_mode & stat.S_ISUID)
    except OSError:  # a name that is looked up on the PATH
        return False
