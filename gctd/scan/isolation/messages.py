"""Messages between the worker and a supervisor (`gctd.scan.isolation.supervisor`), and their form in bytes.

A number is eight hex digits. A request is its length in bytes, and that many bytes of marshal. A result is its values as text, in
their order, separated by NULs.
"""

from __future__ import annotations

import marshal
import os
from typing import Any, Literal, TypedDict, cast

DIGITS = 8

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


def number_to_bytes(value: int) -> bytes:
    """Return a number in its form."""
    return b"%0*x" % (DIGITS, value)


def request_to_bytes(request: RunRequest) -> bytes:
    """Return a request in its form."""
    content = marshal.dumps(cast("dict[str, Any]", request))
    return number_to_bytes(len(content)) + content


def read_request(descriptor: int) -> RunRequest:
    """Read a request. Raises EOFError if the worker is gone."""
    content = marshal.loads(_read(descriptor, int(_read(descriptor, DIGITS), 16)))  # noqa: S302 - it comes from our worker
    return cast("RunRequest", content)


def result_to_bytes(result: RunResult) -> bytes:
    """Return a result in its form."""
    return "\0".join("" if value is None else str(value) for value in result.values()).encode(errors="replace")


def result_from_bytes(content: bytes) -> RunResult:
    """Return the result of this form."""
    exit_code, signal, ended_by, left, error = content.decode().split("\0")
    return {
        "exit_code": int(exit_code) if exit_code else None,
        "signal": int(signal) if signal else None,
        "ended_by": cast("EndedBy", ended_by),
        "left": int(left),
        "error": error or None,
    }


def _read(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            raise EOFError("the worker is gone")
        data += piece
    return bytes(data)
