"""Pages as Relay has them: connections, edges and cursors (https://relay.dev/graphql/connections.htm, version of 2020)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import attrs

from graphql_fn.readmodels.paging import PLACE, ListOrder
from projections import FoundPart, ListPart

T = TypeVar("T")


@attrs.frozen
class PageEdge(Generic[T]):
    """An item of a page, and its position."""

    node: T
    _encoded: Callable[[], str]

    @property
    def cursor(self) -> str:
        """Its position."""
        return self._encoded()


@attrs.frozen
class PageInfo:
    """Information about a page: its first and last cursor, and whether there are pages before and after it."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


Count = Callable[[], Awaitable[int] | int]


@attrs.frozen
class PageConnection(Generic[T]):
    """A page of a list: `nodes` are its items alone.

    `cursor` gives the cursor of an item by its index in the page, `count` the length of the list.
    """

    nodes: Sequence[T]
    _has_next: bool
    _has_previous: bool
    _cursor: Callable[[int], str]
    _count: Count

    @property
    def edges(self) -> Sequence[PageEdge[T]]:
        """The items with their cursors."""
        return [PageEdge(node, partial(self._cursor, index)) for index, node in enumerate(self.nodes)]

    @property
    def total_count(self) -> Awaitable[int] | int:
        """The length of the list."""
        return self._count()

    @property
    def page_info(self) -> PageInfo:
        """Whether there is more, and the first and the last cursor of this page."""
        ends = (self._cursor(0), self._cursor(len(self.nodes) - 1)) if self.nodes else (None, None)
        return PageInfo(self._has_next, self._has_previous, *ends)


def connection(found: FoundPart[T] | None, part: ListPart, order: ListOrder, count: Count) -> PageConnection[T]:
    """The page that was found (None: the list is empty).

    Behind the page's start (its end, backward) there is something if a cursor names a thing there.
    """
    items, more = ((), False) if found is None else (found.items, found.more)
    has_next = part.before is not None if part.backward else more
    has_previous = more if part.backward else part.after is not None
    return PageConnection(items, has_next, has_previous, lambda index: order.cursor(items[index]), count)


def of_list(items: Sequence[T], places: Sequence[int], name: str, **arguments: Any) -> PageConnection[T]:
    """The page of the items at these rising places of a list that never changes. Raises PublicError.

    A cursor is a place. It belongs to the list with this name.
    """
    order = attrs.evolve(PLACE, tag=name)

    def between(start: int, end: int) -> Sequence[T]:
        return [items[place] for place in places[start:end]]

    return _within(len(places), between, order, lambda index: (places[index],), arguments)


def of_sorted(items: Sequence[T], order: ListOrder, **arguments: Any) -> PageConnection[T]:
    """The page of a whole list, sorted by the keys of an order: a cursor is the key of an item. Raises PublicError."""
    return _within(len(items), lambda start, end: items[start:end], order, lambda index: order.key(items[index]), arguments)


def _within(
    length: int,
    between: Callable[[int, int], Sequence[T]],
    order: ListOrder,
    key: Callable[[int], tuple[Any, ...]],
    arguments: dict[str, Any],
) -> PageConnection[T]:
    """The page of a list of this length whose keys rise. `between` gives the items from one index to another."""
    part, indexes = order.part(**arguments), range(length)
    start = 0 if part.after is None else bisect_right(indexes, part.after, key=key)
    end = length if part.before is None else bisect_left(indexes, part.before, key=key)
    start, end = (max(start, end - part.limit), end) if part.backward else (start, min(end, start + part.limit))
    page = between(start, end)
    has_next = start + len(page) < length
    return PageConnection(page, has_next, start > 0, lambda index: order.encoded(key(start + index)), lambda: length)
