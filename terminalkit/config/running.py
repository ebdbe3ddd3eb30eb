"""The system that this user runs on this machine: it leaves its addresses in a file, and commands use them if none are set."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from platformdirs import user_state_path

FILE = "running.json"


@attrs.frozen
class RunningSystem:
    """A running system: the file with its addresses, and the variables for its commands."""

    file: Path
    variables: Mapping[str, str]


@contextlib.contextmanager
def announced(app: str, variables: Mapping[str, str]) -> Iterator[None]:
    """Announce a system to the commands of this user, while the block runs. The last announced system of an `app` counts.

    The variables may have passwords in them, so only their owner can read the file.
    """
    from eventlog.embedded.access import write_private  # noqa: PLC0415 - commands that only read do without it

    file = user_state_path(app) / FILE
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, json.dumps({"pid": os.getpid(), "variables": dict(variables)}) + "\n")
    try:
        yield
    finally:
        if (content := _read(file)) is not None and content[0] == os.getpid():
            file.unlink(missing_ok=True)


def running_system(apps: Sequence[str]) -> RunningSystem | None:
    """Return the running system of the first of these apps that has one."""
    for app in apps:
        file = user_state_path(app) / FILE
        content = _read(file)
        if content is not None and _is_alive(content[0]):
            return RunningSystem(file, content[1])
    return None


def _read(file: Path) -> tuple[int, Mapping[str, str]] | None:
    """Return the process id and the variables of a file; None if it is missing or damaged."""
    try:
        content = json.loads(file.read_bytes())
        return int(content["pid"]), {str(name): str(value) for name, value in content["variables"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
