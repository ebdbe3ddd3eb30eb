"""The engine for one request: graphql-core's executor, which looks at the time before each field."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, cast

from graphql import ExecutionResult, GraphQLObjectType
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.pyutils import Path


class OutOfTime(BaseException):
    """The time of a request is over. It is no Exception, which the engine would make an error of one field."""


class BoundedExecutor(ExecutorThrowingOnIncremental):
    """Resolves fields until `deadline`, a time of `time.monotonic`. Fields that do not wait have no other bound on their time."""

    deadline: float

    def execute_field(
        self, parent_type: GraphQLObjectType, source: Any, field_details_list: Any, path: Path, position_context: None
    ) -> Any:
        """Resolve a field. Raises OutOfTime."""
        if time.monotonic() > self.deadline:
            raise OutOfTime
        return super().execute_field(parent_type, source, field_details_list, path, position_context)


def run(executor: BoundedExecutor, deadline: float) -> ExecutionResult | Awaitable[ExecutionResult]:
    """The result of the operation of an executor. Raises OutOfTime, also when it is awaited."""
    executor.deadline = deadline
    # The engine's type also has results that this executor refuses.
    return cast("ExecutionResult | Awaitable[ExecutionResult]", executor.execute_operation())
