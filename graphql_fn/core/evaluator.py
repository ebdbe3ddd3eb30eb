"""Runs requests on a function: bounded, with the errors of its resolvers masked."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Sequence
from typing import Any

import structlog
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    create_source_event_stream,
    execute,
)
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental

from graphql_fn.core.cost import cost, has_pages
from graphql_fn.core.documents import DocumentRefused, Documents
from graphql_fn.core.errors import PublicError
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.plain import QueryPlan
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome, Result
from graphql_fn.core.subscribing import NOTHING, SubscriptionEvent, SubscriptionUpdate

log = structlog.get_logger(__name__)

MASKED = "internal server error"
"""The text of an exception in a resolver for clients."""


class Evaluator:
    """Evaluates requests on one function.

    `introspection` off: the schema cannot be asked for. `suggestions` (None: as introspection) off: messages name no fields that
    the client did not. Both keep a schema from being read; neither hides what a known query gets.
    """

    def __init__(
        self,
        function: Function,
        limits: QueryLimits | None = None,
        *,
        introspection: bool = True,
        suggestions: bool | None = None,
    ) -> None:
        self.function = function
        self.limits = limits or QueryLimits()
        self._suggestions = introspection if suggestions is None else suggestions
        self._has_pages = has_pages(function.schema)
        self.documents = Documents(
            function.schema, self.limits, introspection=introspection, suggestions=self._suggestions, root=function.root
        )

    async def evaluate(self, request: GraphQLRequest) -> Result:
        """The result of a request. Raises only what is no `Exception` of a resolver: a defect of the engine or of the context."""
        try:
            document, operation, plan = self._admitted(request)
        except DocumentRefused as refused:
            return self._refusal(refused.errors, QueryOutcome.OVER_LIMIT if refused.over_limit else QueryOutcome.REFUSED)
        if plan is not None:
            data = plan.run(self.function.context(request))
            if data is not None:
                return Result({"data": data}, QueryOutcome.EXECUTED)
        elif operation is not None and operation.operation is not OperationType.QUERY:
            if operation.operation is OperationType.SUBSCRIPTION:
                hint = "a subscription has no single result: ask for it with Accept: text/event-stream"
                return self._refusal([GraphQLError(hint, operation)], QueryOutcome.REFUSED)
            if request.only_queries:
                return self._refusal([GraphQLError("only queries are taken this way; use POST")], QueryOutcome.CHANGES)
        return await self._execute(document, request)

    async def subscribe(self, request: GraphQLRequest) -> Result | AsyncGenerator[SubscriptionUpdate, None]:
        """Yield the results of a subscription as its events come, or the one result of any other or refused request.

        The generator is to be closed. It raises the errors of its source, except for shown errors, which are its last result.
        Otherwise as `evaluate`.
        """
        try:
            document, operation, _ = self._admitted(request)
        except DocumentRefused as refused:
            return self._refusal(refused.errors, QueryOutcome.OVER_LIMIT if refused.over_limit else QueryOutcome.REFUSED)
        if operation is None or operation.operation is not OperationType.SUBSCRIPTION:
            return await self.evaluate(request)
        executor = ExecutorThrowingOnIncremental.build(
            self.function.schema,
            document,
            self.function.root,
            self.function.context(request),
            None if request.variables is None else dict(request.variables),
            request.operation,
            max_coercion_errors=self.limits.errors,
            hide_suggestions=not self._suggestions,
        )
        if isinstance(executor, list):
            return self._refusal(executor, QueryOutcome.REFUSED)
        source = create_source_event_stream(executor)
        if inspect.isawaitable(source):
            source = await source
        if isinstance(source, ExecutionResult):
            return self._result(source, request)
        return self._updates(document, request, source)

    async def _updates(
        self, document: DocumentNode, request: GraphQLRequest, source: AsyncIterable[SubscriptionEvent]
    ) -> AsyncGenerator[SubscriptionUpdate, None]:
        events = aiter(source)
        try:
            async for event in events:
                has_value = event.value is not NOTHING
                yield SubscriptionUpdate(event.id, await self._execute(document, request, event.value) if has_value else None)
        except PublicError as error:
            yield SubscriptionUpdate(None, self._refusal([error], QueryOutcome.EXECUTED))
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _admitted(self, request: GraphQLRequest) -> tuple[DocumentNode, OperationDefinitionNode | None, QueryPlan | None]:
        """The document of a request, the operation that it asks for, if it is clear which, its plan. Raises DocumentRefused."""
        document = self.documents.get(request.query)
        operation, plan = document.operation(request.operation)
        if self._has_pages and operation is not None:
            found, limit = cost(self.function.schema, document.node, operation, request.variables), self.limits.cost
            if found > limit:
                text = f"the query may come to {found} objects, {limit} are the most: ask for smaller pages"
                raise DocumentRefused([GraphQLError(text)], over_limit=True)
        return document.node, operation, plan

    async def _execute(self, document: DocumentNode, request: GraphQLRequest, root: Any = NOTHING) -> Result:
        running = execute(
            self.function.schema,
            document,
            self.function.root if root is NOTHING else root,
            self.function.context(request),
            None if request.variables is None else dict(request.variables),
            request.operation,
            max_coercion_errors=self.limits.errors,
            executor_class=ExecutorThrowingOnIncremental,
            hide_suggestions=not self._suggestions,
        )
        if not inspect.isawaitable(running):
            return self._result(running, request)
        limit = asyncio.timeout(self.limits.seconds)
        try:
            async with limit:
                found = await _completed(running)
        except TimeoutError:
            if not limit.expired():
                raise
            error = GraphQLError(f"the query took longer than {self.limits.seconds:g} s")
            return self._refusal([error], QueryOutcome.OUT_OF_TIME)
        return self._result(found, request)

    def _result(self, found: ExecutionResult, request: GraphQLRequest) -> Result:
        if not found.errors:
            return Result({"data": found.data}, QueryOutcome.EXECUTED)
        if found.data is None and all(error.path is None for error in found.errors):
            return self._refusal(found.errors, QueryOutcome.REFUSED)
        request_id = request.request_id or secrets.token_hex(8)
        told = [self._told(error, request_id) for error in found.errors[: self.limits.errors]]
        return Result({"errors": told + self._left_out(found.errors), "data": found.data}, QueryOutcome.EXECUTED)

    def _refusal(self, errors: Sequence[GraphQLError], outcome: QueryOutcome) -> Result:
        """Return the result of a request that was not run: errors and no data."""
        return Result({"errors": [dict(error.formatted) for error in errors]}, outcome)

    def _left_out(self, errors: Sequence[GraphQLError]) -> list[dict[str, Any]]:
        left = len(errors) - self.limits.errors
        return [{"message": f"{left} further errors are not shown"}] if left > 0 else []

    def _told(self, error: GraphQLError, request_id: str) -> dict[str, Any]:
        """An error of a field as the client sees it: as it is where the engine made it of the request, else masked and logged."""
        cause = error.original_error
        # The engine's own errors name a place in the query, but for those about values that resolvers gave.
        if cause is None or isinstance(cause, PublicError) or (isinstance(cause, GraphQLError) and cause.nodes):
            return dict(error.formatted)
        log.error("resolver failed", function=self.function.name, path=error.path, request_id=request_id, exc_info=cause)
        return {**error.formatted, "message": MASKED, "extensions": {"requestId": request_id}}


async def _completed(running: Awaitable[ExecutionResult]) -> ExecutionResult:
    return await running
