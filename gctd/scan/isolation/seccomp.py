"""The system calls that are refused to code of repositories, as a filter for seccomp(2).

The list has no calls that Go programs and their tests use. It has the calls that change mounts, namespaces, keys, clocks or other
processes, that load code into the kernel, or that take memory which no limit of the supervisor sees. Refused calls give EPERM.
Calls that programs can do without, as on older kernels, give ENOSYS.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into a terminal."""

_COMMON = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
}
_REFUSED = {
    "x86_64": {
        **_COMMON,
        "shmget": 29,
        "ptrace": 101,
        "syslog": 103,
        "pivot_root": 155,
        "adjtimex": 159,
        "chroot": 161,
        "acct": 163,
        "settimeofday": 164,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "clock_settime": 227,
        "mbind": 237,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "migrate_pages": 256,
        "unshare": 272,
        "vmsplice": 278,
        "move_pages": 279,
        "perf_event_open": 298,
        "fanotify_init": 300,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "clock_adjtime": 305,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "finit_module": 313,
        "memfd_create": 319,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        **_COMMON,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "chroot": 51,
        "quotactl": 60,
        "vmsplice": 75,
        "acct": 89,
        "unshare": 97,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "clock_settime": 112,
        "syslog": 116,
        "ptrace": 117,
        "reboot": 142,
        "settimeofday": 170,
        "adjtimex": 171,
        "shmget": 194,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "swapon": 224,
        "swapoff": 225,
        "mbind": 235,
        "migrate_pages": 238,
        "move_pages": 239,
        "perf_event_open": 241,
        "fanotify_init": 262,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "clock_adjtime": 266,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "finit_module": 273,
        "memfd_create": 279,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
    },
}
_UNKNOWN = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_IOCTL = {"x86_64": 16, "aarch64": 29}


def refused(machine: str = platform.machine()) -> Mapping[str, int]:
    """Return names and numbers of the calls that fail with EPERM on this machine; empty for an unknown machine."""
    return _REFUSED.get(machine, {})


def program(machine: str = platform.machine()) -> bytes:
    """Return the filter, a program in classic BPF; empty for an unknown machine."""
    if machine not in _REFUSED:
        return b""
    code = [
        _load(_ARCHITECTURE),
        *_unless_equal(_ARCHITECTURES[machine], _KILL),
        _load(_NUMBER),
        *(_if(_AT_LEAST, _X32, _ERRNO | errno.ENOSYS) if machine == "x86_64" else []),
    ]
    for number in _UNKNOWN.values():
        code += _if(_EQUAL, number, _ERRNO | errno.ENOSYS)
    for number in _REFUSED[machine].values():
        code += _if(_EQUAL, number, _ERRNO | errno.EPERM)
    namespaces = [_load(_FIRST), *_if(_ANY_BIT, _NEW_NAMESPACES, _ERRNO | errno.EPERM), _step(_RETURN, _ALLOW)]
    terminal = [_load(_SECOND)]
    for request in _TERMINAL_INPUT:
        terminal += _if(_EQUAL, request, _ERRNO | errno.EPERM)
    code += [_step(_EQUAL, _CLONE[machine], 0, len(namespaces)), *namespaces]
    code += [_step(_EQUAL, _IOCTL[machine], 0, len(terminal)), *terminal]
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _if(test: int, value: int, result: int) -> list[bytes]:
    return [_step(test, value, 0, 1), _step(_RETURN, result)]


def _unless_equal(value: int, result: int) -> list[bytes]:
    return [_step(_EQUAL, value, 1, 0), _step(_RETURN, result)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """An instruction (struct sock_filter)."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
