"""From the text of a query to a document that may be run: read, measured, validated, and remembered."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
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

from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.cost import CostWalk, Scans
from graphql_fn.core.preparing.shape import TooMuch, measure
from graphql_fn.core.preparing.tokens import exceeds
from graphql_fn.core.result import QueryOutcome, RequestRefused
from graphql_fn.core.running.engine import BoundedExecutor
from graphql_fn.core.running.nested import NestedPlan
from graphql_fn.core.running.planning import nested_plan

_ABORTED = "Parsing aborted."


@attrs.frozen(eq=False)
class ParsedOperation:
    """An operation of a document. `plan` runs it without the engine, if there is one for its variables.

    `cost` is its cost without the rows of tables, and `scans` is true if these add to it. `executor` has the values of variables
    of one request, if the operation has variables: all members are as of these values then.
    """

    document: DocumentNode
    node: OperationDefinitionNode
    plan: NestedPlan | None
    cost: int
    scans: bool
    executor: BoundedExecutor | None = None


class Document:
    """A document that may be run, and its operations, prepared when they are first needed."""

    __slots__ = ("_known", "_owner", "node")

    def __init__(self, node: DocumentNode, owner: Documents) -> None:
        self.node = node
        self._owner = owner
        self._known: dict[str | None, ParsedOperation] = {}

    def prepared(self, name: str | None) -> ParsedOperation | None:
        """The operation of this name, if it is prepared."""
        return self._known.get(name)

    def operation(self, name: str | None) -> ParsedOperation | None:
        """The operation of this name, if it is clear which one is meant."""
        known = self._known.get(name)
        if known is None:
            node = get_operation_ast(self.node, name)
            if node is None:
                return None  # it is not kept: there is no end of names that no operation has
            known = self._known[name] = self._owner.prepared(self.node, node)
        return known


class Documents:
    """The documents of one schema, whose queries are resolved on `root`, for all threads.

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
        self._lock = Lock()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._known)

    def known(self, text: str, operation: str | None) -> ParsedOperation | None:
        """The operation of this name in a text, if it is prepared."""
        document = self._known.get(text)
        found = None if document is None else document.prepared(operation)
        if found is not None:
            self.hits += 1
            try:  # noqa: SIM105 - each request of a known text does this
                self._known.move_to_end(text)
            except KeyError:  # another thread has removed it since
                pass
        return found

    def get(self, text: str) -> Document:
        """The document of a text. Raises RequestRefused."""
        with self._lock:
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
            raise _over_limit(GraphQLError(str(error))) from error
        errors = validate(
            self._schema, document, self._rules, max_errors=self._limits.errors, hide_suggestions=not self._suggestions
        )
        if errors:
            raise RequestRefused(errors)
        return self._remember(text, Document(document, self))

    def prepared(self, document: DocumentNode, operation: OperationDefinitionNode) -> ParsedOperation:
        """An operation of a valid document, with its plan and its cost."""
        walk = CostWalk(self._schema, document, None, scans=self._scans, rows={}, most=self._limits.cost)
        cost = walk.cost(operation)
        plan = None if operation.variable_definitions else self._plan(document, operation)
        return ParsedOperation(document, operation, plan, cost, walk.scanned)

    def _plan(self, document: DocumentNode, operation: OperationDefinitionNode) -> NestedPlan | None:
        name = operation.name.value if operation.name else None
        executor = ExecutorThrowingOnIncremental.build(self._schema, document, self._root, operation_name=name)
        return None if isinstance(executor, list) else nested_plan(executor)

    def _parse(self, text: str) -> DocumentNode:
        limits = self._limits
        if len(text) > limits.source:
            raise _over_limit(GraphQLError(f"the query is longer than {limits.source} characters"))
        if (excess := exceeds(text, limits.tokens)) is not None:
            raise _over_limit(GraphQLError(excess))
        try:
            return _without_circles(parse(text, max_lexical_tokens=limits.tokens, max_comments=limits.tokens))
        except GraphQLSyntaxError as error:
            raise (_over_limit(error) if error.message.endswith(_ABORTED) else RequestRefused([error])) from error

    def _remember(self, text: str, document: Document) -> Document:
        with self._lock:
            if (known := self._known.get(text)) is not None:
                return known
            self._known[text] = document
            self._room -= len(text)
            while len(self._known) > self._kept or self._room < 0:
                oldest, _ = self._known.popitem(last=False)
                self._room += len(oldest)
        return document


def _without_circles(document: DocumentNode) -> DocumentNode:
    """A document whose tokens do not know the tokens before them: it is freed at once then, without the collector of cycles.

    No step after the parser reads them. A search for cycles among many tokens would hold up all requests.
    """
    token = document.loc.start_token if document.loc else None
    while token is not None:
        token.prev = None
        token = token.next
    return document


def _over_limit(error: GraphQLError) -> RequestRefused:
    return RequestRefused([error], QueryOutcome.OVER_LIMIT)
