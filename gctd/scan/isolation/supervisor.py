"""The supervisor of one program and of all processes that the program starts: it ends them all, and does not outlive them.

`gctd.scan.isolation.process` runs it as `python -I -S supervisor.py <descriptor>`. Every program of a scan waits until the
supervisor has started, so it imports little and nothing of this project.

The descriptor is one end of a Unix stream socket; the worker holds the other end. The request arrives there
(`gctd.scan.isolation.messages`): eight hex digits, its length in bytes, and that many bytes of marshal. Anything that follows
means stop. If the other end is closed, because the worker is gone, the supervisor ends everything at once. It sends back the
result: its values as text, in their order, separated by NULs.

The program gets its own session. The supervisor is a child subreaper (prctl(2)): a process that left the program's group and
session, or whose parent ended, becomes a child of the supervisor, so each process that the program started can be found.
"""

# ruff: noqa: PTH112, PTH123, PTH208 - pathlib would double the time that it takes to start

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gctd.scan.isolation.messages import EndedBy, Order, Report

PR_SET_CHILD_SUBREAPER = 36
KILLING = 2.5
"""Seconds for which processes are sent SIGKILL before the warden gives up on those that remain (blocked in the kernel)."""
EVERY = 1.0
"""Seconds between two looks at memory, number of processes and disk."""
COUNTING = 0.1
"""Seconds between two looks at how many processes the host has: more than these can start in a second."""
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
HAS_PROC = os.path.isdir("/proc/self")
PAGE = os.sysconf("SC_PAGE_SIZE")


class _Process:
    """A process as /proc shows it: numbers as in proc_pid_stat(5)."""

    def __init__(self, pid: int, owner: int, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.owner = owner
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.threads = int(fields[17])
        self.resident = int(fields[21]) * PAGE


class _Warden:
    def __init__(self, control: int, order: Order) -> None:
        self._control = control
        self._order = order
        self._program = 0
        self._status: int | None = None
        self._ended_by: EndedBy = "exit"
        self._deadline = time.monotonic() + order["timeout"]
        self._kill_at: float | None = None
        self._wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGCHLD, *STOPPING):
            signal.signal(number, lambda *_: None)  # the wake-up descriptor tells which
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def watch(self) -> Report:
        """Watch the program until it ends, then end all that it started; how it ended."""
        look_at = time.monotonic() + EVERY
        usual = _count()
        while self._status is None:
            now = time.monotonic()
            if self._kill_at is None and now >= self._deadline:
                self._end("timeout")
            elif self._kill_at is not None and now >= self._kill_at:
                break
            elif self._kill_at is None and (now >= look_at or _count() - usual > (self._order["processes"] or sys.maxsize)):
                look_at = now + EVERY
                self._check_limits()
            next_at = self._kill_at or min(self._deadline, look_at, now + COUNTING)
            self._wait(max(0.0, next_at - time.monotonic()))
            self._reap()
        left = self._kill_all()
        status = self._status
        return {
            "exit_code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            "ended_by": self._ended_by,
            "left": left,
            "error": None,
        }

    def start(self) -> None:
        """Start the program under its limits. Raises OSError."""
        order = self._order
        os.chdir(order["cwd"])
        for name, wanted in order["rlimits"].items():
            which = getattr(resource, name)
            hard = resource.getrlimit(which)[1]
            limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(which, (limit, limit))
        if order["processes"] is not None and os.getuid() != 0:  # it counts all threads of the user, and root's not at all
            running = sum(process.threads for process in _processes() if process.owner == os.getuid())
            limit = min(running + order["processes"], resource.getrlimit(resource.RLIMIT_NPROC)[1])
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        self._program = os.posix_spawnp(
            order["argv"][0],
            order["argv"],
            order["env"],  # not our own: Python may have added LC_CTYPE to it (PEP 538)
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE],  # Python ignores it, and SIGXFSZ: so that who writes too much is told, and can say so
        )

    def _wait(self, seconds: float) -> None:
        readable, _, _ = select.select([self._control, self._wake], [], [], seconds)
        if self._wake in readable and any(number in STOPPING for number in os.read(self._wake, 4096)) and self._kill_at is None:
            self._end("stop")
        if self._control in readable:
            if not os.read(self._control, 4096):
                self._ended_by = "stop"
                self._kill_at = time.monotonic()
            elif self._kill_at is None:
                self._end("stop")

    def _end(self, why: EndedBy) -> None:
        self._ended_by = why
        self._kill_at = time.monotonic()
        if why in ("timeout", "stop"):  # what uses too much gets no time to go on with it
            self._kill_at += self._order["grace"]
            _signal_group(self._program, signal.SIGTERM)

    def _check_limits(self) -> None:
        memory, processes, free_space = self._order["memory"], self._order["processes"], self._order["free_space"]
        if free_space is not None:
            disk = os.statvfs(".")
            if disk.f_bavail * disk.f_frsize < free_space:
                self._end("disk")
                return
        if memory is None and processes is None:
            return
        family = _descendants()
        if memory is not None and sum(process.resident for process in family) > memory:
            self._end("memory")
        elif processes is not None and sum(process.threads for process in family) > processes:
            self._end("processes")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._program:
                self._status = status

    def _kill_all(self) -> int:
        """End every descendant; how many would not."""
        until = time.monotonic() + KILLING
        pause = 0.001
        if self._status is None:  # at once: a sandbox ends with it
            _signal_group(self._program, signal.SIGKILL)
        while self._has_children():
            family = _descendants()
            groups = {process.group for process in family} - {os.getpgrp()}
            for group in groups if HAS_PROC else {self._program}:
                _signal_group(group, signal.SIGKILL)
            for process in family:
                _signal(process.pid)
            if time.monotonic() > until:
                return len(family)
            time.sleep(pause)
            pause = min(0.05, pause * 2)
        return 0

    def _has_children(self) -> bool:
        """Whether anything is left; whatever has lost its parent is a child."""
        self._reap()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True


def _processes() -> list[_Process]:
    """Every process that there is; none where there is no /proc."""
    found: list[_Process] = []
    for name in os.listdir("/proc") if HAS_PROC else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    found.append(_Process(int(name), os.fstat(file.fileno()).st_uid, file.read()))
            except (OSError, ValueError):  # it has ended meanwhile
                continue
    return found


def _count() -> int:
    """How many threads the host has (proc_loadavg(5)); 0 where there is no /proc."""
    if not HAS_PROC:
        return 0
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])


def _descendants() -> list[_Process]:
    """Every living process that stems from this one; none where there is no /proc."""
    children: dict[int, list[_Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    waiting = [os.getpid()]
    while waiting:
        for child in children.pop(waiting.pop(), ()):
            found.append(child)
            waiting.append(child.pid)
    return [process for process in found if process.state not in (b"Z", b"X")]


def _signal_group(group: int, number: signal.Signals) -> None:
    if group > 1:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            return


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _receive(control: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = os.read(control, size - len(data))
        if not piece:
            sys.exit(1)
        data += piece
    return bytes(data)


def _main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)  # noqa: FBT003 - it takes no keyword
    order: Order = marshal.loads(_receive(control, int(_receive(control, 8), 16)))  # noqa: S302 - it comes from our worker
    _become_subreaper()
    warden = _Warden(control, order)
    report: Report
    try:
        warden.start()
    except OSError as error:
        what = f"{error.filename or order['argv'][0]}: {error.strerror}"
        report = {"exit_code": None, "signal": None, "ended_by": "exit", "left": 0, "error": what}
    else:
        report = warden.watch()
    values = ("" if value is None else str(value) for value in report.values())
    try:
        os.write(control, "\0".join(values).encode(errors="replace"))
    except OSError:  # the worker is gone
        sys.exit(1)


if __name__ == "__main__":
    _main()
