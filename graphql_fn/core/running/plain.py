"""Queries so plain that they need no executor: they select values of the root, with arguments known from the text.

An executor is prepared for each request, which takes longer than such a query itself. The plan of such a query has the resolvers,
their arguments and their view of the query. In any other case the engine runs the query from its beginning, without side effects,
since queries have none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLLeafType,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    is_leaf_type,
    is_non_null_type,
)
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.execution.values import get_argument_values
from graphql.pyutils import Path

_VALUES = frozenset({str, int, float, bool})
"""Types of values that need no await."""


@attrs.frozen
class _Field:
    """A field: its key in the result, its resolver with arguments, and the function for the value of its type."""

    key: str
    resolve: Callable[..., Any]
    arguments: dict[str, Any]
    info: GraphQLResolveInfo[Any]
    coerce: Callable[[Any], Any]
    may_be_null: bool


@attrs.frozen
class QueryPlan:
    """How to run a query on `root`."""

    _root: Any
    _fields: Sequence[_Field]

    def run(self, context: Any) -> dict[str, Any] | None:
        """The data of the result; None where the engine is to run the query."""
        data: dict[str, Any] = {}
        try:
            for field in self._fields:
                info = field.info if context is None else field.info._replace(context=context)
                value = field.resolve(self._root, info, **field.arguments)
                if type(value) in _VALUES:
                    value = field.coerce(value)
                elif value is None:
                    if not field.may_be_null:
                        return None
                elif inspect.isawaitable(value):
                    if inspect.iscoroutine(value):
                        value.close()
                    return None
                else:
                    value = field.coerce(value)
                data[field.key] = value
        except Exception:  # noqa: BLE001 - the engine meets it again, and tells of it as it should
            return None
        return data


def plan_of(
    schema: GraphQLSchema, root_value: Any, document: DocumentNode, operation: OperationDefinitionNode
) -> QueryPlan | None:
    """The plan of a validated query, None if it is not that plain."""
    root = schema.query_type
    plain = operation.operation is OperationType.QUERY and not operation.variable_definitions and not operation.directives
    if root is None or not plain:
        return None
    executor = ExecutorThrowingOnIncremental.build(
        schema, document, root_value, operation_name=operation.name.value if operation.name else None
    )
    if isinstance(executor, list):
        return None
    found: dict[str, _Field] = {}
    for node in operation.selection_set.selections:
        definition = root.fields.get(node.name.value) if isinstance(node, FieldNode) and not node.directives else None
        if definition is None or definition.resolve is None or inspect.iscoroutinefunction(definition.resolve):
            return None
        assert isinstance(node, FieldNode)
        key = (node.alias or node.name).value
        leaf = _leaf(definition)
        if leaf is None or key in found:
            return None
        try:
            arguments = get_argument_values(definition, node)
        except GraphQLError:
            return None
        info = executor.build_resolve_info(definition, [node], root, Path(None, key, root.name))
        found[key] = _Field(
            key, definition.resolve, arguments, info, leaf.coerce_output_value, not is_non_null_type(definition.type)
        )
    return QueryPlan(root_value, tuple(found.values()))


def _leaf(field: GraphQLField) -> GraphQLLeafType | None:
    """The type of a field's value, if it is one value."""
    type_ = field.type.of_type if is_non_null_type(field.type) else field.type
    return type_ if is_leaf_type(type_) else None
