"""The callback style: `handle(context, callback)`, where the query is the whole input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphql_fn.core.errors import BadRequest
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.hello import HELLO
from graphql_fn.core.request import GraphQLRequest, from_text, text_of
from graphql_fn.handlers.background import BACKGROUND

Callback = Callable[[Exception | None, dict[str, Any] | None], object]


def handler(evaluator: Evaluator) -> Callable[[Any, Callback], None]:
    """The handler of a function in this style.

    It calls `callback(None, result)`, also where the result has errors, or `callback(error, None)` if there is none.
    """

    def handle(context: Any, callback: Callback) -> None:
        try:
            result = BACKGROUND.run(evaluator.evaluate(_request(context)))
        except Exception as error:  # noqa: BLE001 - the style has one way for all of them
            callback(error, None)
        else:
            callback(None, result.document)

    return handle


def _request(context: Any) -> GraphQLRequest:
    if isinstance(context, bytes | bytearray):
        return from_text(text_of(bytes(context)))
    if not isinstance(context, str):
        raise BadRequest("the input must be the text of a query")
    return from_text(context)


handle = handler(Evaluator(HELLO))
"""The function `hello` in this style."""
