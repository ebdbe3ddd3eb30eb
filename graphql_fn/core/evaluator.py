"""Runs requests on a function: bounded, with the errors of its resolvers masked."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import structlog
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSyntaxError,
    OperationDefinitionNode,
    OperationType,
    create_source_event_stream,
)
from graphql.execution import get_variable_values

from graphql_fn.core.context import NotAnswered, RequestContext
from graphql_fn.core.cost import CostWalk, Tables
from graphql_fn.core.documents import DocumentRefused, Documents, Operation
from graphql_fn.core.engine import BoundedExecutor, OutOfTime, run
from graphql_fn.core.errors import Code, PublicError, coded
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.nested import GaveUp, NestedPlan, nested_plan
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome, Result
from graphql_fn.core.subscribing import NOTHING, SubscriptionEvent, SubscriptionUpdate

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CODES = {QueryOutcome.REFUSED: Code.VALIDATION, QueryOutcome.EXECUTED: Code.INPUT}
"""Codes of errors of requests that were not run; others have the name of the outcome."""
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
        self.documents = Documents(
            function.schema,
            self.limits,
            introspection=introspection,
            suggestions=self._suggestions,
            root=function.root,
            scans=function.scans,
        )

    async def evaluate(self, request: GraphQLRequest) -> Result:
        """The result of a request. Raises only what is no `Exception` of a resolver: a defect of the engine or of the context."""
        deadline = time.monotonic() + self.limits.seconds
        try:
            document, operation = self._found(request)
            if operation is not None and operation.fixed_cost is None:
                self._check(await self._cost(document, operation.node, request))
        except DocumentRefused as refused:
            return self._refusal(refused.errors, QueryOutcome.OVER_LIMIT if refused.over_limit else QueryOutcome.REFUSED)
        if operation is not None and operation.plan is not None and request.min_sequence is None:
            data = operation.plan.run(self.function.context(request))
            if data is not None:
                return Result({"data": data}, QueryOutcome.EXECUTED) if time.monotonic() <= deadline else self._late()
        elif operation is not None and operation.node.operation is not OperationType.QUERY:
            if operation.node.operation is OperationType.SUBSCRIPTION:
                hint = "a subscription has no single result: ask for it with Accept: text/event-stream"
                return self._refusal([GraphQLError(hint, operation.node)], QueryOutcome.REFUSED)
            if request.only_queries:
                return self._refusal([GraphQLError("only queries are taken this way; use POST")], QueryOutcome.CHANGES)
            return await self._execute(document, request, deadline=deadline)
        return await self._query(document, operation, request, deadline)

    async def subscribe(self, request: GraphQLRequest) -> Result | AsyncGenerator[SubscriptionUpdate, None]:
        """Yield the results of a subscription as its events come, or the one result of any other or refused request.

        The generator is to be closed. It raises the errors of its source, except for shown errors, which are its last result.
        Otherwise as `evaluate`.
        """
        try:
            document, operation = self._found(request)
            if operation is not None and operation.fixed_cost is None:
                self._check(await self._cost(document, operation.node, request))
        except DocumentRefused as refused:
            return self._refusal(refused.errors, QueryOutcome.OVER_LIMIT if refused.over_limit else QueryOutcome.REFUSED)
        if operation is None or operation.node.operation is not OperationType.SUBSCRIPTION:
            return await self.evaluate(request)
        executor = self._executor(document, request, self.function.root, self.function.context(request))
        if isinstance(executor, list):
            return self._refusal(executor, QueryOutcome.REFUSED, _request_code(executor))
        executor.deadline = time.monotonic() + self.limits.seconds
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

    def _found(self, request: GraphQLRequest) -> tuple[DocumentNode, Operation | None]:
        """The document of a request, and the operation that it asks for, if it is clear which. Raises DocumentRefused.

        It checks only the cost of an operation that costs the same for each request.
        """
        document = self.documents.get(request.query)
        operation = document.operation(request.operation)
        if operation is not None and operation.fixed_cost is not None:
            self._check(operation.fixed_cost)
        return document.node, operation

    def _check(self, cost: int) -> None:
        """Raise DocumentRefused for a cost over the limit."""
        if cost > self.limits.cost:
            text = f"the query may come to {cost} objects, {self.limits.cost} are the most: ask for smaller pages"
            raise DocumentRefused([GraphQLError(text)], over_limit=True)

    async def _cost(self, document: DocumentNode, operation: OperationDefinitionNode, request: GraphQLRequest) -> int:
        """The cost of an operation with the variables of a request; 0 if they are wrong, which the engine reports."""
        schema, function, most = self.function.schema, self.function, self.limits.cost
        given = get_variable_values(schema, operation.variable_definitions or (), dict(request.variables or {}), 1)
        if isinstance(given, list):
            return 0
        walk = CostWalk(schema, document, given, Tables(scans=function.scans), most=most)
        found = walk.cost(operation)
        if found > most or not walk.scanned:
            return found
        return CostWalk(schema, document, given, Tables(scans=function.scans, rows=await function.rows()), most=most).cost(
            operation
        )

    def _executor(
        self, document: DocumentNode, request: GraphQLRequest, root: Any, context: Any
    ) -> BoundedExecutor | list[GraphQLError]:
        made = BoundedExecutor.build(
            self.function.schema,
            document,
            root,
            context,
            None if request.variables is None else dict(request.variables),
            request.operation,
            max_coercion_errors=self.limits.errors,
            hide_suggestions=not self._suggestions,
        )
        return cast("BoundedExecutor | list[GraphQLError]", made)

    async def _query(
        self, document: DocumentNode, operation: Operation | None, request: GraphQLRequest, deadline: float
    ) -> Result:
        """The result of a query: by its plan, and by the engine if it has none or the plan gives up."""
        plan = None if operation is None else operation.nested
        if operation is not None and operation.node.variable_definitions:
            executor = self._executor(document, request, self.function.root, None)
            if isinstance(executor, list):
                return self._refusal(executor, QueryOutcome.REFUSED, _request_code(executor))
            plan = nested_plan(executor)
        if plan is not None:
            # The context of a plan that gave up has ended: the engine begins with another.
            with contextlib.suppress(GaveUp):
                return await self._within(request, deadline, lambda context: self._planned(plan, context, deadline))
        return await self._execute(document, request, deadline=deadline)

    async def _planned(self, plan: NestedPlan, context: Any, until: float) -> Result:
        try:
            data = await _completed(plan.run(self.function.root, context, until), until)
        except OutOfTime:
            return self._late()
        return Result({"data": data}, QueryOutcome.EXECUTED)

    async def _execute(
        self, document: DocumentNode, request: GraphQLRequest, root: Any = NOTHING, *, deadline: float | None = None
    ) -> Result:
        """The result of the engine."""
        until = time.monotonic() + self.limits.seconds if deadline is None else deadline

        async def executed(context: Any) -> Result:
            executor = self._executor(document, request, self.function.root if root is NOTHING else root, context)
            if isinstance(executor, list):
                return self._refusal(executor, QueryOutcome.REFUSED, _request_code(executor))
            return await self._run(executor, request, until)

        return await self._within(request, until, executed)

    async def _within(self, request: GraphQLRequest, until: float, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """The result of some work in the context of a request."""
        context = self.function.context(request)
        if not isinstance(context, RequestContext):
            return await work(context)
        try:
            await context.begin(until)
            result = await work(context)
        except NotAnswered as error:
            return self._refusal([error], error.outcome)
        finally:
            await context.end()
        return result.extended(context.extensions)

    async def _run(self, executor: BoundedExecutor, request: GraphQLRequest, until: float) -> Result:
        try:
            running = run(executor, until)
            found = running if isinstance(running, ExecutionResult) else await _completed(running, until)
        except OutOfTime:
            return self._late()
        return self._result(found, request)

    def _late(self) -> Result:
        error = GraphQLError(f"the query took longer than {self.limits.seconds:g} s")
        return self._refusal([error], QueryOutcome.OUT_OF_TIME)

    def _result(self, found: ExecutionResult, request: GraphQLRequest) -> Result:
        if not found.errors:
            return Result({"data": found.data}, QueryOutcome.EXECUTED)
        if found.data is None and all(error.path is None for error in found.errors):
            return self._refusal(found.errors, QueryOutcome.REFUSED)
        request_id = request.request_id or secrets.token_hex(8)
        told = [self._told(error, request_id) for error in found.errors[: self.limits.errors]]
        return Result({"errors": told + self._left_out(found.errors), "data": found.data}, QueryOutcome.EXECUTED)

    def _refusal(self, errors: Sequence[GraphQLError], outcome: QueryOutcome, code: str | None = None) -> Result:
        """Return the result of a request that was not run: errors and no data."""
        usual = code or _CODES.get(outcome, outcome.name)
        shown = [coded(error, Code.SYNTAX if isinstance(error, GraphQLSyntaxError) else usual) for error in errors]
        return Result({"errors": shown}, outcome)

    def _left_out(self, errors: Sequence[GraphQLError]) -> list[dict[str, Any]]:
        left = len(errors) - self.limits.errors
        text = f"{left} further errors are not shown"
        return [{"message": text, "extensions": {"code": Code.INTERNAL}}] if left > 0 else []

    def _told(self, error: GraphQLError, request_id: str) -> dict[str, Any]:
        """An error of a field as the client sees it: as it is where the engine made it of the request, else masked and logged."""
        cause = error.original_error
        # The engine's own errors name a place in the query, but for those about values that resolvers gave.
        if cause is None or isinstance(cause, PublicError) or (isinstance(cause, GraphQLError) and cause.nodes):
            return coded(error, Code.INPUT)
        log.error("resolver failed", function=self.function.name, path=error.path, request_id=request_id, exc_info=cause)
        return {**error.formatted, "message": MASKED, "extensions": {"code": Code.INTERNAL, "requestId": request_id}}


async def _completed(running: Awaitable[T], until: float) -> T:
    """The result, if it is there in time. Raises OutOfTime."""
    limit = asyncio.timeout(until - time.monotonic())
    try:
        async with limit:
            return await running
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise OutOfTime from error


def _request_code(errors: Sequence[GraphQLError]) -> str:
    """The code of errors before the first field: wrong variables have a place in the query, an unclear operation has none."""
    return Code.INPUT if any(error.nodes for error in errors) else Code.REQUEST
