"""Pages as Relay has them: connections, edges and cursors (https://relay.dev/graphql/connections.htm, version of 2020)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

import attrs

from graphql_fn.core.errors import PublicError
from graphql_fn.core.limits import LARGEST_PAGE, PAGE
from graphql_fn.readmodels.loading import AT_ONCE
from httpkit.errors import HttpkitError
from httpkit.messages.paging import decode_cursor, encode_cursor
from projections.sql import FoundPart, ListPart

T = TypeVar("T")
Key = Callable[[Any], tuple[Any, ...]]


Given: TypeAlias = Sequence[T] | AsyncIterator[T]
"""The items of a list, as the engine takes them."""


def in_turns(items: Sequence[T]) -> Given[T]:
    """The items; with turns of the event loop for others between them if they are many."""
    return items if len(items) <= AT_ONCE else _in_turns(items)


async def _in_turns(items: Sequence[T]) -> AsyncIterator[T]:
    for number, item in enumerate(items, start=1):
        yield item
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)


@attrs.frozen
class Edge(Generic[T]):
    """An item of a page."""

    node: T
    _key: Key

    @property
    def cursor(self) -> str:
        """Its position."""
        return encode_cursor(self._key(self.node))


@attrs.frozen
class PageInfo:
    """Information about a page: its first and last cursor, and whether there are pages before and after it."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@attrs.frozen
class Connection(Generic[T]):
    """A page of a list whose order `key` gives."""

    _found: FoundPart[T]
    _part: ListPart
    _key: Key

    @property
    def nodes(self) -> Given[T]:
        """The items alone."""
        return in_turns(self._found.items)

    @property
    def edges(self) -> Given[Edge[T]]:
        """The items with their cursors."""
        return in_turns([Edge(node, self._key) for node in self._found.items])

    @property
    def page_info(self) -> PageInfo:
        """Whether there is more, and the first and the last cursor of this page.

        Behind the page's start (its end, backward) there is something if a cursor names a thing there.
        """
        items, part = self._found.items, self._part
        return PageInfo(
            self._found.more if not part.backward else part.before is not None,
            self._found.more if part.backward else part.after is not None,
            encode_cursor(self._key(items[0])) if items else None,
            encode_cursor(self._key(items[-1])) if items else None,
        )


def part_of(
    kind: Any, *, first: int | None = None, after: str | None = None, last: int | None = None, before: str | None = None
) -> ListPart:
    """The part that the arguments of a connection ask for; `kind` is the type of the keys in its cursors. Raises Shown."""
    if first is not None and last is not None:
        raise PublicError("give either first or last")
    size = PAGE if first is None and last is None else first if first is not None else last
    assert size is not None
    if not 0 <= size <= LARGEST_PAGE:
        raise PublicError(f"{'last' if first is None else 'first'} must be from 0 to {LARGEST_PAGE}")
    return ListPart(
        limit=size, after=_decoded("after", after, kind), before=_decoded("before", before, kind), backward=last is not None
    )


def _decoded(name: str, text: str | None, kind: Any) -> Any:
    if text is None:
        return None
    try:
        return decode_cursor(text, kind)
    except HttpkitError:
        raise PublicError(f"{name} is not a cursor of this list") from None


def connection(found: FoundPart[T] | None, part: ListPart, key: Key) -> Connection[T]:
    """The page that was found (None: the list is empty)."""
    return Connection(FoundPart((), more=False) if found is None else found, part, key)


PLACE = tuple[int]
"""The keys of a list that is there as a whole: places from 0."""


@attrs.frozen
class _Place:
    """The key of an item of such a list."""

    place: int

    def __call__(self, _: Any) -> tuple[int]:
        return (self.place,)


@attrs.frozen
class _Placed(Generic[T]):
    """A page of such a list."""

    _items: Sequence[T]
    _start: int
    _length: int

    @property
    def nodes(self) -> Given[T]:
        return in_turns(self._items)

    @property
    def edges(self) -> Given[Edge[T]]:
        return in_turns([Edge(node, _Place(place)) for place, node in enumerate(self._items, self._start)])

    @property
    def page_info(self) -> PageInfo:
        end = self._start + len(self._items)
        return PageInfo(
            end < self._length,
            self._start > 0,
            encode_cursor((self._start,)) if self._items else None,
            encode_cursor((end - 1,)) if self._items else None,
        )


def of_list(items: Sequence[T], **arguments: Any) -> _Placed[T]:
    """The page of a list that is there as a whole. Raises Shown."""
    part = part_of(PLACE, **arguments)
    after, before = (cast("tuple[int] | None", key) for key in (part.after, part.before))
    start = 0 if after is None else max(0, after[0] + 1)
    end = len(items) if before is None else max(0, min(len(items), before[0]))
    start, end = (max(start, end - part.limit), end) if part.backward else (start, min(end, start + part.limit))
    return _Placed(items[start:end], min(start, len(items)), len(items))
