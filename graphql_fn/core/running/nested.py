"""Plans of queries with objects, lists and awaited values, which need no executor while nothing fails.

The engine looks up the definition, the arguments and the selection of a field for each object of a list. A plan has them once.
It resolves objects in waves: all fields that need no wait, then all values that are awaited, then the fields of these. If a
value is missing, wrong or an exception, the plan gives up, and the engine runs the query from its beginning, without side
effects, since queries have none. So each error is the engine's own.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, ItemsView, Mapping, Sequence, ValuesView
from functools import partial
from typing import Any

import attrs
from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLID,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLString,
    OperationType,
    Undefined,
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
from graphql_fn.core.running.turns import Turns

_VALUES = frozenset({str, int, float, bool})
"""Types of values that need no await."""


class GaveUp(Exception):
    """The engine is to run the query."""


@attrs.frozen
class SourceResolver:
    """A resolver that needs only the object: `get(source)`."""

    get: Callable[[Any], Any]

    def __call__(self, source: Any, _info: Any) -> Any:
        """Resolve the field, as any resolver."""
        return self.get(source)


@attrs.frozen(eq=False)
class _Form:
    """The form of a value: a leaf with `coerce`, a list of `items`, or an object with a `selection`.

    Values of the type `same` are leaves as they are. `places`: a resolver in it may ask for its path.
    """

    may_be_null: bool
    coerce: Callable[[Any], Any] | None = None
    same: type | None = None
    items: _Form | None = None
    selection: Sequence[_Field] = ()
    places: bool = False


@attrs.frozen(eq=False)
class _Field:
    """A field of an object. `constant` is its value without a resolver. `get` is a resolver that needs only the object."""

    key: str
    parent: str
    form: _Form
    constant: str | None = None
    get: Callable[[Any], Any] | None = None
    resolve: Callable[..., Any] | None = None
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    info: tuple[Any, ...] = ()


@attrs.frozen(eq=False)
class _Awaited:
    """A value that is awaited, and its place in the result: a key of an object, or an index of a list."""

    value: Awaitable[Any]
    form: _Form
    target: Any
    key: Any
    path: Path | None


@attrs.frozen(eq=False)
class NestedPlan:
    """How to run a query with the values of its variables."""

    _fields: Sequence[_Field]

    async def run(self, root: Any, context: Any, turns: Turns) -> dict[str, Any]:
        """Return the data of the result. Raises GaveUp, OutOfTime."""
        run = _Run(context, turns)
        try:
            return await run.result(self._fields, root)
        except Exception as error:
            raise GaveUp from error
        finally:
            await run.close()


class _Run:
    """One run of a plan."""

    def __init__(self, context: Any, turns: Turns) -> None:
        self._context = context
        self._turns = turns
        self._objects: deque[tuple[Sequence[_Field], Any, dict[str, Any], Path | None]] = deque()
        self._awaited: deque[_Awaited] = deque()
        self._tasks: list[asyncio.Future[Any]] = []
        self._running = 0
        self._failed = False
        self._ended: asyncio.Future[None] | None = None

    async def result(self, fields: Sequence[_Field], root: Any) -> dict[str, Any]:
        """Resolve the fields of the query."""
        data: dict[str, Any] = {}
        objects, turns = self._objects, self._turns
        objects.append((fields, root, data, None))
        turns.begin()
        while True:
            while objects:
                self._object(*objects.popleft())
                if time.monotonic() > turns.until:
                    await turns.rest()
            if not self._awaited:
                return data
            await self._wait()

    async def close(self) -> None:
        """Give up the values that are awaited."""
        for one in self._awaited:
            if inspect.iscoroutine(one.value):
                one.value.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
            for task in self._tasks:
                if not task.cancelled():
                    task.exception()  # it is the engine that reports it

    async def _wait(self) -> None:
        """Wait for all awaited values together, and put them into the result. Raises the first exception of a value."""
        turns = self._turns
        waiting: list[tuple[_Awaited, asyncio.Future[Any]]] = []
        while self._awaited:
            one = self._awaited.popleft()
            waiting.append((one, one.value if isinstance(one.value, asyncio.Future) else self._task(one.value)))
            if time.monotonic() > turns.until:
                await turns.rest()
        if self._running and not self._failed:
            self._ended = asyncio.get_running_loop().create_future()
            await self._ended
        for task in self._tasks:
            if task.done():
                task.result()
        self._tasks = []
        turns.begin()
        for one, future in waiting:
            value = future.result() if future.done() else await future
            self._put(one.form, value, one.target, one.key, one.path)
            if time.monotonic() > turns.until:
                await turns.rest()

    def _task(self, value: Awaitable[Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(value)
        self._tasks.append(task)
        self._running += 1
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Future[Any]) -> None:
        """Note the end of a task: the last one, and one that failed, ends the wait."""
        self._running -= 1
        self._failed = self._failed or task.cancelled() or task.exception() is not None
        if (self._failed or not self._running) and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _object(self, fields: Sequence[_Field], source: Any, made: dict[str, Any], path: Path | None) -> None:
        """Resolve the fields of an object. Raises GaveUp, and the exceptions of resolvers."""
        here: Path | None
        for field in fields:
            if field.get is not None:
                value = field.get(source)
                if type(value) is field.form.same:
                    made[field.key] = value
                    continue
                here = Path(path, field.key, field.parent) if field.form.places else None
            elif field.resolve is not None:
                here = Path(path, field.key, field.parent)
                of = field.info
                info: GraphQLResolveInfo[Any] = GraphQLResolveInfo._make(
                    (*of[:_PATH], here, *of[_PATH + 1 : _CONTEXT], self._context, *of[_CONTEXT + 1 :])
                )
                value = field.resolve(source, info, **field.arguments)
            else:
                made[field.key] = field.constant
                continue
            self._put(field.form, value, made, field.key, here)

    def _put(self, form: _Form, value: Any, target: Any, key: Any, path: Path | None) -> None:
        """Put a value into the result, in its form. Raises GaveUp if it does not have the form."""
        if value is None:
            if not form.may_be_null:
                raise GaveUp
            target[key] = None
        elif type(value) not in _VALUES and hasattr(value, "__await__"):
            target[key] = None  # its place among the keys
            self._awaited.append(_Awaited(value, form, target, key, path))
        elif value is Undefined or isinstance(value, Exception):
            raise GaveUp
        elif form.coerce is not None:
            found = form.coerce(value)
            if found is None or found is Undefined:
                raise GaveUp
            target[key] = found
        elif form.items is not None:
            self._put_list(form, form.items, value, target, key, path)
        else:
            made: dict[str, Any] = {}
            target[key] = made
            self._objects.append((form.selection, value, made, path))

    def _put_list(self, form: _Form, items: _Form, value: Any, target: Any, key: Any, path: Path | None) -> None:
        if isinstance(value, list | tuple | ValuesView | ItemsView):
            made: list[Any] = [None] * len(value)
            target[key] = made
            for index, item in enumerate(value):
                self._put(items, item, made, index, Path(path, index, None) if items.places else None)
        elif isinstance(value, AsyncIterable):
            target[key] = None
            self._awaited.append(_Awaited(_listed(value), form, target, key, path))
        else:
            raise GaveUp


_PATH = GraphQLResolveInfo._fields.index("path")
_CONTEXT = GraphQLResolveInfo._fields.index("context")


async def _listed(items: AsyncIterable[Any]) -> list[Any]:
    return [item async for item in items]


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


def _fields(executor: Executor[Any], parent: GraphQLObjectType, grouped: GroupedFieldSet) -> Sequence[_Field]:
    """The fields of a selection. Raises GaveUp if one needs the engine, and GraphQLError for a wrong argument."""
    return tuple(_field(executor, parent, key, details) for key, details in grouped.items())


def _field(executor: Executor[Any], parent: GraphQLObjectType, key: str, details: FieldDetailsList) -> _Field:
    node = details[0].node
    name = node.name.value
    if name == "__typename":
        return _Field(key, parent.name, _Form(may_be_null=False), constant=parent.name)
    definition = executor.schema.get_field(parent, name)
    if definition is None or definition.resolve is None:
        raise GaveUp
    form = _form(executor, definition.type, details)
    if isinstance(definition.resolve, SourceResolver):
        return _Field(key, parent.name, form, get=definition.resolve.get)
    arguments: Mapping[str, Any] = {}
    if definition.args or node.arguments:
        arguments = get_argument_values(definition, node, executor.variable_values, details[0].fragment_variable_values)
    info = executor.build_resolve_info(definition, to_nodes(details), parent, Path(None, key, parent.name))
    if name in META or is_introspection_type(parent):  # these resolvers read only the schema of `info`
        return _Field(key, parent.name, form, get=partial(_looked_up, definition.resolve, info, arguments))
    return _Field(key, parent.name, form, resolve=definition.resolve, arguments=arguments, info=info)


def _looked_up(resolve: Callable[..., Any], info: Any, arguments: Mapping[str, Any], source: Any) -> Any:
    return resolve(source, info, **arguments)


def _form(executor: Executor[Any], type_: GraphQLOutputType, details: FieldDetailsList) -> _Form:
    bare = type_.of_type if is_non_null_type(type_) else type_
    may_be_null = bare is type_
    if is_leaf_type(bare):
        return _Form(may_be_null, bare.coerce_output_value, _SAME.get(bare))
    if is_list_type(bare):
        items = _form(executor, bare.of_type, details)
        return _Form(may_be_null, items=items, places=items.places)
    if not is_object_type(bare) or bare.is_type_of is not None:
        raise GaveUp
    found = executor.collect_subfields(bare, details)
    if found.new_defer_usages:
        raise GaveUp
    fields = _fields(executor, bare, found.grouped_field_set)
    return _Form(may_be_null, selection=fields, places=any(one.resolve or one.form.places for one in fields))


_SAME: Mapping[Any, type] = {GraphQLString: str, GraphQLID: str, GraphQLBoolean: bool}
"""Types of values that the scalars of the language return as they are."""
