"""The orders of lists: the columns, the key of an item, and the cursor that has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Literal, cast

import attrs
import msgspec

from graphql_fn.core.errors import PublicError
from graphql_fn.core.limits import LARGEST_PAGE, PAGE
from httpkit import HttpkitError, decode_cursor, encode_cursor
from projections import ListPart, SortOrder

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time in a cursor: any other text is refused, on every database."""


@attrs.frozen
class ListOrder:
    """An order of a list. `attributes` of an item (also as `of.name`) are its key, with the types `kinds`.

    A list with several orders has a `tag` in the cursors of each but the usual one, so that a cursor belongs to one order.
    """

    columns: SortOrder
    attributes: tuple[str, ...]
    kinds: tuple[Any, ...]
    tag: str | None = None

    def directed(self, direction: str | None) -> ListOrder:
        """The same order, `ASC` or `DESC`; None: as it is. The direction that is not the usual one has tagged cursors."""
        if direction is None or (direction == "DESC") is self.columns.descending:
            return self
        columns = attrs.evolve(self.columns, descending=not self.columns.descending)
        return attrs.evolve(self, columns=columns, tag=f"{self.tag or ''}/{direction}")

    def cursor(self, item: Any) -> str:
        """The cursor of an item."""
        return self.encoded(self.key(item))

    def key(self, item: Any) -> tuple[Any, ...]:
        """The key of an item."""
        return tuple(attrgetter(name)(item) for name in self.attributes)

    def encoded(self, key: tuple[Any, ...]) -> str:
        """The cursor with a key."""
        return encode_cursor(key if self.tag is None else (self.tag, *key))

    def part(
        self, *, first: int | None = None, after: str | None = None, last: int | None = None, before: str | None = None
    ) -> ListPart:
        """The part of the list that the arguments of a connection ask for. Raises PublicError."""
        if first is not None and last is not None:
            raise PublicError("give either first or last")
        size = size_of(first) if last is None else size_of(last, name="last")
        after_key, before_key = (self._key(name, text) for name, text in (("after", after), ("before", before)))
        return ListPart(limit=size, after=after_key, before=before_key, backward=last is not None)

    def _key(self, name: str, text: str | None) -> Any:
        if text is None:
            return None
        kinds = self.kinds if self.tag is None else (Literal.__getitem__(self.tag), *self.kinds)
        try:
            key = decode_cursor(text, cast("type[tuple[Any, ...]]", GenericAlias(tuple, kinds)))
        except HttpkitError:
            raise PublicError(f"{name} is not a cursor of this list") from None
        return key if self.tag is None else key[1:]


def size_of(given: int | None, *, name: str = "first", default: int = PAGE, least: int = 0) -> int:
    """The size of a page that an argument asks for; null stands for the default. Raises PublicError."""
    size = default if given is None else given
    if not least <= size <= LARGEST_PAGE:
        raise PublicError(f"{name} must be from {least} to {LARGEST_PAGE}")
    return size


def chosen(orders: Mapping[str, ListOrder], given: Mapping[str, Any] | None) -> ListOrder:
    """The order that an argument `orderBy` names; the first if there is none."""
    if given is None:
        return next(iter(orders.values()))
    return orders[given["field"]].directed(given["direction"])


PLACE = ListOrder(SortOrder(()), ("place",), (int,))
"""The order of a list that never changes: its keys are places in it."""
