"""The cost of a query: a bound on the number of objects in its result, known before it is run.

A field with `first` or `last` counts for the number of objects that it asks for, each with the cost of its selection. Any other
object counts once for each parent. Values count nothing, nor do the parts that a page is wrapped in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
)

from graphql_fn.core.limits import PAGE

_SIZES = ("first", "last")
_WRAPPERS = ("Connection", "Edge")


def has_pages(schema: GraphQLSchema) -> bool:
    """Whether any field of the schema has pages: without them a query's text bounds what it comes to."""
    types = (type_ for type_ in schema.type_map.values() if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType))
    return any(name in field.args for type_ in types for field in type_.fields.values() for name in _SIZES)


def cost(
    schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any] | None
) -> int:
    """The number of objects that a validated operation may come to."""
    given = dict(variables or {})
    for definition in operation.variable_definitions or ():
        if definition.default_value is not None:
            given.setdefault(definition.variable.name.value, _literal(definition.default_value, {}))
    root = schema.get_root_type(operation.operation)
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    return 0 if root is None else _Walk(schema, fragments, given).inside(root, operation.selection_set)


class _Walk:
    """Goes through the selections of an operation and adds up."""

    def __init__(
        self, schema: GraphQLSchema, fragments: Mapping[str, FragmentDefinitionNode], variables: Mapping[str, Any]
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._variables = variables

    def inside(self, type_: Any, selections: SelectionSetNode) -> int:
        """The number of objects in the selection on one object of this type."""
        total = 0
        for node in selections.selections:
            if isinstance(node, FieldNode):
                total += self._field(type_, node)
            elif isinstance(node, InlineFragmentNode):
                total += self.inside(self._narrowed(type_, node.type_condition), node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                fragment = self._fragments[node.name.value]
                total += self.inside(self._narrowed(type_, fragment.type_condition), fragment.selection_set)
        return total

    def _narrowed(self, type_: Any, condition: Any) -> Any:
        return type_ if condition is None else self._schema.type_map[condition.name.value]

    def _field(self, parent: Any, node: FieldNode) -> int:
        field = getattr(parent, "fields", {}).get(node.name.value)
        if field is None or node.selection_set is None:  # introspection, or a value
            return 0
        type_ = get_named_type(field.type)
        below = self.inside(type_, node.selection_set)
        if parent.name.endswith(_WRAPPERS):
            return below
        return self._size(field.args, node) * (below + 1)

    def _size(self, parameters: Mapping[str, Any], node: FieldNode) -> int:
        if not any(name in parameters for name in _SIZES):
            return 1
        given = {argument.name.value: _literal(argument.value, self._variables) for argument in node.arguments or ()}
        sizes = [size for name in _SIZES if isinstance(size := given.get(name), int)]
        return max(0, *sizes) if sizes else PAGE


def _literal(node: ValueNode, variables: Mapping[str, Any]) -> Any:
    if isinstance(node, VariableNode):
        return variables.get(node.name.value)
    return int(node.value) if isinstance(node, IntValueNode) else None
