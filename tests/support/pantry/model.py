"""A model of the pantry in Decimal, which shares no code with it: stock, movements, undoing, units, codes and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs

ZERO = Decimal(0)
LARGEST = Decimal("9999999.999")


@attrs.define(kw_only=True)
class Moved:
    """A movement; `reversed_by` is the one that undid it. `after` is the stock after it, `unit` and `scale` are of its time."""

    id: str
    change: Decimal
    after: Decimal
    unit: str
    scale: Fraction
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
    """A product. `scale`: how many of its unit one of its first unit is."""

    code: str
    name: str
    least: Decimal
    stock: Decimal = ZERO
    unit: str = "kg"
    scale: Fraction = Fraction(1)
    moved: list[Moved] = attrs.field(factory=list)
    counts: list[tuple[Decimal, Decimal, str]] = attrs.field(factory=list)

    def refusal(self, change: Decimal) -> str | None:
        """The reason why a change cannot be booked."""
        if self.stock + change < 0:
            return f"insufficient stock: available {self.stock:.3f}, requested {-change:.3f}"
        return "the stock would be more than" if self.stock + change > LARGEST else None

    def book(self, id_: str, change: Decimal, **more: Any) -> Moved:
        """Book a change that is not refused."""
        self.stock += change
        movement = Moved(id=id_, change=change, after=self.stock, unit=self.unit, scale=self.scale, **more)
        self.moved.append(movement)
        return movement

    def opposite(self, movement: Moved) -> Decimal | None:
        """The change that makes up for a movement, in the present unit; None if it is not exact."""
        return exact(-movement.change, self.scale / movement.scale)

    def now(self, movement: Moved) -> Fraction:
        """The change of a movement in the present unit."""
        return Fraction(movement.change) * self.scale / movement.scale

    def sums(self) -> tuple[Decimal, Decimal]:
        """The sums in and out of the movements that are in effect, without the corrections of stocktakes."""
        effective = [self.now(movement) for movement in self.moved if movement.counts and movement.counted is None]
        return rounded([c for c in effective if c > 0]), rounded([-c for c in effective if c < 0])

    def corrected(self) -> Decimal:
        """The sum of the differences of stocktakes that are in effect."""
        return rounded([self.now(moved) for moved in self.moved if moved.counts and moved.counted is not None])

    def converts(self, factor: Decimal, codes: Iterable[Decimal]) -> bool:
        """Whether stock, minimum and the factors of `codes` are exact in another unit; if so, the product has it."""
        stock, least = exact(self.stock, Fraction(factor)), exact(self.least, Fraction(factor))
        if stock is None or least is None or any(exact(code, Fraction(factor)) is None for code in codes):
            return False
        self.stock, self.least = stock, least
        self.scale *= Fraction(factor)
        return True


def exact(quantity: Decimal, factor: Fraction) -> Decimal | None:
    """A quantity times a factor; None if that has more than three decimal places, or is too large."""
    thousandths = Fraction(quantity) * factor * 1000
    return Decimal(int(thousandths)) / 1000 if thousandths.denominator == 1 and abs(thousandths) <= LARGEST * 1000 else None


def rounded(changes: Iterable[Fraction]) -> Decimal:
    """The sum in thousandths, as a report has it."""
    return Decimal(round(sum(changes, Fraction()) * 1000)) / 1000


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
