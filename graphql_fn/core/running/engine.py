"""The engine for one request: graphql-core's executor, which keeps to the time and lets others have their turns."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Sequence
from typing import Any, cast

from graphql import ExecutionResult, GraphQLList, GraphQLObjectType, GraphQLResolveInfo
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.pyutils import Path

from graphql_fn.core.limits import META
from graphql_fn.core.running.nested import NestedPlan
from graphql_fn.core.running.planning import field_plan
from graphql_fn.core.running.turns import RequestTimeUp, Turns

_FEW = 25
"""Items of a list that are resolved without a look at the time between them."""


class BoundedExecutor(ExecutorThrowingOnIncremental):
    """Resolves fields within `turns`. Fields that do not wait have no other bound on their time."""

    turns: Turns

    def execute_field(
        self, parent_type: GraphQLObjectType, source: Any, field_details_list: Any, path: Path, position_context: None
    ) -> Any:
        """Resolve a field: `__schema` and `__type` by a plan, which is all work without waits. Raises OutOfTime."""
        if time.monotonic() > self.turns.deadline:
            raise RequestTimeUp
        if path.prev is None and field_details_list[0].node.name.value in META:
            plan = field_plan(self, parent_type, str(path.key), field_details_list)
            if plan is not None:
                return self._planned(plan, source, str(path.key))
        return super().execute_field(parent_type, source, field_details_list, path, position_context)

    def complete_list_value(
        self,
        return_type: GraphQLList[Any],
        field_details_list: Any,
        info: GraphQLResolveInfo[Any],
        path: Path,
        result: AsyncIterable[Any] | Iterable[Any],
        position_context: None,
    ) -> Any:
        """Resolve a list, with turns for others between its items unless they are few."""
        if isinstance(result, list | tuple) and len(result) > _FEW:
            result = self._in_turns(result)
        return super().complete_list_value(return_type, field_details_list, info, path, result, position_context)

    async def _planned(self, plan: NestedPlan, source: Any, key: str) -> Any:
        return (await plan.run(source, None, self.turns))[key]

    async def _in_turns(self, items: Sequence[Any]) -> AsyncIterator[Any]:
        for item in items:
            if time.monotonic() > self.turns.until:
                await self.turns.rest()
            yield item


def run(executor: BoundedExecutor, turns: Turns) -> ExecutionResult | Awaitable[ExecutionResult]:
    """The result of the operation of an executor. Raises OutOfTime, also when it is awaited."""
    executor.turns = turns
    # The engine's type also has results that this executor refuses.
    return cast("ExecutionResult | Awaitable[ExecutionResult]", executor.execute_operation())
