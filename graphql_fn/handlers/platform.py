"""The platform's Python form: `handle(event, context)` gives status, headers and body.

It is the form of the OpenFaaS template `python3-http`, which sends a `str` as it is and anything else as Python shows it, and
calls a text `text/html` unless the handler sets a type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Protocol, TypedDict

import msgspec
import structlog

from graphql_fn.core.errors import masked
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.hello import HELLO
from graphql_fn.core.over_http import JSON, HttpRequest, answer
from graphql_fn.handlers.background import BACKGROUND

log = structlog.get_logger(__name__)


class PlatformRequest(Protocol):
    """The platform's request: the body as bytes, headers in any case, the parameters of the query string."""

    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def method(self) -> str: ...
    @property
    def query(self) -> Mapping[str, str]: ...


class Response(TypedDict):
    """The platform's answer."""

    statusCode: int
    headers: dict[str, str]
    body: str


def handler(evaluator: Evaluator) -> Callable[[PlatformRequest, object], Response]:
    """The handler of a function in this form: GraphQL over HTTP, as the gateway speaks it."""

    def handle(event: PlatformRequest, context: object) -> Response:
        del context
        try:
            found = BACKGROUND.run(answer(evaluator, _request(event)))
        except Exception:
            log.exception("function failed", function=evaluator.function.name)
            body = msgspec.json.encode({"errors": [masked()]}).decode()
            return {"statusCode": HTTPStatus.INTERNAL_SERVER_ERROR, "headers": {"Content-Type": JSON}, "body": body}
        return {"statusCode": found.status, "headers": dict(found.headers), "body": found.body.decode()}

    return handle


def _request(event: PlatformRequest) -> HttpRequest:
    headers = {name.lower(): value for name, value in event.headers.items()}
    return HttpRequest(
        method=event.method,
        parameters=dict(event.query.items()),
        content_type=headers.get("content-type"),
        accept=headers.get("accept"),
        body=event.body,
        request_id=headers.get("x-call-id"),
    )


handle = handler(Evaluator(HELLO))
"""The function `hello` in this form."""
