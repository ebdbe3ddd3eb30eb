"""Errors as they are shown: every one is a problem document (RFC 9457) that also has the service's own key.

An exception of any package is mapped by its attribute `status` (an HTTPStatus) and its text; one without `status` is a fault of
ours: it is logged, and the answer says `internal server error` and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol, runtime_checkable

import attrs
import msgspec
from aiohttp import web

from httpkit.errors import FieldError, HttpkitError

MEDIA_TYPE = "application/problem+json"
INTERNAL_ERROR = "internal server error"
"""The only thing that an answer says about a fault of ours."""
RETRY_AFTER = 1
"""Seconds after which a client may try again if an error does not say otherwise."""

_DETAILS = {
    HTTPStatus.NOT_FOUND: "no resource has this path",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the request is too large",
    HTTPStatus.EXPECTATION_FAILED: "the only expectation that is met is 100-continue",
}


class Malformed(HttpkitError):
    """The request cannot be read."""

    status = HTTPStatus.BAD_REQUEST


class Invalid(HttpkitError):
    """Values of the request cannot be right; `errors` names each of them."""

    def __init__(self, errors: Iterable[FieldError], status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        self.errors = tuple(errors)
        self.status = status
        super().__init__("; ".join(map(str, self.errors)))


class Unauthorized(HttpkitError):
    """The service asks for a token, and the request has none, or one that is not valid."""

    status = HTTPStatus.UNAUTHORIZED
    headers = {"WWW-Authenticate": "Bearer"}  # noqa: RUF012 - read only, as declared in the root


class Forbidden(HttpkitError):
    """A page of another origin asks for a change."""

    status = HTTPStatus.FORBIDDEN


class NotPermitted(HttpkitError):
    """The token of the request has a smaller scope than the request needs."""

    status = HTTPStatus.FORBIDDEN


class Misdirected(HttpkitError):
    """The Host header names a host that this service is not."""

    status = HTTPStatus.MISDIRECTED_REQUEST


class TooSlow(HttpkitError):
    """The body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT
    headers = {"Connection": "close"}  # noqa: RUF012 - read only, as declared in the root


class TooLarge(HttpkitError):
    """The body is larger than this route takes."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    headers = {"Connection": "close"}  # noqa: RUF012 - read only, as declared in the root


class UnsupportedMedia(HttpkitError):
    """The body is of a media type, charset or coding that this route does not take."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class PreconditionFailed(HttpkitError):
    """If-Match names another version than the present one."""

    status = HTTPStatus.PRECONDITION_FAILED


class Busy(HttpkitError):
    """There is more to do than the service takes on at a time; the same request will do later."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


@runtime_checkable
class AboutField(Protocol):
    """An exception of a domain that is about one value of the request."""

    field: str
    reason: str


def status_of(error: BaseException) -> HTTPStatus | None:
    """Return the status of an exception that is made for an answer; None for a fault.

    Clients of other servers have exceptions with a number in `status`: the answer of that server.
    """
    status = getattr(error, "status", None)
    return status if isinstance(status, HTTPStatus) else None


def text_of(error: BaseException) -> str:
    """Return the text of an exception, or the first line of its class's description if it has none."""
    return str(error) or (type(error).__doc__ or type(error).__name__).strip().partition("\n")[0]


def _name_of(error: BaseException) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()


@attrs.frozen
class Problems:
    """Makes the problem documents of one service. `key` is the member that has the text: `message`, `error`."""

    key: str

    def document(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        instance: str | None = None,
        request_id: str | None = None,
        errors: Sequence[FieldError] = (),
    ) -> dict[str, Any]:
        """A problem document.

        `kind` names the type of problem if it is more than its status (`key-reused`), `instance` is the path asked for.
        """
        members: dict[str, Any] = {
            "type": f"urn:problem:{kind}" if kind else "about:blank",
            "title": kind.replace("-", " ").capitalize() if kind else HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            self.key: detail,
            "instance": instance,
            "request_id": request_id,
            "errors": [error.document() for error in errors] or None,
        }
        return {name: value for name, value in members.items() if value is not None}

    def response(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> web.Response:
        """An answer with a problem document. 503 gets `Retry-After` where `headers` has none."""
        body = msgspec.json.encode(self.document(status, detail, **members))
        answer = web.Response(status=status, body=body, content_type=MEDIA_TYPE, headers=headers)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            answer.headers.setdefault("Retry-After", str(RETRY_AFTER))
        return answer

    def of(self, error: BaseException, *, instance: str, request_id: str | None) -> web.Response:
        """Return the answer to a request that ended in this exception."""
        if isinstance(error, web.HTTPException):
            return self._of_framework(error, instance, request_id)
        status = status_of(error) or HTTPStatus.INTERNAL_SERVER_ERROR
        if status is HTTPStatus.INTERNAL_SERVER_ERROR:
            return self.response(status, INTERNAL_ERROR, instance=instance, request_id=request_id)
        own = error if isinstance(error, HttpkitError) else None
        return self.response(
            status,
            text_of(error),
            kind=_name_of(error),
            instance=instance,
            request_id=request_id,
            errors=own.errors if own else (),
            headers=own.headers if own else None,
        )

    def _of_framework(self, error: web.HTTPException, instance: str, request_id: str | None) -> web.Response:
        status, headers = HTTPStatus(error.status), {}
        detail = _DETAILS.get(status, status.description or status.phrase)
        if isinstance(error, web.HTTPMethodNotAllowed):
            headers["Allow"] = ", ".join(sorted(error.allowed_methods))
            detail = f"{error.method} is not possible here; possible: {headers['Allow']}"
        return self.response(status, detail, instance=instance, request_id=request_id, headers=headers)
