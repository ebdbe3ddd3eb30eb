"""Quantities on a command line: `1`, `0.75`, `0,75`; at most three decimal places, never rounded."""

from __future__ import annotations

from decimal import Decimal
from functools import wraps
from typing import Any

import click

from pantry.domain.quantity import number, read, text, thousandths
from terminalkit import Function
from terminalkit.display import Cell, Painted


class _Quantity(click.ParamType[float]):
    """A quantity as the API takes it; `least` is the smallest, in thousandths."""

    name = "quantity"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return value
        try:
            return parse(value, self._least)
        except ValueError as error:
            self.fail(str(error), param, ctx)


QUANTITY = _Quantity(1)
"""A quantity that moves."""
AMOUNT = _Quantity(0)
"""A quantity that is there, which may be nothing."""


class _Factor(click.ParamType[float]):
    """How many of one unit one of another is."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return value if isinstance(value, int | float) else float(read(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


FACTOR = _Factor()


def parse(written: str, least: int = 1) -> float:
    """A quantity of at least `least` thousandths, in the form of the API. Raises ValueError, with a text for the user."""
    return _checked(read(written), least)


def product_of(count: float, factor: float) -> float:
    """The quantity of `count` packs. Raises ValueError for more than three decimal places."""
    return _checked(Decimal(str(count)) * Decimal(str(factor)), least=1)


def _checked(value: Decimal, least: int) -> float:
    quantity = thousandths(value)
    if quantity < least:
        raise ValueError(f"must be {text(least)} or more" if least else "must not be negative")
    return number(quantity)


def shown(quantity: float) -> str:
    """A quantity without zeros that say nothing."""
    return f"{quantity:.3f}".rstrip("0").rstrip(".")


def stock_cell(stock: float, *, low: bool) -> Cell:
    """A stock, in red if it is low."""
    return Painted(shown(stock), "red") if low else shown(stock)


def low_cell(*, low: bool) -> Cell:
    """The word for a stock that is low."""
    return Painted("LOW", "red") if low else ""


def remark_options(function: Function) -> Function:
    """Give a command the options for remarks on a movement; it gets the given ones as `remarks`."""

    @click.option("--reason", help="Why, as in `recipe`.")
    @click.option("--notes", help="Anything else that is to be kept with it.")
    @click.option("--by", help="Person who moved it.")
    @wraps(function)
    def with_remarks(*args: Any, reason: str | None, notes: str | None, by: str | None, **kwargs: Any) -> Any:
        given = {"reason": reason, "notes": notes, "created_by": by}
        return function(*args, remarks={name: value for name, value in given.items() if value}, **kwargs)

    return with_remarks
