"""Control groups (cgroups(7), version 2): the kernel bounds memory and processes of a job, and ends all its processes at once.

The group of the worker must be delegated to it, as by `Delegate=yes` of systemd. The worker moves itself into the group
`gctd-worker` below, because a group with limits for others has no processes. Each program gets a group next to it.

The fork server of the worker imports this module, so it imports little.
"""

# ruff: noqa: PTH102, PTH106, PTH123, PTH208 - pathlib would double the time that the fork server takes to start

from __future__ import annotations

import os
import time

OWN = "gctd-worker"
"""The group of the worker and of the supervisors."""
NEEDED = ("memory", "pids")
SHARED = ("cpu", "io")
"""Controllers that divide their resource fairly between the groups, without a limit."""

_JOB = "job-"
_REMOVING = 2.0


def delegated(process: str = "/proc/self") -> tuple[str, str]:
    """Return the group in which this process may make groups with limits; or an empty text, and the reason."""
    mounts = (line.split() for line in _read(f"{process}/mountinfo").splitlines() if " - cgroup2 " in line)
    mount = next((fields[4] for fields in mounts), "")
    own = next((line[3:] for line in _read(f"{process}/cgroup").splitlines() if line.startswith("0::")), None)
    if not mount or own is None:
        return "", "no cgroup v2 is mounted"
    base = os.path.normpath(f"{mount}/{own}")
    if os.path.basename(base) == OWN:  # noqa: PTH119 - as above
        base = os.path.dirname(base)  # noqa: PTH120 - as above
    missing = sorted(set(NEEDED) - set(_read(f"{base}/cgroup.controllers").split()))
    if missing:
        return "", f"cgroup v2 has no controller {' and '.join(missing)} in {base}"
    if not all(os.access(place, os.W_OK) for place in (base, f"{base}/cgroup.procs", f"{base}/cgroup.subtree_control")):
        return "", f"{base} is not delegated to this user: set Delegate=yes in its unit"
    if set(_read(f"{base}/cgroup.procs").split()) - {str(os.getpid())}:
        return "", f"{base} has other processes: start the worker by a unit with Delegate=yes"
    return base, ""


def take(base: str) -> None:
    """Move this process into the worker's group, and let the groups next to it have limits. Raises OSError."""
    for name in os.listdir(base):
        if name.startswith(_JOB):  # of a worker that was killed
            remove(f"{base}/{name}")
    if not os.path.isdir(f"{base}/{OWN}"):  # noqa: PTH112 - as above
        os.mkdir(f"{base}/{OWN}")
    enter(f"{base}/{OWN}")
    _write(f"{base}/cgroup.subtree_control", " ".join(f"+{name}" for name in NEEDED))
    for name in SHARED:
        if name in _read(f"{base}/cgroup.controllers").split():
            _write(f"{base}/cgroup.subtree_control", f"+{name}")
    remove(make(base, "probe", memory=1 << 30, processes=100))


def make(base: str, name: str, *, memory: int | None, processes: int | None) -> str:
    """Make the group of a program; its directory. `memory` in bytes; swapping is off. Raises OSError."""
    group = f"{base}/{_JOB}{name}"
    os.mkdir(group)
    given = set(_read(f"{base}/cgroup.subtree_control").split())
    if "memory" in given and memory is not None:
        _write(f"{group}/memory.max", str(memory))
        _write(f"{group}/memory.oom.group", "1")
        if os.path.exists(f"{group}/memory.swap.max"):  # noqa: PTH110 - as above
            _write(f"{group}/memory.swap.max", "0")
    if "pids" in given and processes is not None:
        _write(f"{group}/pids.max", str(processes))
    return group


def enter(group: str) -> None:
    """Move this process into a group. Raises OSError."""
    _write(f"{group}/cgroup.procs", str(os.getpid()))


class GroupMembership:
    """The supervisor's hold on the group of its program, by descriptors: rules for files, which come later, do not end it."""

    def __init__(self, group: str) -> None:
        own = f"{os.path.dirname(group)}/{OWN}"  # noqa: PTH120 - as above
        self._group = group
        self._enter, self._leave, self._kill = (
            os.open(name, os.O_WRONLY | os.O_CLOEXEC)
            for name in (f"{group}/cgroup.procs", f"{own}/cgroup.procs", f"{group}/cgroup.kill")
        )

    def __enter__(self) -> None:
        """Be in the group: the children of this time are."""
        os.write(self._enter, b"0")

    def __exit__(self, *_: object) -> None:
        os.write(self._leave, b"0")

    def kill(self) -> None:
        """End all processes of the group (Linux 5.14)."""
        os.write(self._kill, b"1")

    def out_of_memory(self) -> bool:
        """Whether the kernel has ended processes of the group because of its limit."""
        counts = dict(line.split() for line in _read(f"{self._group}/memory.events").splitlines())
        return int(counts.get("oom_kill", 0)) > 0


def remove(group: str) -> None:
    """Remove the group of a program. Its last processes are killed, and may take a moment. Raises OSError if they stay."""
    until = time.monotonic() + _REMOVING
    while True:
        try:
            _write(f"{group}/cgroup.kill", "1")
            os.rmdir(group)
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _read(place: str) -> str:
    try:
        with open(place, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _write(place: str, text: str) -> None:
    """Write to a file that the kernel has made."""
    opened = os.open(place, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(opened, text.encode())
    finally:
        os.close(opened)
