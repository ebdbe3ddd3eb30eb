"""Everything that can go wrong when the server is asked, with the exit code that a command ends with."""

from __future__ import annotations

from typing import ClassVar

from terminalkit.exits import OF_STATUS, ExitCode


class ClientError(Exception):
    """Root of the package's errors: the server answered something that is not an answer to the request.

    `str(error)` is the text for a user, `status` the HTTP status if there was one, `kind` the type of problem where the
    server says more than its status: `insufficient-stock`. `foreign`: no service of ours answers in this form.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILURE
    asked: ClassVar[bool] = True
    """A server was asked: the program's advice on asking it holds."""

    def __init__(self, message: str, *, status: int | None = None, kind: str | None = None, foreign: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.foreign = foreign


class Rejected(ClientError):
    """The server, or the client before it asks, cannot accept a value (400, 413, 415, 422)."""

    exit_code = ExitCode.USAGE


class OtherService(Rejected):
    """The address belongs to another service."""

    hint: ClassVar[str] = "set the right address with --url"


class NotFound(ClientError):
    """No such repository, project, task, analysis or worker (404, 410)."""

    exit_code = ExitCode.NOT_FOUND


class NotAllowed(ClientError):
    """The token is missing or wrong, or does not allow that (401, 403)."""

    exit_code = ExitCode.NOT_ALLOWED


class Conflicting(ClientError):
    """The present state does not allow that (409, 412)."""

    exit_code = ExitCode.CONFLICT


class Unavailable(ClientError):
    """The server cannot be reached, or cannot do its work now; the same request may succeed later.

    `retry_after`: seconds that the server asks to wait, None if it gives no time. `sent`: the request may have reached the
    server and taken effect. `hint`: advice if the server was reached.
    """

    exit_code = ExitCode.UNAVAILABLE

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None, sent: bool = False) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        self.sent = sent
        self.hint = None if status is None else "try again later"


class TimedOut(ClientError):
    """No answer within the time allowed; a request that changes something may have taken effect."""

    exit_code = ExitCode.TIMEOUT


_BY_EXIT_CODE = {kind.exit_code: kind for kind in (Rejected, NotFound, NotAllowed, Conflicting, Unavailable, TimedOut)}


def error_class(status: int) -> type[ClientError]:
    """The class of error that an HTTP status stands for."""
    return _BY_EXIT_CODE.get(OF_STATUS.get(status, ExitCode.FAILURE), ClientError)
