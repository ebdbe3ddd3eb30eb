"""Landlock (landlock(7)): the kernel keeps signals and abstract Unix sockets of a program to others in, and on request files.

A sandbox of mounts hides neither kind of socket nor, without a namespace of processes, a process. Rules for files are for hosts
that allow no sandbox of mounts.
"""

# ruff: noqa: PTH116 - pathlib would double the time that the fork server takes to start

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gctd.scan.isolation.messages import FileRules

PR_SET_NO_NEW_PRIVS = 38
CREATE, ADD, RESTRICT = 444, 445, 446
"""System calls: landlock_create_ruleset(2) and the two after it have the same numbers on all processors."""
SCOPES_SINCE = 6
"""The version of Landlock that knows scopes: Linux 6.12."""
SCOPES = 3
"""LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and LANDLOCK_SCOPE_SIGNAL."""
FILES_SINCE = 3
"""The version that can restrict every change of a file, also truncate(2): Linux 6.2."""

_BENEATH = 1
_READ = 0b1101
"""To execute and read files, to list directories."""
_EVERY = {3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""All rights on files by version; the newest one adds ioctl(2) on devices."""
_OF_FILES = 0b1100_0000_0000_0111
"""Rights that a rule may give on a file: execute, write, read, truncate, ioctl."""
_CAPABILITY_VERSION = 0x20080522
_MAKE_DEVICES = (1 << 6) | (1 << 11)


def encloses() -> bool:
    """Return whether the kernel can keep signals and abstract sockets in."""
    return version() >= SCOPES_SINCE


def restricts_files() -> bool:
    """Return whether the kernel can restrict files."""
    return version() >= FILES_SINCE


def version() -> int:
    """The version of Landlock that the kernel has; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def enclose(program: str, files: FileRules | None = None) -> None:
    """Restrict this process and all that it starts, as far as the kernel can: signals and abstract sockets to others, and files.

    With `files` only the named places can be read, and only the places to write can be changed; missing ones are left out. All
    capabilities are then given up. The restriction takes away the rights of set-user-ID programs, so a sandbox that is one goes
    without. Raises OSError, also if the kernel cannot restrict files.
    """
    known = version()
    scopes = SCOPES if known >= SCOPES_SINCE else 0
    if files is not None and known < FILES_SINCE:
        raise OSError(0, "the kernel cannot restrict files", "landlock")
    if _is_set_user_id(program) or not (scopes or files is not None):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    rights = 0 if files is None else _EVERY.get(known, 0xFFFF)
    attributes = (ctypes.c_uint64 * 3)(rights, 0, scopes)
    size = ctypes.c_size_t(ctypes.sizeof(attributes) if scopes else 8)  # older kernels do not know the later fields
    rules = libc.syscall(ctypes.c_long(CREATE), attributes, size, ctypes.c_uint32(0))
    if rules < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock")
    if files is not None:
        for places, given in ((files["read"], _READ), (files["write"], rights & ~_MAKE_DEVICES)):
            for place in places:
                _permit(libc, rules, place, given & rights)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        ctypes.c_long(RESTRICT), ctypes.c_int(rules), ctypes.c_uint32(0)
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock")
    os.close(rules)
    if files is not None:
        _drop_capabilities(libc)


def _permit(libc: ctypes.CDLL, rules: int, place: str, rights: int) -> None:
    try:
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(opened).st_mode):
        rights &= _OF_FILES
    rule = struct.pack("=Qi", rights, opened)
    failed = libc.syscall(ctypes.c_long(ADD), ctypes.c_int(rules), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0))
    os.close(opened)
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"landlock {place}")


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give the rights of root up: with CAP_SYS_ADMIN the environment of another process can be read past Landlock."""
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "capset")


def _is_set_user_id(program: str) -> bool:
    try:
        return os.getuid() != 0 and bool(os.stat(program).st_mode & stat.S_ISUID)
    except OSError:  # a name that is looked up on the PATH
        return False
