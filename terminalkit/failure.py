"""The failure of a command: the failed operation, the reason, the remedy, and the exit code.

Errors of our packages have an `exit_code` or an HTTP `status`, and may have a `hint`. Their text is for the user. Any other error
is a defect of the program.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus

import attrs
import click


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


class Failure(Exception):
    """A command failed. `what` it was to do, `why` it did not, a `hint` what to do; it ends with `exit_code`."""

    def __init__(self, what: str, why: str, *, exit_code: ExitCode = ExitCode.FAILURE, hint: str | None = None) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why
        self.exit_code = exit_code
        self.hint = hint


class Stopped(Exception):
    """A signal ended the command."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.strsignal(signal_number) or str(signal_number))
        self.signal_number = signal_number


class OutOfTime(Exception):
    """The command was not done within `--timeout`."""

    exit_code = ExitCode.TIMEOUT


@attrs.frozen(kw_only=True)
class Explainer:
    """Turns an error into a failure, in the words of one program: its name, and its advice for an exit code.

    `asking` is the advice for a request that did not reach the server, or that the server did not fulfil.
    """

    program: str
    hints: Mapping[ExitCode, str] = attrs.field(factory=dict)
    asking: Mapping[ExitCode, str] = attrs.field(factory=dict)

    def explain(self, error: BaseException, what: str, *, not_found: str | None = None) -> Failure | None:
        """Return the failure of an error, or None if it is a defect of the program.

        `not_found`: advice if the thing that was asked for is not found.
        """
        match error:
            case Failure():
                return error
            case click.UsageError():
                named = command_name(error.ctx) if error.ctx is not None else what
                return Failure(named, _sentence(error), exit_code=ExitCode.USAGE, hint=self._help(named))
            case click.ClickException():
                return Failure(what, _sentence(error))
            case Stopped():
                code = ExitCode.TERMINATED if error.signal_number == signal.SIGTERM else ExitCode.INTERRUPTED
                return Failure(what, "terminated" if code is ExitCode.TERMINATED else "interrupted", exit_code=code)
            case KeyboardInterrupt() | click.Abort():
                return Failure(what, "interrupted", exit_code=ExitCode.INTERRUPTED)
        if (code_ := code_of(error)) is not None:
            return Failure(what, str(error), exit_code=code_, hint=self._hint(error, code_, what, not_found))
        if isinstance(error, OSError) and error.errno is not None:
            place = f"{error.filename}: " if error.filename else ""
            return Failure(what, f"{place}{error.strerror or os.strerror(error.errno)}")
        return None

    def _hint(self, error: BaseException, code: ExitCode, what: str, not_found: str | None) -> str | None:
        own: str | None = getattr(error, "hint", None)
        if getattr(error, "kind", None) == "invalid":
            not_found = None  # it is not missing: there can be no such thing
        by_code = {ExitCode.NOT_FOUND: not_found, ExitCode.USAGE: self._help(what)}
        asking = self.asking if getattr(error, "asked", False) else {}
        return own or by_code.get(code) or asking.get(code) or self.hints.get(code)

    def _help(self, what: str) -> str:
        return f"{self.program} --help" if what == self.program else f"{self.program} {what} --help"


def command_name(ctx: click.Context) -> str:
    """The command as the user named it, without the program: `repo add`."""
    return ctx.command_path.partition(" ")[2] or ctx.command_path


def _sentence(error: click.ClickException) -> str:
    text = error.format_message().strip()
    return (text[:1].lower() + text[1:]).removesuffix(".")
