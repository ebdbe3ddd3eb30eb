"""Plans of queries with objects, lists and awaited values, which need no executor while nothing fails.

The engine looks up the definition, the arguments and the selection of a field for each object of a list. A plan has them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLID,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLString,
    OperationType,
    is_introspection_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet, collect_fields
from graphql.execution.executor import Executor, to_nodes
from graphql.execution.values import get_argument_values
from graphql.pyutils import Path

from graphql_fn.core.limits import META
from graphql_fn.core.running.nested import FieldPlan, FormPlan, GaveUp, NestedPlan


@attrs.frozen
class SourceResolver:
    """A resolver that needs only the object: `get(source)`."""

    get: Callable[[Any], Any]

    def __call__(self, source: Any, _info: Any) -> Any:
        """Resolve the field, as any resolver."""
        return self.get(source)


def nested_plan(executor: Executor[Any]) -> NestedPlan | None:
    """The plan of the query of an executor without a context; None if the engine is to run it."""
    root, operation = executor.schema.query_type, executor.operation
    if root is None or operation.operation is not OperationType.QUERY:
        return None
    try:
        found = collect_fields(executor.schema, executor.fragments, executor.variable_values, root, operation)
        if found.new_defer_usages:
            return None
        return NestedPlan(_fields(executor, root, found.grouped_field_set))
    except (GaveUp, GraphQLError, RecursionError):
        return None


def field_plan(executor: Executor[Any], parent: GraphQLObjectType, key: str, details: FieldDetailsList) -> NestedPlan | None:
    """The plan of one field of an object; None if the engine is to resolve it."""
    try:
        return NestedPlan((_field(executor, parent, key, details),))
    except (GaveUp, GraphQLError, RecursionError):
        return None


def _fields(executor: Executor[Any], parent: GraphQLObjectType, grouped: GroupedFieldSet) -> Sequence[FieldPlan]:
    """The fields of a selection. Raises GaveUp if one needs the engine, and GraphQLError for a wrong argument."""
    return tuple(_field(executor, parent, key, details) for key, details in grouped.items())


def _field(executor: Executor[Any], parent: GraphQLObjectType, key: str, details: FieldDetailsList) -> FieldPlan:
    node = details[0].node
    name = node.name.value
    if name == "__typename":
        return FieldPlan(key, parent.name, FormPlan(may_be_null=False), constant=parent.name)
    definition = executor.schema.get_field(parent, name)
    if definition is None or definition.resolve is None:
        raise GaveUp
    form = _form(executor, definition.type, details)
    if isinstance(definition.resolve, SourceResolver):
        return FieldPlan(key, parent.name, form, get=definition.resolve.get)
    arguments: Mapping[str, Any] = {}
    if definition.args or node.arguments:
        arguments = get_argument_values(definition, node, executor.variable_values, details[0].fragment_variable_values)
    info = executor.build_resolve_info(definition, to_nodes(details), parent, Path(None, key, parent.name))
    if name in META or is_introspection_type(parent):  # these resolvers read only the schema of `info`
        return FieldPlan(key, parent.name, form, get=partial(_looked_up, definition.resolve, info, arguments))
    return FieldPlan(key, parent.name, form, resolve=definition.resolve, arguments=arguments, info=info)


def _looked_up(resolve: Callable[..., Any], info: Any, arguments: Mapping[str, Any], source: Any) -> Any:
    return resolve(source, info, **arguments)


def _form(executor: Executor[Any], type_: GraphQLOutputType, details: FieldDetailsList) -> FormPlan:
    bare = type_.of_type if is_non_null_type(type_) else type_
    may_be_null = bare is type_
    if is_leaf_type(bare):
        return FormPlan(may_be_null, bare.coerce_output_value, _SAME.get(bare))
    if is_list_type(bare):
        items = _form(executor, bare.of_type, details)
        return FormPlan(may_be_null, items=items, places=items.places)
    if not is_object_type(bare) or bare.is_type_of is not None:
        raise GaveUp
    found = executor.collect_subfields(bare, details)
    if found.new_defer_usages:
        raise GaveUp
    fields = _fields(executor, bare, found.grouped_field_set)
    return FormPlan(may_be_null, selection=fields, places=any(one.resolve or one.form.places for one in fields))


_SAME: Mapping[Any, type] = {GraphQLString: str, GraphQLID: str, GraphQLBoolean: bool}
"""Types of values that the scalars of the language return as they are."""
