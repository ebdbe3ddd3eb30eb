"""A function whose resolvers fail in every way, and requests to it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from graphql import GraphQLSchema, build_schema

from graphql_fn.core.errors import PublicError
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import SCHEMA
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.documents import Documents
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import OperationResult

SDL = """
type Query {
  hello: String
  boom: String
  wrong: String
  never: Int!
  told: String
  slow: String
  busy: String
  list: [String]
  double(of: Int!): Int
  deeper: Query
  who: String
}
type Mutation { change: String }
type Subscription { ticks: Int }
"""


class Root:
    """Resolvers that fail in every way."""

    hello = "hi"
    change = "changed"
    never = None
    runs = 0
    """How often the busy resolver ran."""

    def boom(self, _info: Any) -> str:
        raise ValueError("secret")

    def wrong(self, _info: Any) -> object:
        return {"secret": 1}

    def told(self, _info: Any) -> str:
        raise PublicError("this is for you")

    async def slow(self, _info: Any) -> str:
        await asyncio.sleep(30)
        return "late"

    def busy(self, _info: Any) -> str:
        self.runs += 1
        time.sleep(0.02)
        return "done"

    def list(self, _info: Any) -> Any:
        return [ValueError("secret") for _ in range(250)]

    def double(self, _info: Any, of: int) -> int:
        return 2 * of

    def deeper(self, _info: Any) -> Root:
        return self

    def who(self, info: Any) -> str:
        return str(info.context["who"])


def trouble(**options: Any) -> Evaluator:
    function = Function(
        name="trouble",
        schema=build_schema(SDL),
        root=Root(),
        context=lambda request: {"who": (request.extensions or {}).get("who")},
    )
    return Evaluator(function, **options)


async def ask(query: str, *, evaluator: Evaluator | None = None, **more: Any) -> OperationResult:
    return await (evaluator or trouble()).evaluate(GraphQLRequest(query, **more))


def messages(result: OperationResult) -> list[str]:
    return [error["message"] for error in result.document["errors"]]


def documents(schema: GraphQLSchema = SCHEMA, **options: Any) -> Documents:
    return Documents(schema, QueryLimits(), introspection=True, suggestions=True, **options)
