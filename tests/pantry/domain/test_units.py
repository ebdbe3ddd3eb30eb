"""Another unit of a product: its quantities are the same as before, exactly, or the change is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from pantry.domain.barcode import BARCODE, AssignBarcode, BarcodeAssigned, ConvertBarcode
from pantry.domain.errors import BadInput, UndosMoved, UnitInUse
from pantry.domain.ledger import PRODUCT, EditProduct, RecordMovement, UndoMovement
from pantry.domain.product import Details, MovementRecorded, MovementType, ProductCreated, UnitChanged
from pantry.domain.registry import REGISTRY

EAN, PACK = "4006381333931", "14006381333938"
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
FLOUR = Details(name="Flour", description="", unit="kg", min_stock=2500, category_id=None)
GRAMS = attrs.evolve(FLOUR, unit="g", min_stock=2_500_000)
CREATED = ProductCreated(ean13=EAN, details=FLOUR, at=AT)
MOVED = MovementRecorded(
    id="m1", type=MovementType.IN, quantity=2000, stock=2000, reason="", notes="", created_by="", at=AT, unit="kg"
)
TO_GRAMS = UnitChanged(details=GRAMS, factor="1000", scale="1000", stock=2_000_000, at=AT)


def edit(factor: str | None, unit: str = "g", **more: Any) -> EditProduct:
    """The change to another unit, with the minimum."""
    number = None if factor is None else Decimal(factor)
    details = attrs.evolve(FLOUR, unit=unit, min_stock=0)
    return attrs.evolve(EditProduct(ean13=EAN, details=details, at=AT, factor=number, keeps_minimum=True), **more)


def test_a_factor_converts_stock_and_minimum_in_one_event() -> None:
    product = given(PRODUCT, CREATED, MOVED, registry=REGISTRY).when(edit("1000")).then(TO_GRAMS)
    assert product is not None
    assert (product.stock, product.details, product.scale, product.version) == (2_000_000, GRAMS, "1000", 3)


def test_a_minimum_that_is_given_is_in_the_new_unit() -> None:
    details = attrs.evolve(GRAMS, min_stock=7000)
    command = edit("1000", details=details, keeps_minimum=False)
    given(PRODUCT, CREATED, MOVED).when(command).then(attrs.evolve(TO_GRAMS, details=details))


def test_without_a_factor_the_unit_of_a_product_with_movements_stays() -> None:
    given(PRODUCT, CREATED, MOVED).when(edit(None)).then_refused(UnitInUse, match="with `factor` how many g 1 kg is")


@pytest.mark.parametrize(
    ("factor", "unit", "reason"),
    [
        ("1000", "KG ", "the unit is kg already"),
        ("0.333333", "t", "2.500 kg cannot be written in t"),
        ("999999", "mg", "up to 9999999.999"),
        ("0", "g", "must be from 0.000001 to 1000000"),
        ("1000001", "g", "must be from 0.000001 to 1000000"),
    ],
)
def test_a_factor_that_is_not_exact_or_has_no_sense_is_refused(factor: str, unit: str, reason: str) -> None:
    many = attrs.evolve(MOVED, quantity=20_000_000, stock=20_000_000)
    given(PRODUCT, CREATED, many).when(edit(factor, unit)).then_refused(
        BadInput if reason.startswith("must") else UnitInUse, match=reason
    )


def test_a_movement_has_the_unit_of_its_time() -> None:
    command = RecordMovement(id="m2", ean13=EAN, type=MovementType.OUT, quantity=500_000, at=AT)
    expected = attrs.evolve(MOVED, id="m2", type=MovementType.OUT, quantity=500_000, stock=1_500_000, unit="g", scale="1000")
    given(PRODUCT, CREATED, MOVED, TO_GRAMS, registry=REGISTRY).when(command).then(expected)


def test_a_movement_in_another_unit_than_the_product_has_is_refused() -> None:
    command = RecordMovement(id="m2", ean13=EAN, type=MovementType.OUT, quantity=1, at=AT, unit="kg")
    given(PRODUCT, CREATED, MOVED).when(command).then(attrs.evolve(MOVED, id="m2", type=MovementType.OUT, quantity=1, stock=1999))
    given(PRODUCT, CREATED, MOVED, TO_GRAMS).when(command).then_refused(UnitInUse, match="is kept in g, not in kg")


def test_an_undoing_that_was_prepared_in_another_unit_is_prepared_again() -> None:
    undo = UndoMovement(
        id="m2", ean13=EAN, undoes="m1", type=MovementType.IN, quantity=2000, undone=False, undos=0, scale="1", at=AT
    )
    given(PRODUCT, CREATED, MOVED, TO_GRAMS).when(undo).then_refused(UndosMoved)


def test_a_code_stands_for_the_same_quantity_in_the_other_unit() -> None:
    assigned = BarcodeAssigned(code=PACK, ean13=EAN, factor=6000, at=AT)
    convert = ConvertBarcode(code=PACK, ean13=EAN, factor=Decimal(1000), at=AT)
    given(BARCODE, assigned).when(convert).then(attrs.evolve(assigned, factor=6_000_000))
    given(BARCODE, assigned).when(attrs.evolve(convert, ean13="other")).then()
    given(BARCODE, assigned).when(attrs.evolve(convert, factor=Decimal("0.0001"))).then_refused(UnitInUse, match="exactly")
    given(BARCODE).when(AssignBarcode(code=PACK, ean13=EAN, factor=6000, at=AT)).then(assigned)


@for_any(st.lists(st.sampled_from(("1000", "0.001", "28.349523", "2.5", "0.4", "12")), max_size=6))
def test_the_scale_is_the_exact_product_of_all_factors(factors: list[str]) -> None:
    product = PRODUCT.fold([CREATED])
    expected = Fraction(1)
    for number, factor in enumerate(factors):
        command = edit(factor, f"unit {number}", keeps_minimum=False)
        product = PRODUCT.fold(PRODUCT.decide(command, product), product)
        expected *= Fraction(factor)
    assert product is not None
    assert Fraction(product.scale) == expected
