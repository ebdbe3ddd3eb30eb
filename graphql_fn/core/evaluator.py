"""Runs requests on a function: bounded, with the errors of its resolvers masked."""

from __future__ import annotations

import contextlib
import inspect
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from typing import Any

import structlog
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSyntaxError,
    OperationType,
    create_source_event_stream,
)

from graphql_fn.core.context import NotAnswered, RequestContext
from graphql_fn.core.errors import Code, PublicError, coded, masked
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.documents import Documents, ParsedOperation
from graphql_fn.core.preparing.preparation import Preparation
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import OperationResult, QueryOutcome, RequestRefused
from graphql_fn.core.running.engine import BoundedExecutor, run
from graphql_fn.core.running.nested import GaveUp, NestedPlan
from graphql_fn.core.running.turns import RequestTimeUp, Turns
from graphql_fn.core.subscribing import NOTHING, SubscriptionEvent, SubscriptionUpdate

log = structlog.get_logger(__name__)

_CODES = {QueryOutcome.REFUSED: Code.VALIDATION, QueryOutcome.EXECUTED: Code.INPUT}
"""Codes of errors of requests that were not run; others have the name of the outcome."""


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
        suggested = introspection if suggestions is None else suggestions
        self.documents = Documents(
            function.schema,
            self.limits,
            introspection=introspection,
            suggestions=suggested,
            root=function.root,
            scans=function.scans,
        )
        self._preparation = Preparation(function, self.documents, self.limits, suggested)

    async def evaluate(self, request: GraphQLRequest) -> OperationResult:
        """Return the result of a request, with exceptions of resolvers as errors. Only defects of the engine are raised."""
        deadline = time.monotonic() + self.limits.seconds
        known = self.documents.known(request.query, request.operation)
        plan = None if known is None else known.plan
        if known is not None and plan is not None and plan.is_flat and not known.scans and request.min_sequence is None:
            data = plan.run_flat(self.function.root, self.function.context(request))
            if data is not None:
                return OperationResult({"data": data}, QueryOutcome.EXECUTED) if time.monotonic() <= deadline else self._late()
        turns = Turns(deadline)
        operation = await self._prepared(request, known, turns)
        return operation if isinstance(operation, OperationResult) else await self._once(operation, request, turns)

    async def subscribe(self, request: GraphQLRequest) -> OperationResult | AsyncGenerator[SubscriptionUpdate, None]:
        """Yield the results of a subscription as its events come, or the one result of any other or refused request.

        The generator is to be closed. It raises the errors of its source, except for shown errors, which are its last result.
        Otherwise as `evaluate`.
        """
        turns = self._turns()
        known = self.documents.known(request.query, request.operation)
        operation = await self._prepared(request, known, turns, streams=True)
        if isinstance(operation, OperationResult):
            return operation
        if operation.node.operation is not OperationType.SUBSCRIPTION:
            return await self._once(operation, request, turns)
        executor = operation.executor or self._preparation.executor(operation.document, request)
        executor.context_value, executor.turns = self.function.context(request), turns
        source = create_source_event_stream(executor)
        if inspect.isawaitable(source):
            source = await source
        if isinstance(source, ExecutionResult):
            return self._result(source, request)
        return self._updates(operation.document, request, source)

    async def _updates(
        self, document: DocumentNode, request: GraphQLRequest, source: AsyncIterable[SubscriptionEvent]
    ) -> AsyncGenerator[SubscriptionUpdate, None]:
        events = aiter(source)
        try:
            async for event in events:
                result = None
                if event.value is not NOTHING:
                    executor = self._preparation.executor(document, request)
                    executor.root_value = event.value
                    result = await self._execute(executor, request, self._turns())
                yield SubscriptionUpdate(event.id, result)
        except PublicError as error:
            yield SubscriptionUpdate(None, self._refusal([error], QueryOutcome.EXECUTED))
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _turns(self) -> Turns:
        return Turns(time.monotonic() + self.limits.seconds)

    async def _prepared(
        self, request: GraphQLRequest, known: ParsedOperation | None, turns: Turns, *, streams: bool = False
    ) -> ParsedOperation | OperationResult:
        """The operation of a request, or the refusal of the request."""
        try:
            return await self._preparation.operation(request, known, turns, streams=streams)
        except RequestRefused as refused:
            return self._refusal(refused.errors, refused.outcome, refused.code)
        except RequestTimeUp:
            return self._late()

    async def _once(self, operation: ParsedOperation, request: GraphQLRequest, turns: Turns) -> OperationResult:
        """The one result of a query or a mutation: by its plan, and by the engine if it has none or the plan gives up."""
        plan = operation.plan
        if plan is not None:
            # The context of a plan that gave up has ended: the engine begins with another.
            with contextlib.suppress(GaveUp):
                return await self._within(request, turns, lambda context: self._planned(plan, context, turns))
        executor = operation.executor or self._preparation.executor(operation.document, request)
        return await self._execute(executor, request, turns)

    async def _planned(self, plan: NestedPlan, context: Any, turns: Turns) -> OperationResult:
        data = await turns.wait_for(plan.run(self.function.root, context, turns))
        return OperationResult({"data": data}, QueryOutcome.EXECUTED)

    async def _execute(self, executor: BoundedExecutor, request: GraphQLRequest, turns: Turns) -> OperationResult:
        """The result of the engine, which an executor can give once."""

        async def executed(context: Any) -> OperationResult:
            executor.context_value = context
            turns.begin()
            running = run(executor, turns)
            return self._result(running if isinstance(running, ExecutionResult) else await turns.wait_for(running), request)

        return await self._within(request, turns, executed)

    async def _within(
        self, request: GraphQLRequest, turns: Turns, work: Callable[[Any], Awaitable[OperationResult]]
    ) -> OperationResult:
        """The result of some work in the context of a request."""
        context = self.function.context(request)
        try:
            if not isinstance(context, RequestContext):
                return await work(context)
            try:
                await context.begin(turns)
                result = await work(context)
            except NotAnswered as error:
                return self._refusal([error], error.outcome)
            finally:
                await context.end()
        except RequestTimeUp:
            return self._late()
        return result.extended(context.extensions)

    def _late(self) -> OperationResult:
        error = GraphQLError(f"the query took longer than {self.limits.seconds:g} s")
        return self._refusal([error], QueryOutcome.OUT_OF_TIME)

    def _result(self, found: ExecutionResult, request: GraphQLRequest) -> OperationResult:
        if not found.errors:
            return OperationResult({"data": found.data}, QueryOutcome.EXECUTED)
        if found.data is None and all(error.path is None for error in found.errors):
            return self._refusal(found.errors, QueryOutcome.REFUSED)
        request_id = request.request_id or secrets.token_hex(8)
        told = [self._told(error, request_id) for error in found.errors[: self.limits.errors]]
        return OperationResult({"errors": told + self._left_out(found.errors), "data": found.data}, QueryOutcome.EXECUTED)

    def _refusal(self, errors: Sequence[GraphQLError], outcome: QueryOutcome, code: str | None = None) -> OperationResult:
        """Return the result of a request that was not run: errors and no data."""
        usual = code or _CODES.get(outcome, outcome.name)
        shown = [coded(error, Code.SYNTAX if isinstance(error, GraphQLSyntaxError) else usual) for error in errors]
        return OperationResult({"errors": shown}, outcome)

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
        return {**error.formatted, **masked(requestId=request_id)}
