"""The number of objects that a selection on the schema has in its result: counted on the schema itself.

Introspection has no page sizes, so the text of such a query does not bound its result: `types { fields { type { fields } } }` has
more objects at each level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from graphql import FieldNode, GraphQLList, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, get_named_type
from graphql.type import SchemaMetaFieldDef, TypeMetaFieldDef

Collected = Mapping[str, list[FieldNode]]
_All = dict[int, tuple[Any, int]]


class IntrospectionCount:
    """Counts objects of a schema. `collect` gives the fields of nodes at one object, by the key in the result."""

    def __init__(self, schema: GraphQLSchema, collect: Callable[[list[FieldNode]], Collected], *, most: int) -> None:
        """`most`: the count at which it stops."""
        self._info = SimpleNamespace(schema=schema)
        self._schema = schema
        self._collect = collect
        self._most = most
        self._total = 0

    def count(self, nodes: list[FieldNode], arguments: Mapping[str, Any]) -> int:
        """The objects in the result of the nodes of one field `__schema` or `__type`."""
        is_schema = nodes[0].name.value == "__schema"
        definition = SchemaMetaFieldDef if is_schema else TypeMetaFieldDef
        found: Any = self._schema if is_schema else self._schema.get_type(str(arguments.get("name")))
        if found is None:
            return 0
        self._total = 1
        self._inside(get_named_type(definition.type), {id(found): (found, 1)}, nodes)
        return self._total

    def _inside(self, type_: Any, parents: _All, nodes: list[FieldNode]) -> None:
        """Count below these objects, each of which is in the result a number of times."""
        assert isinstance(type_, GraphQLObjectType)
        for same in self._collect(nodes).values():
            field = type_.fields.get(same[0].name.value)
            if field is None or same[0].selection_set is None or field.resolve is None:
                continue
            options = {"includeDeprecated": True} if "includeDeprecated" in field.args else {}
            children: _All = {}
            for parent, times in parents.values():
                for child in _listed(field.type, field.resolve(parent, self._info, **options)):
                    before = children.get(id(child))
                    children[id(child)] = child, times + (before[1] if before else 0)
                    self._total += times
                if self._total > self._most:
                    return
            if children:
                self._inside(get_named_type(field.type), children, same)


def _listed(type_: Any, value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    bare = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
    return value if isinstance(bare, GraphQLList) else (value,)
