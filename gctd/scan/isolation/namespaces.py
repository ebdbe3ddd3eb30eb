"""A program in private Linux namespaces: the function of bubblewrap, for hosts without it.

Run as a program, `python -I -S namespaces.py <options> -- <program> <arguments>`. The options are a few of bwrap(1), in the
order in which they take effect. See `gctd.scan.isolation.sandbox`.

A run has three processes:

- The started process ends as the program ends.
- The first process of the new process namespace starts the program. It ends with it, and so lets the kernel end all
  processes that the program started.
- The program.
"""

# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH120, PTH123, PTH211 - pathlib would double the time that it takes to start
# ruff: noqa: S108 - /tmp is a place for mounts here, not for files

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FAILED = 125
"""Exit code if the namespaces cannot be made."""
NOT_FOUND = 127

_NEW = {"mount": 0x00020000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000, "pid": 0x20000000}
_NEW_NETWORK = 0x40000000
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _SLAVE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x80000
_DETACH = 0x2
_ATTRIBUTES = {"ro": 0x1, "nosuid": 0x2, "nodev": 0x4}
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION = 0x20080522
_AF_INET, _SOCK_DGRAM, _SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 2, 2, 0x8914, 0x1, 0x40
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_OPERANDS = dict.fromkeys(("--bind", "--ro-bind", "--ro-bind-data", "--symlink"), 2)
_OPERANDS |= dict.fromkeys(("--proc", "--dev", "--remount-ro", "--chdir", "--seccomp"), 1)
_OPERANDS |= {"--unshare-net": 0}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_OLD, _NEW_ROOT = "/oldroot", "/newroot"

_libc = ctypes.CDLL(None, use_errno=True)


class _Options:
    """The parsed options: the mounts (each an option and its operands), the working directory, whether there is a network."""

    def __init__(self, arguments: list[str]) -> None:
        self.mounts: list[tuple[str, list[str]]] = []
        self.directory = "/"
        self.network = True
        self.filter = b""
        while (name := arguments.pop(0)) != "--":
            operands = [arguments.pop(0) for _ in range(_OPERANDS[name])]
            if name == "--chdir":
                self.directory = operands[0]
            elif name == "--unshare-net":
                self.network = False
            elif name == "--seccomp":
                self.filter = _content(int(operands[0]))
            else:
                self.mounts.append((name, operands))
        self.program = arguments
        with open("/proc/self/environ", "rb") as file:  # os.environ may have one more: Python adds LC_CTYPE at times (PEP 538)
            pairs = [variable.partition(b"=") for variable in file.read().split(b"\0")]
        self.environment = {name: value for name, sign, value in pairs if sign}


def _call(what: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _call(f"mount {target}", _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))


def _restrict(target: str, *names: str, recursive: bool = True) -> None:
    """Set these attributes of a mount and of the mounts below it (mount_setattr(2), Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(sum(_ATTRIBUTES[name] for name in names), 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    arguments = (ctypes.c_int(_AT_FDCWD), os.fsencode(target), ctypes.c_uint(flags), attributes, ctypes.c_size_t(32))
    _call(f"mount_setattr {target}", _libc.syscall(ctypes.c_long(_MOUNT_SETATTR), *arguments))


def _pivot(new: str, old: str) -> None:
    _call(f"pivot_root {new}", _libc.pivot_root(os.fsencode(new), os.fsencode(old)))


def _detach(target: str) -> None:
    _call(f"umount {target}", _libc.umount2(os.fsencode(target), _DETACH))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _separate(options: _Options) -> None:
    """Enter the namespaces. A root user outside is `nobody` inside. Only the next child enters the process namespace."""
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _libc.unshare(sum(_NEW.values()) | (0 if options.network else _NEW_NETWORK)))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid or 65534} {uid} 1")
    _write("/proc/self/gid_map", f"{gid or 65534} {gid} 1")
    _call("sethostname", _libc.sethostname(b"sandbox", 7))


def _build_root(options: _Options) -> None:
    """Mount a private root with the named files only."""
    _mount("none", "/", None, _REC | _SLAVE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=755")
    os.mkdir("/tmp" + _NEW_ROOT)
    os.mkdir("/tmp" + _OLD)
    _pivot("/tmp", "/tmp" + _OLD)
    os.chdir("/")
    _mount(_NEW_ROOT, _NEW_ROOT, None, _BIND)
    for name, operands in options.mounts:
        _place(name, operands)
    _detach(_OLD)
    os.chdir(_NEW_ROOT)
    _pivot(".", ".")
    _detach(".")


def _place(name: str, operands: list[str]) -> None:
    target = _NEW_ROOT + operands[-1]
    if name == "--ro-bind-data":
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(target, _content(int(operands[0])).decode())
    elif name in {"--bind", "--ro-bind"}:
        _bind(operands[0], target)
        _restrict(target, "nosuid", "nodev", *(["ro"] if name == "--ro-bind" else []))
    elif name == "--symlink":
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(operands[0], target)
    elif name == "--remount-ro":
        _restrict(target, "ro", recursive=False)
    else:
        os.makedirs(target, exist_ok=True)
        {"--proc": _make_proc, "--dev": _make_dev}[name](target)


def _bind(source: str, target: str) -> None:
    source = _OLD + source
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(target, "")
    _mount(source, target, None, _BIND | _REC)


def _make_proc(target: str) -> None:
    """The processes of the namespace."""
    _mount("proc", target, "proc", _NOSUID | _NODEV | _NOEXEC)
    if os.path.exists(f"{target}/sys/user/max_user_namespaces"):
        _write(f"{target}/sys/user/max_user_namespaces", "0")  # no namespaces, and no privileges, in there


def _make_dev(target: str) -> None:
    _mount("tmpfs", target, "tmpfs", _NOSUID, "mode=755")
    for name in _DEVICES:
        if os.path.exists(f"{_OLD}/dev/{name}"):
            _bind(f"/dev/{name}", f"{target}/{name}")
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{number}", f"{target}/{name}")
    os.symlink("/proc/self/fd", f"{target}/fd")
    os.symlink("pts/ptmx", f"{target}/ptmx")
    os.mkdir(f"{target}/pts")
    os.mkdir(f"{target}/shm")
    _mount("devpts", f"{target}/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", f"{target}/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777,size=256m")


def _raise_loopback() -> None:
    """A new network has a loopback interface, which is down (netdevice(7)). The modules for this are out of reach by now."""
    control = _libc.socket(_AF_INET, _SOCK_DGRAM, 0)
    request = b"lo".ljust(16, b"\0") + (_IFF_UP | _IFF_RUNNING).to_bytes(2, sys.byteorder) + bytes(22)
    _call("ioctl lo", _libc.ioctl(control, ctypes.c_ulong(_SIOCSIFFLAGS), request))
    os.close(control)


def _drop_capabilities() -> None:
    _call("prctl", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _call("capset", _libc.capset(header, nothing))


def _refuse_calls(filter_: bytes) -> None:
    """Apply a filter to the system calls of this process and of all that it starts (seccomp(2))."""
    code = ctypes.create_string_buffer(filter_, len(filter_))
    described = struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(code))
    _call("seccomp", _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0))


def _content(descriptor: int) -> bytes:
    """All that can be read from a descriptor, which is closed."""
    with open(descriptor, "rb") as file:
        return file.read()


def _die_with_parent() -> None:
    _call("prctl", _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def _first(options: _Options, status: int) -> None:
    """The first process of the namespace: starts the program, waits for it and for the orphans that it leaves."""
    _die_with_parent()
    _build_root(options)
    if not options.network:
        _raise_loopback()
    os.chdir(options.directory)
    _drop_capabilities()
    program = os.fork()
    if program == 0:
        for number in (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, 1 << 20)
        if options.filter:
            _refuse_calls(options.filter)
        _execute(options)
    while True:
        ended, how = os.waitpid(-1, 0)
        if ended == program:
            os.write(status, str(how).encode())
            os._exit(0)


def _execute(options: _Options) -> None:
    name, environment = options.program[0], options.environment
    places = [""] if "/" in name else [f"{place}/" for place in os.fsdecode(environment.get(b"PATH", b"")).split(":")]
    why = "not found"
    for place in places:
        try:
            os.execve(place + name, options.program, environment)  # noqa: S606 - that is what it is for
        except FileNotFoundError:
            continue
        except OSError as error:
            why = os.strerror(error.errno or 0)
    _give_up(f"{name}: {why}", NOT_FOUND)


def _give_up(why: str, code: int) -> NoReturn:
    os.write(2, f"sandbox: {why}\n".encode(errors="replace"))
    os._exit(code)


def _end_as(how: int) -> None:
    """End as the program did."""
    if os.WIFSIGNALED(how):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.WTERMSIG(how) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(how), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(how))
    os._exit(os.WEXITSTATUS(how))


def _main() -> None:
    options = _Options(sys.argv[1:])
    for number in _IGNORED:  # they go to the whole group, and are for the program
        signal.signal(number, signal.SIG_IGN)
    ours, theirs = os.pipe()
    try:
        _separate(options)
        first = os.fork()
        if first == 0:
            os.close(ours)
            _first(options, theirs)
        os.close(theirs)
        _die_with_parent()
    except OSError as error:
        _give_up(f"{error.filename or 'namespaces'}: {error.strerror}", FAILED)
    how = os.read(ours, 16)
    os.waitpid(first, 0)
    if not how:
        os._exit(FAILED)
    _end_as(int(how))


if __name__ == "__main__":
    _main()
