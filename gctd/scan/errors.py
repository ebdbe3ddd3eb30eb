"""Errors of a scan, with a text for the user."""

from __future__ import annotations

from http import HTTPStatus

from gctd.domain.errors import GctdError


class ScanError(GctdError):
    """Root of the package's errors. `permanent`: another attempt would end the same."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


class ProcessError(ScanError):
    """A program could not be started, or its supervisor was lost. All its processes have ended."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


class UnsafeFile(ScanError):
    """A file or directory that untrusted code could write has an unexpected kind. The text has the reason for not reading it."""


class GitError(ScanError):
    """The remote repository cannot be read. The text has the reason, without credentials."""


class MirrorDamaged(GitError):
    """The copy of the repository in the cache cannot be used."""


class LimitExceeded(ScanError):
    """The repository is larger, or has more or longer things in it, than the operator allows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, permanent=True)


class DiscoveryError(ScanError):
    """The repository has no Go project, or is refused as a whole."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, permanent=True)


class NoToolchain(ScanError):
    """There is no usable `go` on the worker's machine."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class NoGo(NoToolchain):
    """There is no `go` at all on the worker's machine, and the operator names none."""


class GoError(ScanError):
    """`go` could not test the project at all: no package, a module that is missing, a newer Go needed."""


class NeedsNewerGo(GoError):
    """A module, a dependency or a workspace needs a newer version of Go: `version`, as go reports it."""

    def __init__(self, reason: str, version: str) -> None:
        super().__init__(reason, permanent=True)
        self.version = version


class NoSandbox(ScanError):
    """The operator wants a sandbox, and the worker's machine has none."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    hint = "install bubblewrap, or let users make namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces)"
