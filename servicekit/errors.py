"""Errors of the read side of a service."""

from __future__ import annotations

from http import HTTPStatus

from httpkit.errors import HttpkitError


class NotWritten(HttpkitError):
    """A sequence is asked for that the log does not have."""

    status = HTTPStatus.CONFLICT
