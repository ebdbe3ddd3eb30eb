"""From a request to an operation that may be run: read, valid, within the limits, with the values of its variables.

This work has no waits, and a long text or many values take tens of milliseconds. So a thread does it, for one request after the
other. The event loop does it only for a text that is prepared already, with few values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import attrs
from graphql import DocumentNode, GraphQLError, OperationType

from graphql_fn.core.errors import Code
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.cost import CostWalk
from graphql_fn.core.preparing.documents import Documents, ParsedOperation
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome, RequestRefused
from graphql_fn.core.running.engine import BoundedExecutor
from graphql_fn.core.running.planning import nested_plan
from graphql_fn.core.running.turns import Turns

FEW = 100
"""Values of variables that take less time than a change of threads does."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="graphql-prepare")
"""All functions have one: the threads of a process take turns, so that more of them only hold up the event loop."""


@attrs.frozen
class Preparation:
    """Prepares the requests of one function. `suggestions`: messages name fields that the client did not."""

    function: Function
    documents: Documents
    limits: QueryLimits
    suggestions: bool

    async def operation(
        self, request: GraphQLRequest, known: ParsedOperation | None, turns: Turns, *, streams: bool = False
    ) -> ParsedOperation:
        """The operation of a request, `known` if it is prepared. `streams`: it may be a subscription.

        Raises RequestRefused, OutOfTime.
        """
        if known is not None and _are_few(request.variables):
            found = self._bound(known, request, streams=streams)
        else:
            prepare = partial(self._prepare, request, streams=streams)
            found = await turns.wait_for(asyncio.get_running_loop().run_in_executor(_thread, prepare))
        cost = found.cost
        if found.scans and cost <= self.limits.cost:
            cost = self._walk(found, await turns.wait_for(self.function.rows())).cost(found.node)
        if cost > self.limits.cost:
            text = f"the query may come to {cost} objects, {self.limits.cost} are the most: ask for smaller pages"
            raise RequestRefused([GraphQLError(text)], QueryOutcome.OVER_LIMIT)
        return found

    def executor(self, document: DocumentNode, request: GraphQLRequest) -> BoundedExecutor:
        """An executor of a request, with the values of its variables and without a context. Raises RequestRefused."""
        made = BoundedExecutor.build(
            self.function.schema,
            document,
            self.function.root,
            None,
            None if request.variables is None else dict(request.variables),
            request.operation,
            max_coercion_errors=self.limits.errors,
            hide_suggestions=not self.suggestions,
        )
        if isinstance(made, list):
            # Wrong variables have a place in the query, an unclear operation has none.
            code = Code.INPUT if any(error.nodes for error in made) else Code.REQUEST
            raise RequestRefused(made, QueryOutcome.REFUSED, code)
        return cast("BoundedExecutor", made)

    def _prepare(self, request: GraphQLRequest, *, streams: bool) -> ParsedOperation:
        document = self.documents.get(request.query)
        found = document.operation(request.operation)
        if found is None:
            self.executor(document.node, request)
            raise LookupError(f"the document has no operation {request.operation!r}")  # the engine finds none either
        return self._bound(found, request, streams=streams)

    def _bound(self, found: ParsedOperation, request: GraphQLRequest, *, streams: bool) -> ParsedOperation:
        """An operation with the values of its variables, and its cost but for rows of tables. Raises RequestRefused."""
        kind = found.node.operation
        if kind is OperationType.SUBSCRIPTION and not streams:
            hint = "a subscription has no single result: ask for it with Accept: text/event-stream"
            raise RequestRefused([GraphQLError(hint, found.node)])
        if kind is OperationType.MUTATION and request.only_queries:
            raise RequestRefused([GraphQLError("only queries are taken this way; use POST")], QueryOutcome.CHANGES)
        if not found.node.variable_definitions:
            return found
        executor = self.executor(found.document, request)
        bound = attrs.evolve(found, executor=executor, plan=nested_plan(executor))
        walk = self._walk(bound, {})
        return attrs.evolve(bound, cost=walk.cost(bound.node), scans=walk.scanned)

    def _walk(self, operation: ParsedOperation, rows: Mapping[str, int]) -> CostWalk:
        values = None if operation.executor is None else operation.executor.variable_values
        function, most = self.function, self.limits.cost
        return CostWalk(function.schema, operation.document, values, scans=function.scans, rows=rows, most=most)


def _are_few(variables: Any) -> bool:
    """Whether variables have few values, in objects and lists as well."""
    left = FEW
    waiting = [variables]
    while waiting and left >= 0:
        value = waiting.pop()
        if isinstance(value, Mapping):
            left -= len(value)
            waiting.extend(value.values() if left >= 0 else ())
        elif isinstance(value, list):
            left -= len(value)
            waiting.extend(value if left >= 0 else ())
    return left >= 0
