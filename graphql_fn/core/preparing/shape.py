"""How large a parsed document is: depth, aliases, fields, before anything expensive is done with it.

Fragments count in each place of use, as they would be run. Documents come here unvalidated: fragments may be unknown or contain
themselves, both of which validation reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphql import (
    DocumentNode,
    ExecutableDefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableDefinitionNode,
)

from graphql_fn.core.limits import INTROSPECTION_DEPTH, META, QueryLimits


class TooMuch(Exception):
    """A limit is exceeded; the text names it."""


def measure(document: DocumentNode, limits: QueryLimits) -> None:
    """Raises TooMuch where the document passes a limit. Takes time proportional to `limits.fields` at most."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    walk = _SelectionWalk(fragments, limits)
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode):
            walk.count_directives(node)
            for variable in node.variable_definitions or ():
                walk.count_directives(variable)
        if isinstance(node, OperationDefinitionNode):
            walk.enter(node.selection_set, 1, limits.depth, is_root=True)
        elif isinstance(node, FragmentDefinitionNode):  # validated even if it is unused
            walk.enter(node.selection_set, 1, max(limits.depth, INTROSPECTION_DEPTH))


class _SelectionWalk:
    """Goes through the selections of a document and counts."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode], limits: QueryLimits) -> None:
        self._fragments = fragments
        self._limits = limits
        self._aliases = self._repeats = 0
        self._steps = 0

    def enter(self, selections: SelectionSetNode, depth: int, deepest: int, *, is_root: bool = False) -> None:
        """Count what is in a selection set at this depth, and below it."""
        limits = self._limits
        fields = self._flat(selections, ())
        if is_root and len(fields) > limits.root_fields:
            raise TooMuch(f"the operation has more than {limits.root_fields} fields at its root")
        if fields and depth > deepest:
            raise TooMuch(f"the query is nested deeper than {deepest} levels")
        self._repeats += len(fields) - len({(field.alias or field.name).value for field in fields})
        if self._repeats > limits.repeats:
            raise TooMuch(f"a selection repeats the same field more than {limits.repeats} times")
        for field in fields:
            if field.selection_set is not None:
                meta = field.name.value in META
                self.enter(field.selection_set, depth + 1, max(deepest, INTROSPECTION_DEPTH) if meta else deepest)

    def _flat(self, selections: SelectionSetNode, inside: Sequence[str]) -> list[FieldNode]:
        """The fields of a selection set, with the fields of its fragments. `inside`: the fragments that this is in."""
        found: list[FieldNode] = []
        for node in selections.selections:
            self._steps += 1
            if self._steps > self._limits.fields:
                raise TooMuch(f"the query comes to more than {self._limits.fields} fields")
            self.count_directives(node)
            if isinstance(node, FieldNode):
                self._count_alias(node)
                found.append(node)
            elif isinstance(node, InlineFragmentNode):
                found += self._flat(node.selection_set, inside)
            elif isinstance(node, FragmentSpreadNode) and (name := node.name.value) not in inside:
                fragment = self._fragments.get(name)
                if fragment is not None:
                    found += self._flat(fragment.selection_set, (*inside, name))
        return found

    def count_directives(self, node: ExecutableDefinitionNode | SelectionNode | VariableDefinitionNode) -> None:
        """Raises TooMuch for a place with more directives than the limit."""
        if len(node.directives or ()) > self._limits.directives:
            raise TooMuch(f"a place in the query has more than {self._limits.directives} directives")

    def _count_alias(self, field: FieldNode) -> None:
        self._aliases += field.alias is not None
        if self._aliases > self._limits.aliases:
            raise TooMuch(f"the query renames more than {self._limits.aliases} fields")
