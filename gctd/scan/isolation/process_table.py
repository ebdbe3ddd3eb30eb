"""The processes of this machine, as /proc shows them: the descendants of this process, and their memory."""

# ruff: noqa: PTH112, PTH115, PTH116, PTH123, PTH208 - pathlib would double the time that the fork server takes to start

from __future__ import annotations

import os

HAS_PROC = os.path.isdir("/proc/self")
PAGE = os.sysconf("SC_PAGE_SIZE")
IN_MEMORY = ("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")  # noqa: S108 - as the links in /proc begin
"""Prefixes of the names of files in memory."""


class Process:
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


def processes() -> list[Process]:
    """Return every process; none if there is no /proc."""
    found: list[Process] = []
    for name in os.listdir("/proc") if HAS_PROC else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    found.append(Process(int(name), os.fstat(file.fileno()).st_uid, file.read()))
            except (OSError, ValueError):  # it has ended since
                continue
    return found


def threads_of_host() -> int:
    """Return the number of threads on the host (proc_loadavg(5)); 0 if there is no /proc."""
    if not HAS_PROC:
        return 0
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])


def descendants() -> list[Process]:
    """Return every living descendant of this process; none if there is no /proc."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [os.getpid()]
    while waiting:
        for child in children.pop(waiting.pop(), ()):
            found.append(child)
            waiting.append(child.pid)
    return [process for process in found if process.state not in (b"Z", b"X")]


def unmapped(family: list[Process]) -> int:
    """The bytes in files that are kept in memory and that these processes have open: no process needs to map them."""
    found: dict[tuple[int, int], int] = {}
    for process in family:
        folder = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:  # it has ended since
            continue
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}").startswith(IN_MEMORY):
                    file = os.stat(f"{folder}/{name}")
                    found[file.st_dev, file.st_ino] = file.st_blocks * 512
            except OSError:  # closed since
                continue
    return sum(found.values())
