"""From the text of a query to a document that may be run: read, measured, validated, and remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import attrs
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    get_operation_ast,
    parse,
    specified_rules,
    validate,
)
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental

from graphql_fn.core.cost import CostWalk, Scans, Tables
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.nested import NestedPlan, nested_plan
from graphql_fn.core.plain import QueryPlan, plan_of
from graphql_fn.core.shape import TooMuch, measure
from graphql_fn.core.tokens import exceeds

_ABORTED = "Parsing aborted."


@attrs.frozen
class DocumentRefused(Exception):
    """A text that is not run, and why. `over_limit`: it asks for too much, right or wrong."""

    errors: Sequence[GraphQLError]
    over_limit: bool = False


@attrs.frozen
class Operation:
    """An operation of a document. `plan` runs it without the engine, if it is plain enough; `nested` likewise, without variables.

    `fixed_cost` is its cost, if that is the same for all requests: None if variables or the sizes of tables change it.
    """

    node: OperationDefinitionNode
    plan: QueryPlan | None
    nested: NestedPlan | None
    fixed_cost: int | None


class Document:
    """A document that may be run, and its operations, prepared when they are first needed."""

    __slots__ = ("_known", "_owner", "node")

    def __init__(self, node: DocumentNode, owner: Documents) -> None:
        self.node = node
        self._owner = owner
        self._known: dict[str | None, Operation] = {}

    def operation(self, name: str | None) -> Operation | None:
        """The operation of this name, if it is clear which one is meant."""
        known = self._known.get(name)
        if known is None:
            node = get_operation_ast(self.node, name)
            if node is None:
                return None  # it is not kept: there is no end of names that no operation has
            known = self._known[name] = self._owner.prepared(self.node, node)
        return known


class Documents:
    """The documents of one schema, whose queries are resolved on `root`.

    Valid documents are kept: at most `kept`, and `characters` of text in all.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        limits: QueryLimits,
        *,
        introspection: bool,
        suggestions: bool,
        root: Any = None,
        scans: Scans | None = None,
        kept: int = 512,
        characters: int = 1_000_000,
    ) -> None:
        self._schema = schema
        self._root = root
        self._scans = scans or {}
        self._limits = limits
        self._rules = specified_rules if introspection else (*specified_rules, NoSchemaIntrospectionCustomRule)
        self._suggestions = suggestions
        self._kept = kept
        self._room = characters
        self._known: OrderedDict[str, Document] = OrderedDict()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, text: str) -> Document:
        """The document of a text. Raises DocumentRefused."""
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            self.hits += 1
            return known
        self.misses += 1
        document = self._parse(text)
        try:
            measure(document, self._limits)
        except TooMuch as error:
            raise DocumentRefused([GraphQLError(str(error))], over_limit=True) from error
        errors = validate(
            self._schema, document, self._rules, max_errors=self._limits.errors, hide_suggestions=not self._suggestions
        )
        if errors:
            raise DocumentRefused(errors)
        return self._remember(text, Document(document, self))

    def prepared(self, document: DocumentNode, operation: OperationDefinitionNode) -> Operation:
        """An operation of a valid document, with its plan and its cost."""
        walk = CostWalk(self._schema, document, None, Tables(scans=self._scans), most=self._limits.cost)
        found = walk.cost(operation)
        is_fixed = not operation.variable_definitions and not walk.scanned
        plan = plan_of(self._schema, self._root, document, operation)
        nested = None if operation.variable_definitions else self._nested(document, operation)
        return Operation(operation, plan, nested, found if is_fixed else None)

    def _nested(self, document: DocumentNode, operation: OperationDefinitionNode) -> NestedPlan | None:
        name = operation.name.value if operation.name else None
        executor = ExecutorThrowingOnIncremental.build(self._schema, document, self._root, operation_name=name)
        return None if isinstance(executor, list) else nested_plan(executor)

    def _parse(self, text: str) -> DocumentNode:
        limits = self._limits
        if len(text) > limits.source:
            raise DocumentRefused([GraphQLError(f"the query is longer than {limits.source} characters")], over_limit=True)
        if (excess := exceeds(text, limits.tokens)) is not None:
            raise DocumentRefused([GraphQLError(excess)], over_limit=True)
        try:
            return parse(text, max_lexical_tokens=limits.tokens, max_comments=limits.tokens)
        except GraphQLSyntaxError as error:
            raise DocumentRefused([error], over_limit=error.message.endswith(_ABORTED)) from error

    def _remember(self, text: str, document: Document) -> Document:
        self._known[text] = document
        self._room -= len(text)
        while len(self._known) > self._kept or self._room < 0:
            oldest, _ = self._known.popitem(last=False)
            self._room += len(oldest)
        return document
