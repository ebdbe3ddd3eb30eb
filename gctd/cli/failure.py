"""How a command fails: what failed, why, what to do about it, and the exit code.

The exit codes are those of `gctd.client.errors.ExitCode`; errors of the services' own packages bear an HTTP status, which stands
for the same codes.
"""

from __future__ import annotations

import os
import signal
from http import HTTPStatus

import click

from gctd.client.errors import ClientError, ExitCode, NotAllowed, NotFound, Rejected, TimedOut, Unavailable, error_class

EXIT_CODES = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "failed; a task or a discovery that was waited for failed",
    ExitCode.USAGE: "usage: the command line, a setting or a value in it is wrong",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.NOT_ALLOWED: "not allowed: no token, or a wrong one",
    ExitCode.CONFLICT: "conflict: the present state does not allow it",
    ExitCode.UNAVAILABLE: "unavailable: the server, its broker or its database; try again later",
    ExitCode.PARTIAL: "done in part",
    ExitCode.TIMEOUT: "not done within --timeout",
    ExitCode.INTERRUPTED: "interrupted (SIGINT)",
    ExitCode.OUTPUT_CLOSED: "nobody reads the output any more (SIGPIPE)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}
"""What each exit code means, as `gctd --help` says it."""

_HINTS: dict[type[ClientError], str] = {
    Unavailable: "is the server running? start it with: gctd serve; say where it is with --url or GCTD_URL",
    NotAllowed: "set GCTD_AUTH_TOKEN to the server's token",
    TimedOut: "allow more time with --timeout",
}


class Failure(Exception):
    """A command failed. `what` it was to do, `why` it did not, a `hint` what to do; it ends with `exit_code`."""

    def __init__(self, what: str, why: str, *, exit_code: ExitCode = ExitCode.FAILURE, hint: str | None = None) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why
        self.exit_code = exit_code
        self.hint = hint


class Stopped(Exception):
    """A signal ended the command; `hint` says what goes on without it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.strsignal(signal_number) or str(signal_number))
        self.signal_number = signal_number


def name_of(ctx: click.Context | None) -> str:
    """The command as the user named it, without the program: `repo add`."""
    path = "" if ctx is None else ctx.command_path
    return path.partition(" ")[2] or path or "gctd"


def explain(error: BaseException, what: str, *, not_found: str | None = None) -> Failure | None:
    """The failure that an error amounts to, None where it is a defect of the program.

    `not_found`: what to do where the thing asked for is not there.
    """
    match error:
        case Failure():
            return error
        case ClientError():
            return Failure(what, str(error), exit_code=error.exit_code, hint=_hint(error, what, not_found))
        case click.UsageError():
            named = name_of(error.ctx) if error.ctx is not None else what
            return Failure(named, _sentence(error), exit_code=ExitCode.USAGE, hint=f"{_program(named)} --help")
        case click.ClickException():
            return Failure(what, _sentence(error))
        case Stopped():
            code = ExitCode.TERMINATED if error.signal_number == signal.SIGTERM else ExitCode.INTERRUPTED
            return Failure(what, "terminated" if code is ExitCode.TERMINATED else "interrupted", exit_code=code)
        case KeyboardInterrupt() | click.Abort():
            return Failure(what, "interrupted", exit_code=ExitCode.INTERRUPTED)
        case OSError() if error.errno is not None:
            place = f"{error.filename}: " if error.filename else ""
            return Failure(what, f"{place}{error.strerror or os.strerror(error.errno)}")
    status = getattr(error, "status", None)
    if isinstance(status, HTTPStatus) and status is not HTTPStatus.INTERNAL_SERVER_ERROR:
        return Failure(what, str(error), exit_code=error_class(status).exit_code)
    return None


def _hint(error: ClientError, what: str, not_found: str | None) -> str | None:
    if isinstance(error, NotFound):
        return not_found
    if isinstance(error, Rejected):
        return f"{_program(what)} --help"
    if isinstance(error, Unavailable) and error.status is not None:
        return "try again later"
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), None)


def _program(what: str) -> str:
    return "gctd" if what == "gctd" else f"gctd {what}"


def _sentence(error: click.ClickException) -> str:
    text = error.format_message().strip()
    return (text[:1].lower() + text[1:]).removesuffix(".")
