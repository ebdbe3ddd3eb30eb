"""Exit codes, the same for every program: their meaning, and the code of each error of our packages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus


class ExitCode(IntEnum):
    """How a command ends."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    UNAVAILABLE = 6
    PARTIAL = 7
    UNDECIDED = 8
    TIMEOUT = 124
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "failed",
    ExitCode.USAGE: "usage: the command line, a setting or a value in it is wrong",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.NOT_ALLOWED: "not allowed: no token, or a wrong one",
    ExitCode.CONFLICT: "conflict: the present state does not allow it",
    ExitCode.UNAVAILABLE: "unavailable: the server, its broker or its database; try again later",
    ExitCode.PARTIAL: "done in part",
    ExitCode.UNDECIDED: "not known: a value that the answer needs is missing",
    ExitCode.TIMEOUT: "not done within --timeout",
    ExitCode.INTERRUPTED: "interrupted (SIGINT)",
    ExitCode.OUTPUT_CLOSED: "the reader of the output is gone (SIGPIPE)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}
"""The meaning of each exit code in the help of a program, unless the program has a better text."""

OF_STATUS: Mapping[int, ExitCode] = {
    HTTPStatus.BAD_REQUEST: ExitCode.USAGE,
    HTTPStatus.UNPROCESSABLE_ENTITY: ExitCode.USAGE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ExitCode.USAGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ExitCode.USAGE,
    HTTPStatus.UNAUTHORIZED: ExitCode.NOT_ALLOWED,
    HTTPStatus.FORBIDDEN: ExitCode.NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: ExitCode.NOT_FOUND,
    HTTPStatus.GONE: ExitCode.NOT_FOUND,
    HTTPStatus.CONFLICT: ExitCode.CONFLICT,
    HTTPStatus.PRECONDITION_FAILED: ExitCode.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS: ExitCode.UNAVAILABLE,
    HTTPStatus.BAD_GATEWAY: ExitCode.UNAVAILABLE,
    HTTPStatus.SERVICE_UNAVAILABLE: ExitCode.UNAVAILABLE,
    HTTPStatus.REQUEST_TIMEOUT: ExitCode.TIMEOUT,
    HTTPStatus.GATEWAY_TIMEOUT: ExitCode.UNAVAILABLE,
}
"""The exit code of an error with an HTTP status; FAILURE for any other status."""


def code_of(error: BaseException) -> ExitCode | None:
    """Return the exit code of an error: its `exit_code`, else the code of its HTTP `status`; None if it has neither."""
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return ExitCode(code)
    status = getattr(error, "status", None)
    return OF_STATUS.get(status, ExitCode.FAILURE) if isinstance(status, HTTPStatus) else None
