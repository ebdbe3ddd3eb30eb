"""The aggregate of a barcode: it names one product, with a pack factor.

A product has any number of them. The code of a product itself is taken by the batch that creates the product, so that no code
ever names two products.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import attrs

from eventlog import Decider
from pantry.domain import gtin
from pantry.domain.errors import BadInput, NotFound, Taken, UnitInUse
from pantry.domain.quantity import LARGEST, ONE, converted, text
from pantry.domain.registry import REGISTRY

CATEGORY = "pantry.barcode"


@REGISTRY.event("BarcodeAssigned")
@attrs.frozen(kw_only=True)
class BarcodeAssigned:
    """The code names a product from now on. `factor`: the quantity that it stands for, in thousandths of the product's unit."""

    code: str
    ean13: str
    factor: int
    at: datetime


@REGISTRY.event("BarcodeRemoved")
@attrs.frozen(kw_only=True)
class BarcodeRemoved:
    """The code names no product any more."""

    at: datetime


BarcodeEvent = BarcodeAssigned | BarcodeRemoved


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Barcode:
    """A code and the product that it names: None if it is free. `factor` is in thousandths."""

    code: str
    ean13: str | None
    factor: int
    at: datetime


def evolve(state: Barcode | None, event: BarcodeEvent) -> Barcode:
    """The barcode after an event."""
    if isinstance(event, BarcodeAssigned):
        return Barcode(code=event.code, ean13=event.ean13, factor=event.factor, at=event.at)
    assert state is not None, "a barcode begins with BarcodeAssigned"
    return attrs.evolve(state, ean13=None, at=event.at)


@attrs.frozen(kw_only=True)
class AssignBarcode:
    """Let a code name a product; `factor` in thousandths. The product exists, or is created in the same batch."""

    code: str
    ean13: str
    at: datetime
    factor: int = ONE


@attrs.frozen(kw_only=True)
class ConvertBarcode:
    """Let the code stand for the same quantity in another unit of its product; see `UnitChanged` for `factor`."""

    code: str
    ean13: str
    factor: Decimal
    at: datetime


@attrs.frozen(kw_only=True)
class RemoveBarcode:
    """Free a code."""

    code: str
    at: datetime


BarcodeCommand = AssignBarcode | ConvertBarcode | RemoveBarcode


def decide(command: BarcodeCommand, state: Barcode | None) -> Sequence[BarcodeEvent]:
    """Return the events of a command. Raises BadInput, NotFound, Taken, UnitInUse."""
    holder = None if state is None else state.ean13
    if isinstance(command, RemoveBarcode):
        if holder is None:
            raise NotFound(f"no product has the code {command.code}")
        if holder == command.code:
            raise Taken(f"{command.code} is the key of a product: it cannot be removed")
        return [BarcodeRemoved(at=command.at)]
    if isinstance(command, ConvertBarcode):
        if state is None or holder != command.ean13:
            return []  # it was removed in the meantime
        if (factor := converted(state.factor, Fraction(command.factor))) is None or not factor:
            raise UnitInUse(f"the code {command.code} stands for {text(state.factor)}, which cannot be converted exactly")
        return [BarcodeAssigned(code=command.code, ean13=command.ean13, factor=factor, at=command.at)]
    if (wrong := gtin.problem(command.code)) is not None:
        raise BadInput("code", wrong)
    if not 0 < command.factor <= LARGEST:
        raise BadInput("factor", f"must be greater than 0 and at most {text(LARGEST)}")
    if command.code == command.ean13 and command.factor != ONE:
        raise BadInput("factor", "the key of a product stands for one")
    if holder is not None and holder != command.ean13:
        raise Taken(f"the code {command.code} names the product {holder}")
    if state is not None and (holder, state.factor) == (command.ean13, command.factor):
        return []
    return [BarcodeAssigned(code=command.code, ean13=command.ean13, factor=command.factor, at=command.at)]


BARCODE: Decider[Barcode, BarcodeCommand, BarcodeEvent] = Decider(CATEGORY, decide, evolve, initial=None)
