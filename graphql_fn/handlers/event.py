"""The event style: `handle(event, context)` with `context.status(...).succeed(...)` and `.fail(...)` (section 4, rule 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from graphql_fn.core.errors import BadRequest, Code, masked
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.hello import HELLO
from graphql_fn.core.request import GraphQLRequest, from_members, from_text, text_of
from graphql_fn.handlers.background import BACKGROUND

log = structlog.get_logger(__name__)


class Event(Protocol):
    """The platform's input: a text, bytes, or the value of a JSON body, which it has decoded."""

    @property
    def body(self) -> Any: ...


class EventContext(Protocol):
    """How the platform is answered."""

    def status(self, code: int, /) -> EventContext: ...
    def succeed(self, value: Any, /) -> object: ...
    def fail(self, value: Any, /) -> object: ...


def handler(evaluator: Evaluator) -> Callable[[Event, EventContext], object]:
    """The handler of a function in this style.

    A result is a success with status 200, also if it has errors; a body without a query fails with 400, an exception in the
    engine with 500, both with `errors` as a result has them.
    """

    def handle(event: Event, context: EventContext) -> object:
        try:
            result = BACKGROUND.run(evaluator.evaluate(_request(event.body)))
        except BadRequest as error:
            return context.status(error.status).fail(_errors({"message": str(error), "extensions": {"code": Code.REQUEST}}))
        except Exception:
            log.exception("function failed", function=evaluator.function.name)
            return context.status(HTTPStatus.INTERNAL_SERVER_ERROR).fail(_errors(masked()))
        return context.status(HTTPStatus.OK).succeed(result.document)

    return handle


def _errors(error: dict[str, Any]) -> dict[str, Any]:
    return {"errors": [error]}


def _request(body: Any) -> GraphQLRequest:
    if isinstance(body, bytes | bytearray):
        return from_text(text_of(bytes(body)))
    if isinstance(body, str):
        return from_text(body)
    if body is None:
        return from_text("")
    return from_members(dict(body) if isinstance(body, Mapping) else body)


handle = handler(Evaluator(HELLO))
"""The function `hello` in this style."""
