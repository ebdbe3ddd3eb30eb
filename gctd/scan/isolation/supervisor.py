"""The supervisor of one program and of all processes that the program starts: it ends them all, and does not outlive them.

Every program of a scan waits until its supervisor has started. A process of its kind therefore waits for the worker
(`gctd.scan.isolation.fork_server`), with all modules imported, and each supervisor is a fork of it. It has an interpreter without
site packages, and of this project it imports only modules that import little.

A supervisor talks with the worker through one end of a Unix stream socket (`gctd.scan.isolation.messages`). First it sends its
process number. Then the request arrives. Anything that follows means stop. If the other end is closed, because the worker is
gone, the supervisor ends everything at once. It sends back the result.

The program gets its own session. The supervisor is a child subreaper (prctl(2)): a process that left the program's group and
session, or whose parent ended, becomes a child of the supervisor, so each process that the program started can be found.
"""

# ruff: noqa: PTH208 - pathlib would double the time that the fork server takes to start

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time

from gctd.scan.disk import free_bytes
from gctd.scan.isolation import cgroups, landlock
from gctd.scan.isolation.messages import number_to_bytes, read_request, result_to_bytes
from gctd.scan.isolation.process_table import HAS_PROC, descendants, processes, threads_of_host, unmapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from gctd.scan.isolation.messages import EndedBy, RunRequest, RunResult

PR_SET_CHILD_SUBREAPER = 36
KILLING = 2.5
"""Seconds of SIGKILL before the supervisor gives up on the remaining processes (blocked in the kernel)."""
EVERY = 0.5
"""Seconds between two looks at memory, number of processes and disk."""
COUNTING = 0.1
"""Seconds between two looks at how many processes the host has: more than these can start in a second."""
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
USUAL_UMASK = 0o022
"""The umask of the program: tests look at the modes of files. The folder of a job is closed to other users by its own mode."""


class ProcessSupervisor:
    def __init__(self, control: int, request: RunRequest) -> None:
        self._control = control
        self._request = request
        self._program = 0
        self._status: int | None = None
        self._ended_by: EndedBy = "exit"
        self._deadline = time.monotonic() + request["timeout"]
        self._kill_at: float | None = None
        self._group = cgroups.GroupMembership(request["group"]) if request["group"] else None
        self._wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGCHLD, *STOPPING):
            signal.signal(number, lambda *_: None)  # the wake-up descriptor has the number
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def watch(self) -> RunResult:
        """Watch the program until it ends, then end all that it started; how it ended."""
        look_at = time.monotonic() + EVERY
        most = threads_of_host() + (self._request["processes"] or sys.maxsize)
        while self._status is None:
            now = time.monotonic()
            if self._kill_at is None and now >= self._deadline:
                self._end("timeout")
            elif self._kill_at is not None and now >= self._kill_at:
                break
            elif self._kill_at is None and (now >= look_at or threads_of_host() > most):
                look_at = now + EVERY
                self._check_limits()
            next_at = self._kill_at or min(self._deadline, look_at, now + COUNTING)
            self._wait(max(0.0, next_at - time.monotonic()))
            self._reap()
        left = self._kill_all()
        status = self._status
        if self._group is not None and self._ended_by == "exit" and self._group.out_of_memory():
            self._ended_by = "memory"
        return {
            "exit_code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            "ended_by": self._ended_by,
            "left": left,
            "error": None,
        }

    def start(self) -> None:
        """Start the program under its limits. Raises OSError."""
        request = self._request
        os.chdir(request["cwd"])
        for name, wanted in request["rlimits"].items():
            which = getattr(resource, name)
            hard = resource.getrlimit(which)[1]
            limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(which, (limit, limit))
        if request["processes"] is not None and os.getuid() != 0:  # it counts all threads of the user, and root's not at all
            running = sum(process.threads for process in processes() if process.owner == os.getuid())
            limit = min(running + request["processes"], resource.getrlimit(resource.RLIMIT_NPROC)[1])
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        _close_at_start()
        os.umask(USUAL_UMASK)
        readable = [(_readable(content), number) for number, content in request["inputs"].items()]
        with self._group or contextlib.nullcontext():
            self._program = os.posix_spawnp(
                request["argv"][0],
                request["argv"],
                request["env"],  # not our own: Python may have added LC_CTYPE to it (PEP 538)
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    *((os.POSIX_SPAWN_DUP2, descriptor, number) for descriptor, number in readable),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE],  # SIGXFSZ stays ignored, as in Python: writes beyond the limit give an error
            )
        for descriptor, _ in readable:
            os.close(descriptor)

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
        if why in ("timeout", "stop"):  # no grace period for a tree beyond its limits
            self._kill_at += self._request["grace"]
            _signal_group(self._program, signal.SIGTERM)

    def _check_limits(self) -> None:
        memory, processes, free_space = self._request["memory"], self._request["processes"], self._request["free_space"]
        if free_space is not None and free_bytes(".") < free_space:
            self._end("disk")
            return
        if memory is None and processes is None:
            return
        family = descendants()
        if memory is not None and sum(process.resident for process in family) + unmapped(family) > memory:
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
        """End every descendant. Return the number of processes that did not end."""
        until = time.monotonic() + KILLING
        pause = 0.001
        if self._status is None:  # at once: a sandbox ends with it
            _signal_group(self._program, signal.SIGKILL)
        if self._group is not None:
            self._group.kill()
        while self._has_children():
            family = descendants()
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


def _close_at_start() -> None:
    """Keep every descriptor but 0, 1 and 2 from the program."""
    for name in os.listdir("/proc/self/fd") if HAS_PROC else map(str, range(3, 256)):
        try:
            if int(name) > 2:
                os.set_inheritable(int(name), False)  # noqa: FBT003 - it takes no keyword
        except OSError:  # the descriptor of the listing itself
            continue


def _readable(content: bytes) -> int:
    """A descriptor from which this can be read, with a number that no input has."""
    ours, theirs = os.pipe()
    os.write(theirs, content)
    os.close(theirs)
    descriptor = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 64)
    os.close(ours)
    return descriptor


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


def _supervise(control: int) -> None:
    """Supervise the program that is asked for at this descriptor."""
    os.write(control, number_to_bytes(os.getpid()))
    request = read_request(control)
    os.environ.clear()  # posix_spawnp(3) looks for the program in the PATH of this process
    os.environ.update(request["env"])
    _become_subreaper()
    result: RunResult
    try:
        supervisor = ProcessSupervisor(control, request)
        landlock.enclose(request["argv"][0], request["files"])
        supervisor.start()
    except OSError as error:
        why = f"{error.filename or request['argv'][0]}: {error.strerror}"
        result = {"exit_code": None, "signal": None, "ended_by": "exit", "left": 0, "error": why}
    else:
        result = supervisor.watch()
    os.write(control, result_to_bytes(result))


def serve(socket_number: int) -> None:
    """Fork a supervisor for each message of the worker, until the worker is gone.

    A message has three descriptors: the socket of the supervisor, and the places of its standard output and standard error. If
    the process cannot be forked, zeros and the reason go to that socket.
    """
    signal.signal(signal.SIGCHLD, lambda *_: _reap_supervisors())
    with socket.socket(fileno=socket_number) as channel:
        while True:
            _, descriptors, _, _ = socket.recv_fds(channel, 1, 3)
            if not descriptors:
                return
            try:
                forked = os.fork()
            except OSError as error:
                os.write(descriptors[0], number_to_bytes(0) + str(error.strerror).encode())
            else:
                if forked == 0:
                    channel.close()
                    _become_supervisor(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _reap_supervisors() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_supervisor(control: int, stdout: int, stderr: int) -> NoReturn:
    """Leave the session of the fork server, supervise a program, and end."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor, place in ((stdout, 1), (stderr, 2)):
            os.dup2(descriptor, place)
            os.close(descriptor)
        _supervise(control)
        code = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the worker is gone
        pass
    except Exception:  # noqa: BLE001 - it goes to the log of the program
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
