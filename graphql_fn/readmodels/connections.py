"""Pages as Relay has them: connections, edges and cursors (https://relay.dev/graphql/connections.htm, version of 2020)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import attrs

from graphql_fn.readmodels.paging import PLACE, ListOrder
from httpkit.messages.paging import encode_cursor
from projections.queries.sql import FoundPart, ListPart

T = TypeVar("T")


@attrs.frozen
class Edge(Generic[T]):
    """An item of a page, and its position."""

    node: T
    _order: ListOrder

    @property
    def cursor(self) -> str:
        """Its position."""
        return self._order.cursor(self.node)


@attrs.frozen
class PageInfo:
    """Information about a page: its first and last cursor, and whether there are pages before and after it."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


Count = Callable[[], Awaitable[int]]


@attrs.frozen
class Connection(Generic[T]):
    """A page of a list in an order. `count` gives the length of the list."""

    _found: FoundPart[T]
    _part: ListPart
    _order: ListOrder
    _count: Count

    @property
    def nodes(self) -> Sequence[T]:
        """The items alone."""
        return self._found.items

    @property
    def edges(self) -> Sequence[Edge[T]]:
        """The items with their cursors."""
        return [Edge(node, self._order) for node in self._found.items]

    @property
    def total_count(self) -> Awaitable[int]:
        """The length of the list."""
        return self._count()

    @property
    def page_info(self) -> PageInfo:
        """Whether there is more, and the first and the last cursor of this page.

        Behind the page's start (its end, backward) there is something if a cursor names a thing there.
        """
        items, part = self._found.items, self._part
        return PageInfo(
            self._found.more if not part.backward else part.before is not None,
            self._found.more if part.backward else part.after is not None,
            self._order.cursor(items[0]) if items else None,
            self._order.cursor(items[-1]) if items else None,
        )


def connection(found: FoundPart[T] | None, part: ListPart, order: ListOrder, count: Count) -> Connection[T]:
    """The page that was found (None: the list is empty)."""
    return Connection(FoundPart((), more=False) if found is None else found, part, order, count)


@attrs.frozen
class _Placed(Generic[T]):
    """A page of a list that is there as a whole. A cursor is the place of an item, from 0."""

    _items: Sequence[T]
    _start: int
    total_count: int

    @property
    def nodes(self) -> Sequence[T]:
        return self._items

    @property
    def edges(self) -> Sequence[_PlacedEdge[T]]:
        return [_PlacedEdge(node, place) for place, node in enumerate(self._items, self._start)]

    @property
    def page_info(self) -> PageInfo:
        end = self._start + len(self._items)
        return PageInfo(
            end < self.total_count,
            self._start > 0,
            encode_cursor((self._start,)) if self._items else None,
            encode_cursor((end - 1,)) if self._items else None,
        )


@attrs.frozen
class _PlacedEdge(Generic[T]):
    """An item of such a page."""

    node: T
    _place: int

    @property
    def cursor(self) -> str:
        return encode_cursor((self._place,))


def of_list(items: Sequence[T], **arguments: Any) -> _Placed[T]:
    """The page of a list that is there as a whole. Raises PublicError."""
    part = PLACE.part(**arguments)
    after, before = (cast("tuple[int] | None", key) for key in (part.after, part.before))
    start = 0 if after is None else max(0, after[0] + 1)
    end = len(items) if before is None else max(0, min(len(items), before[0]))
    start, end = (max(start, end - part.limit), end) if part.backward else (start, min(end, start + part.limit))
    return _Placed(items[start:end], min(start, len(items)), len(items))
