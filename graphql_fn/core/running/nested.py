"""Running a plan of a query with objects, lists and awaited values (`graphql_fn.core.running.planning`).

A run resolves objects in waves: all fields that need no wait, then all values that are awaited, then the fields of these. If a
value is missing, wrong or an exception, the plan gives up, and the engine runs the query from its beginning, without side
effects, since queries have none. So each error is the engine's own.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, ItemsView, Mapping, Sequence, ValuesView
from typing import Any

import attrs
from graphql import (
    GraphQLResolveInfo,
    Undefined,
)
from graphql.pyutils import Path

from graphql_fn.core.running.turns import Turns

_VALUES = frozenset({str, int, float, bool})
"""Types of values that need no await."""


class GaveUp(Exception):
    """The engine is to run the query."""


@attrs.frozen(eq=False)
class FormPlan:
    """The form of a value: a leaf with `coerce`, a list of `items`, or an object with a `selection`.

    Values of the type `same` are leaves as they are. `places`: a resolver in it may ask for its path.
    """

    may_be_null: bool
    coerce: Callable[[Any], Any] | None = None
    same: type | None = None
    items: FormPlan | None = None
    selection: Sequence[FieldPlan] = ()
    places: bool = False


@attrs.frozen(eq=False)
class FieldPlan:
    """A field of an object. `constant` is its value without a resolver. `get` is a resolver that needs only the object."""

    key: str
    parent: str
    form: FormPlan
    constant: str | None = None
    get: Callable[[Any], Any] | None = None
    resolve: Callable[..., Any] | None = None
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    info: Any = None


@attrs.frozen(eq=False)
class _Awaited:
    """A value that is awaited, and its place in the result: a key of an object, or an index of a list."""

    value: Awaitable[Any]
    form: FormPlan
    target: Any
    key: Any
    path: Path | None


@attrs.frozen(eq=False)
class NestedPlan:
    """How to run a query with the values of its variables.

    `is_flat`: it selects values of the root, each by a resolver that is an ordinary function.
    """

    _fields: Sequence[FieldPlan]
    is_flat: bool = attrs.field(init=False)

    @is_flat.default
    def _(self) -> bool:
        return all(
            field.form.coerce is not None and field.resolve is not None and not inspect.iscoroutinefunction(field.resolve)
            for field in self._fields
        )

    def run_flat(self, root: Any, context: Any) -> dict[str, Any] | None:
        """Return the data of a flat query; None if a value is awaited or wrong, so that `run` or the engine is to run it."""
        data: dict[str, Any] = {}
        try:
            for field in self._fields:
                info = field.info if context is None else field.info._replace(context=context)
                value = field.resolve(root, info, **field.arguments)  # type: ignore[misc]  # every field of a flat query has one
                if value is None:
                    if not field.form.may_be_null:
                        return None
                elif type(value) not in _VALUES and inspect.isawaitable(value):
                    if inspect.iscoroutine(value):
                        value.close()
                    return None
                else:
                    value = field.form.coerce(value)  # type: ignore[misc]  # as above
                    if value is None or value is Undefined:
                        return None
                data[field.key] = value
        except Exception:  # noqa: BLE001 - the engine meets it again, and reports it
            return None
        return data

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
        self._objects: deque[tuple[Sequence[FieldPlan], Any, dict[str, Any], Path | None]] = deque()
        self._awaited: deque[_Awaited] = deque()
        self._tasks: list[asyncio.Future[Any]] = []
        self._running = 0
        self._failed = False
        self._ended: asyncio.Future[None] | None = None

    async def result(self, fields: Sequence[FieldPlan], root: Any) -> dict[str, Any]:
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

    def _object(self, fields: Sequence[FieldPlan], source: Any, made: dict[str, Any], path: Path | None) -> None:
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

    def _put(self, form: FormPlan, value: Any, target: Any, key: Any, path: Path | None) -> None:
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

    def _put_list(self, form: FormPlan, items: FormPlan, value: Any, target: Any, key: Any, path: Path | None) -> None:
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
