"""A model of the pantry in Decimal, which shares no code with it: stock, movements, undoing, codes and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import attrs

ZERO = Decimal(0)
LARGEST = Decimal("9999999.999")


@attrs.define(kw_only=True)
class Moved:
    """A movement; `reversed_by` is the one that undid it."""

    id: str
    change: Decimal
    reverses: Moved | None = None
    reversed_by: Moved | None = None
    counted: Decimal | None = None

    @property
    def counts(self) -> bool:
        """Whether reports have it: it undoes none, and an even number of undoings follows from it."""
        length, last = 0, self
        while last.reversed_by is not None:
            length, last = length + 1, last.reversed_by
        return self.reverses is None and length % 2 == 0


@attrs.define(kw_only=True)
class Kept:
    """A product."""

    code: str
    name: str
    least: Decimal
    stock: Decimal = ZERO
    moved: list[Moved] = attrs.field(factory=list)
    counts: list[tuple[Decimal, Decimal]] = attrs.field(factory=list)

    def refusal(self, change: Decimal) -> str | None:
        """The reason why a change cannot be booked."""
        if self.stock + change < 0:
            return f"insufficient stock: available {self.stock:.3f}, requested {-change:.3f}"
        return "the stock would be more than" if self.stock + change > LARGEST else None

    def book(self, id_: str, change: Decimal, **more: Any) -> Moved:
        """Book a change that is not refused."""
        movement = Moved(id=id_, change=change, **more)
        self.stock += change
        self.moved.append(movement)
        return movement

    def sums(self) -> tuple[Decimal, Decimal]:
        """The sums in and out of the movements that are in effect, without the corrections of stocktakes."""
        effective = [movement.change for movement in self.moved if movement.counts and movement.counted is None]
        return sum((c for c in effective if c > 0), ZERO), -sum((c for c in effective if c < 0), ZERO)

    def corrected(self) -> Decimal:
        """The sum of the differences of stocktakes that are in effect."""
        return sum((moved.change for moved in self.moved if moved.counts and moved.counted is not None), ZERO)


@attrs.define
class Model:
    """The products by code, and the other codes with product and factor."""

    products: dict[str, Kept] = attrs.field(factory=dict)
    codes: dict[str, tuple[str, Decimal]] = attrs.field(factory=dict)

    def stocks(self) -> Mapping[str, Decimal]:
        """The stock of each product."""
        return {code: product.stock for code, product in self.products.items()}

    def low(self) -> set[str]:
        """The products that are low."""
        return {code for code, product in self.products.items() if product.stock <= product.least}

    def to_buy(self) -> Mapping[str, Decimal]:
        """The shopping list."""
        found = {
            code: max(2 * product.least, product.sums()[1]) - product.stock
            for code, product in self.products.items()
            if product.stock <= product.least
        }
        return {code: quantity for code, quantity in found.items() if quantity > 0}

    def movements(self) -> Iterable[tuple[str, Moved]]:
        """All movements with the codes of their products."""
        return ((code, movement) for code, product in self.products.items() for movement in product.moved)
