"""Messages between the worker and a supervisor: see `gctd.scan.isolation.supervisor`."""

from __future__ import annotations

from typing import Literal, TypedDict

EndedBy = Literal["exit", "timeout", "stop", "memory", "processes", "disk"]


class FileRules(TypedDict):
    """The files of a program: directories with all that is below them, and files. All other files are refused."""

    read: list[str]
    write: list[str]


class RunRequest(TypedDict):
    """Program and limits of a run. `rlimits` are limits by their names in setrlimit(2), soft and hard.

    `inputs` are contents that the program can read from these descriptors; it has no other but 0, 1 and 2. `files` None: the
    files are not restricted here. `group` is the directory of the program's control group; empty: it has none.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    timeout: float
    grace: float
    rlimits: dict[str, int]
    memory: int | None
    processes: int | None
    free_space: int | None
    inputs: dict[int, bytes]
    files: FileRules | None
    group: str


class RunResult(TypedDict):
    """End of a run. `left` counts the processes that could not be ended. `error` is the reason of a failed start."""

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    left: int
    error: str | None
