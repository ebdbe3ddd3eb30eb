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

from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.plain import QueryPlan, plan_of
from graphql_fn.core.shape import TooMuch, measure
from graphql_fn.core.tokens import exceeds

_ABORTED = "Parsing aborted."


@attrs.frozen
class DocumentRefused(Exception):
    """A text that is not run, and why. `over_limit`: it asks for too much, right or wrong."""

    errors: Sequence[GraphQLError]
    over_limit: bool = False


class Document:
    """A document that may be run, and the plans of its operations, made when they are first needed."""

    __slots__ = ("_known", "_root", "_schema", "node")

    def __init__(self, node: DocumentNode, schema: GraphQLSchema, root: Any) -> None:
        self.node = node
        self._schema = schema
        self._root = root
        self._known: dict[str | None, tuple[OperationDefinitionNode | None, QueryPlan | None]] = {}

    def operation(self, name: str | None) -> tuple[OperationDefinitionNode | None, QueryPlan | None]:
        """The operation of this name, if it is clear which one is meant, and its plan, if it is plain enough."""
        known = self._known.get(name)
        if known is None:
            operation = get_operation_ast(self.node, name)
            known = operation, None if operation is None else plan_of(self._schema, self._root, self.node, operation)
            if operation is not None:  # names that there are not are no end of them
                self._known[name] = known
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
        kept: int = 512,
        characters: int = 1_000_000,
    ) -> None:
        self._schema = schema
        self._root = root
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
        return self._remember(text, Document(document, self._schema, self._root))

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
