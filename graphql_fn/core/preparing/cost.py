"""The cost of a query: a bound on the number of objects in its result, known before it is run.

A field with `first` or `last` counts for the number of objects that it asks for, each with the cost of its selection, as often as
the selection has them. Any other object, and a short list without a size, counts once for each parent. Values count nothing, nor
do the parts that a page is wrapped in. A field that reads more rows than its result has counts once more for every `ROWS` of
them. Objects of the schema are counted one by one, and cost more.

Sizes are the coerced values of arguments, as resolvers get them: a size may come as 5, as 5e0, or by a variable with a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
)
from graphql.execution.values import VariableValues, get_argument_values
from graphql.type import SchemaMetaFieldDef, TypeMetaFieldDef

from graphql_fn.core.limits import META, PAGE
from graphql_fn.core.preparing.introspection import IntrospectionCount

ROWS = 250
"""Rows that a statement reads in the processor time of about one object of a result."""
SCHEMA_OBJECT = 5
"""The cost of an object of the schema: it has many values, and the engine works on all of them without a pause."""
_SIZES = ("first", "last")
_WRAPPERS = ("Connection", "Edge", "PageInfo")

Scans = Mapping[str, Sequence[str]]
"""The tables of which a field reads more rows than its result has, by `Type.field`."""


class CostWalk:
    """Goes through the selections of a validated operation and adds up; stops soon after `most`.

    `scans` are the tables that fields scan, `rows` about how many rows each has.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        document: DocumentNode,
        variables: VariableValues | None,
        *,
        scans: Scans,
        rows: Mapping[str, int],
        most: int,
    ) -> None:
        self.scanned = False
        """Whether a field was found that scans tables."""
        self._schema = schema
        self._fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        self._variables = variables
        self._scans = scans
        self._rows = rows
        self._most = most

    def cost(self, operation: OperationDefinitionNode) -> int:
        """The number of objects that the operation may come to."""
        root = self._schema.get_root_type(operation.operation)
        return 0 if root is None else self._inside(root, operation.selection_set)

    def _inside(self, type_: Any, selections: SelectionSetNode) -> int:
        """The number of objects in the selection on one object of this type."""
        total = 0
        for node in selections.selections:
            if isinstance(node, FieldNode):
                total += self._field(type_, node)
            elif isinstance(node, InlineFragmentNode):
                total += self._inside(self._narrowed(type_, node.type_condition), node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                fragment = self._fragments[node.name.value]
                total += self._inside(self._narrowed(type_, fragment.type_condition), fragment.selection_set)
            if total > self._most:
                break
        return total

    def _narrowed(self, type_: Any, condition: Any) -> Any:
        return type_ if condition is None else self._schema.type_map[condition.name.value]

    def _field(self, parent: Any, node: FieldNode) -> int:
        name = node.name.value
        if name in META:
            count = IntrospectionCount(self._schema, self._collected, most=self._most // SCHEMA_OBJECT)
            definition = SchemaMetaFieldDef if name == "__schema" else TypeMetaFieldDef
            return SCHEMA_OBJECT * count.count([node], self._arguments(definition, node))
        field = getattr(parent, "fields", {}).get(name)
        if field is None:  # __typename
            return 0
        path = f"{parent.name}.{name}"
        self.scanned = self.scanned or path in self._scans
        rows = -(-sum(self._rows.get(table, 0) for table in self._scans.get(path, ())) // ROWS)
        if node.selection_set is None:
            return rows
        type_ = get_named_type(field.type)
        objects = self._inside(type_, node.selection_set) + (not type_.name.endswith(_WRAPPERS))
        if parent.name.endswith(_WRAPPERS):
            return objects + rows
        return self._size(field, node) * max(1, objects) + rows

    def _size(self, field: GraphQLField, node: FieldNode) -> int:
        if not any(name in field.args for name in _SIZES):
            return 1
        for asked in (node, FieldNode(name=node.name, arguments=())):  # the second has the defaults, which null stands for
            given = self._arguments(field, asked)
            sizes: list[int] = [size for name in _SIZES if (size := given.get(name)) is not None]
            if sizes:
                return max(0, *sizes)
        return PAGE

    def _arguments(self, field: GraphQLField, node: FieldNode) -> Mapping[str, Any]:
        """The arguments by their names in the schema; none if they are wrong, which the engine reports."""
        try:
            given = get_argument_values(field, node, self._variables)
        except GraphQLError:
            return {}
        return {name: given[out] for name, argument in field.args.items() if (out := argument.out_name or name) in given}

    def _collected(self, nodes: list[FieldNode]) -> Mapping[str, list[FieldNode]]:
        """The fields of an object, by the key in the result."""
        found: dict[str, list[FieldNode]] = {}

        def collect(selections: SelectionSetNode) -> None:
            for node in selections.selections:
                if isinstance(node, FieldNode):
                    found.setdefault((node.alias or node.name).value, []).append(node)
                elif isinstance(node, InlineFragmentNode):
                    collect(node.selection_set)
                elif isinstance(node, FragmentSpreadNode):
                    collect(self._fragments[node.name.value].selection_set)

        for node in nodes:
            if node.selection_set is not None:
                collect(node.selection_set)
        return found
