"""What the worker and a warden say to each other: see `gctd.scan.isolation.supervisor`."""

from __future__ import annotations

from typing import Literal, TypedDict

EndedBy = Literal["exit", "timeout", "stop", "memory", "processes", "disk"]


class Order(TypedDict):
    """What to run, and when to end it. `rlimits` are limits by their names in setrlimit(2), soft and hard."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    timeout: float
    grace: float
    rlimits: dict[str, int]
    memory: int | None
    processes: int | None
    free_space: int | None


class Report(TypedDict):
    """How it ended. `left` counts the processes that would not end; `error` says why it could not be started."""

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    left: int
    error: str | None
