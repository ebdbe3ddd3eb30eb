"""The rules of the ledger, given a history, when a command comes, then these events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, get_type_hints

import attrs
import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from pantry.domain import ean13, quantity
from pantry.domain.category import CATEGORY, CategoryCreated, CategoryEdited, CreateCategory, EditCategory
from pantry.domain.category_name import (
    CATEGORY_NAME,
    CategoryNameReleased,
    CategoryNameReserved,
    ReleaseName,
    ReserveName,
    key_of,
)
from pantry.domain.errors import BadInput, Changed, InsufficientStock, NotFound, PantryError, Taken, UndoneAlready, UndosMoved
from pantry.domain.ledger import (
    PRODUCT,
    CountStock,
    CreateProduct,
    EditProduct,
    ProductCommand,
    RecordMovement,
    SetActive,
    UndoMovement,
)
from pantry.domain.product import (
    Details,
    MovementRecorded,
    MovementType,
    Product,
    ProductActivated,
    ProductCreated,
    ProductDeactivated,
    ProductEdited,
    StockConfirmed,
)
from pantry.domain.registry import REGISTRY

EAN = "4006381333931"
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
FLOUR = Details(name="Flour", description="", unit="kg", min_stock=2000, category_id=None)
CREATED = ProductCreated(ean13=EAN, details=FLOUR, at=AT)
IN, OUT = MovementType.IN, MovementType.OUT


def moved(type_: MovementType, amount: int, stock: int, **more: Any) -> MovementRecorded:
    """A movement as it is recorded."""
    plain = MovementRecorded(
        id="m1", type=type_, quantity=amount, stock=stock, reason="", notes="", created_by="", at=AT, unit="kg"
    )
    return attrs.evolve(plain, **more)


def move(type_: MovementType, amount: int, **more: Any) -> RecordMovement:
    """The command for a movement."""
    return attrs.evolve(RecordMovement(id="m1", ean13=EAN, type=type_, quantity=amount, at=AT), **more)


def test_a_product_begins_without_stock_and_active() -> None:
    product = given(PRODUCT, registry=REGISTRY).when(CreateProduct(ean13=EAN, details=FLOUR, at=AT)).then(CREATED)
    assert product is not None
    assert (product.stock, product.active, product.is_low, product.version) == (0, True, True, 1)


def test_an_existing_product_is_not_created_again() -> None:
    given(PRODUCT, CREATED).when(CreateProduct(ean13=EAN, details=FLOUR, at=AT)).then_refused(Taken, match=EAN)


@pytest.mark.parametrize(
    ("field", "code", "details"),
    [
        ("ean13", "4006381333930", {}),
        ("ean13", "400638133393", {}),
        ("ean13", "400638133393\uff11", {}),
        ("name", EAN, {"name": " "}),
        ("name", EAN, {"name": "x" * 201}),
        ("unit", EAN, {"unit": ""}),
        ("unit", EAN, {"unit": "x" * 31}),
        ("min_stock", EAN, {"min_stock": -1}),
        ("min_stock", EAN, {"min_stock": quantity.LARGEST + 1}),
    ],
)
def test_a_product_that_cannot_be_is_refused_with_the_field_named(field: str, code: str, details: dict[str, Any]) -> None:
    wrong = attrs.evolve(FLOUR, **details)
    for history, command in (
        ((), CreateProduct(ean13=code, details=wrong, at=AT)),
        ((CREATED,), EditProduct(ean13=code, details=wrong, at=AT)),
    ):
        given(PRODUCT, *history).when(command).then_refused(BadInput, match=f"^{field}: ")


def test_lengths_are_in_characters() -> None:
    long = attrs.evolve(FLOUR, name="ü" * 200, unit="½" * 30)
    given(PRODUCT).when(CreateProduct(ean13=EAN, details=long, at=AT)).then(ProductCreated(ean13=EAN, details=long, at=AT))


def test_an_edit_leaves_the_stock_alone() -> None:
    rye = attrs.evolve(FLOUR, name="Rye", min_stock=500)
    product = (
        given(PRODUCT, CREATED, moved(IN, 1500, 1500), registry=REGISTRY)
        .when(EditProduct(ean13=EAN, details=rye, at=AT))
        .then(ProductEdited(details=rye, at=AT))
    )
    assert product is not None
    assert (product.stock, product.is_low, product.version) == (1500, False, 3)


def test_an_edit_that_changes_nothing_is_no_event() -> None:
    given(PRODUCT, CREATED).when(EditProduct(ean13=EAN, details=FLOUR, at=AT)).then()


def test_an_edit_of_another_version_than_the_one_seen_is_refused() -> None:
    rye = attrs.evolve(FLOUR, name="Rye")
    seen = given(PRODUCT, CREATED, moved(IN, 1, 1))
    seen.when(EditProduct(ean13=EAN, details=rye, at=AT, version=1)).then_refused(Changed, match="version 2, not 1")
    seen.when(EditProduct(ean13=EAN, details=rye, at=AT, version=2)).then(ProductEdited(details=rye, at=AT))


def test_a_product_is_deactivated_and_activated_once() -> None:
    gone, back = ProductDeactivated(details=FLOUR, at=AT), ProductActivated(details=FLOUR, at=AT)
    given(PRODUCT, CREATED, registry=REGISTRY).when(SetActive(ean13=EAN, active=False, at=AT)).then(gone)
    given(PRODUCT, CREATED, gone).when(SetActive(ean13=EAN, active=False, at=AT)).then()
    given(PRODUCT, CREATED, gone, registry=REGISTRY).when(SetActive(ean13=EAN, active=True, at=AT)).then(back)
    given(PRODUCT, CREATED).when(SetActive(ean13=EAN, active=True, at=AT)).then()


def test_an_inactive_product_can_be_emptied() -> None:
    history = (CREATED, moved(IN, 10, 10), ProductDeactivated(details=FLOUR, at=AT))
    given(PRODUCT, *history).when(move(OUT, 10)).then(moved(OUT, 10, 0))


def test_a_movement_has_the_stock_after_it() -> None:
    given(PRODUCT, CREATED, registry=REGISTRY).when(move(IN, 10_300)).then(moved(IN, 10_300, 10_300))
    given(PRODUCT, CREATED, moved(IN, 10_300, 10_300)).when(move(OUT, 300)).then(moved(OUT, 300, 10_000))


def test_nothing_goes_out_that_is_not_there() -> None:
    history = given(PRODUCT, CREATED, moved(IN, 10_300, 10_300))
    text = r"^insufficient stock: available 10\.300, requested 10\.301$"
    history.when(move(OUT, 10_301)).then_refused(InsufficientStock, match=text)
    history.when(move(OUT, 10_300)).then(moved(OUT, 10_300, 0))


def test_the_rules_are_judged_in_the_documented_order() -> None:
    given(PRODUCT).when(move(OUT, 0)).then_refused(BadInput, match="^quantity: stock level must be greater than 0")
    given(PRODUCT).when(move(OUT, 1)).then_refused(NotFound, match=EAN)
    given(PRODUCT, CREATED).when(move(OUT, 1)).then_refused(InsufficientStock)


@pytest.mark.parametrize("more", [{"reason": "x" * 201}, {"created_by": "x" * 101}])
def test_texts_that_are_too_long_are_refused(more: dict[str, Any]) -> None:
    given(PRODUCT, CREATED).when(move(IN, 1, **more)).then_refused(BadInput, match=next(iter(more)))


def test_the_stock_has_an_upper_end() -> None:
    full = given(PRODUCT, CREATED, moved(IN, quantity.LARGEST, quantity.LARGEST))
    full.when(move(IN, 1)).then_refused(BadInput, match=r"^quantity: .*9999999\.999")
    full.when(move(OUT, quantity.LARGEST + 1)).then_refused(BadInput, match="^quantity: ")


def test_the_time_of_an_event_is_the_time_of_its_command_whatever_the_event_before_it_has() -> None:
    ahead = AT + timedelta(days=2)
    given(PRODUCT, CREATED, moved(IN, 1, 1, at=ahead)).when(move(IN, 1)).then(moved(IN, 1, 2))


def undo(**more: Any) -> UndoMovement:
    """The command that undoes a movement in of 5."""
    plain = UndoMovement(id="m2", ean13=EAN, undoes="m1", type=IN, quantity=5, undone=False, undos=0, scale="1", at=AT)
    return attrs.evolve(plain, **more)


def test_a_movement_is_undone_once_by_its_opposite() -> None:
    reversal = moved(OUT, 5, 0, id="m2", reverses="m1")
    product = given(PRODUCT, CREATED, moved(IN, 5, 5), registry=REGISTRY).when(undo()).then(reversal)
    assert product is not None
    assert product.undos == 1
    after = given(PRODUCT, CREATED, moved(IN, 5, 5), reversal)
    after.when(undo(undone=True, undos=1)).then_refused(UndoneAlready, match="m1")
    after.when(undo()).then_refused(UndosMoved)


@for_any(st.builds(Product, **{name: st.from_type(type_) for name, type_ in get_type_hints(Product).items()}))
def test_a_movement_changes_nothing_but_the_stock_and_the_time(before: Product) -> None:
    after = PRODUCT.evolve(before, moved(IN, 1, before.stock + 1))
    assert after == attrs.evolve(before, stock=before.stock + 1, updated_at=AT, version=before.version + 1, moved=True)


def test_undoing_never_makes_the_stock_negative() -> None:
    given(PRODUCT, CREATED, moved(IN, 5, 5), moved(OUT, 3, 2)).when(undo()).then_refused(
        InsufficientStock, match="available 0.002"
    )


@pytest.mark.parametrize(("counted", "type_", "difference"), [(7, IN, 2), (3, OUT, 2), (0, OUT, 5)])
def test_a_stocktake_books_the_difference(counted: int, type_: MovementType, difference: int) -> None:
    product = (
        given(PRODUCT, CREATED, moved(IN, 5, 5), registry=REGISTRY)
        .when(CountStock(id="m2", ean13=EAN, counted=counted, at=AT))
        .then(moved(type_, difference, counted, id="m2", counted=counted))
    )
    assert product is not None
    assert product.counted_at == AT


def test_that_nothing_changed_changes_nothing() -> None:
    product = PRODUCT.fold([CREATED, moved(IN, 5, 5)])
    assert product is not None
    assert PRODUCT.confirm is not None
    event = PRODUCT.confirm(SetActive(ean13=EAN, active=True, at=AT), product)
    assert PRODUCT.evolve(product, event) == product


def test_a_stocktake_without_a_difference_is_recorded() -> None:
    confirmed = StockConfirmed(counted=5, reason="", notes="", created_by="", at=AT, unit="kg")
    given(PRODUCT, CREATED, moved(IN, 5, 5), registry=REGISTRY).when(CountStock(id="m2", ean13=EAN, counted=5, at=AT)).then(
        confirmed
    )


@for_any(
    st.lists(
        st.one_of(
            st.builds(move, st.sampled_from(MovementType), st.integers(-5, 50)),
            st.builds(CountStock, id=st.just("c"), ean13=st.just(EAN), counted=st.integers(-5, 50), at=st.just(AT)),
            st.builds(undo, type=st.sampled_from(MovementType), undos=st.integers(0, 3), undone=st.booleans()),
            st.builds(SetActive, ean13=st.just(EAN), active=st.booleans(), at=st.just(AT)),
        ),
        max_size=30,
    )
)
def test_under_any_commands_the_stock_is_the_sum_of_its_movements_and_never_negative(commands: list[ProductCommand]) -> None:
    state: Product | None = PRODUCT.fold([CREATED])
    total = 0
    for command in commands:
        try:
            events = PRODUCT.decide(command, state)
        except PantryError:
            continue
        for event in events:
            state = PRODUCT.evolve(state, event)
            if isinstance(event, MovementRecorded):
                total += event.quantity if event.type is IN else -event.quantity
                assert event.stock == total
            assert state.stock == total >= 0


# Categories


def test_a_category_holds_its_name() -> None:
    created = CategoryCreated(id="c", name="Baking", description="", at=AT)
    given(CATEGORY, registry=REGISTRY).when(CreateCategory(id="c", name="Baking", description="", at=AT)).then(created)
    given(CATEGORY).when(CreateCategory(id="c", name=" ", description="", at=AT)).then_refused(BadInput, match="^name: ")
    given(CATEGORY).when(CreateCategory(id="c", name="x" * 101, description="", at=AT)).then_refused(BadInput, match="^name: ")
    edit = EditCategory(name="Bread", description="all of it", at=AT)
    given(CATEGORY, created, registry=REGISTRY).when(edit).then(CategoryEdited(name="Bread", description="all of it", at=AT))
    given(CATEGORY, created).when(EditCategory(name="Baking", description="", at=AT)).then()
    given(CATEGORY).when(edit).then_refused(NotFound)
    given(CATEGORY, created).when(attrs.evolve(edit, version=2)).then_refused(Changed)


def test_a_name_belongs_to_one_category_until_it_is_released() -> None:
    mine = CategoryNameReserved(name="Baking", category_id="a", at=AT)
    free = CategoryNameReleased(category_id="a", at=AT)
    given(CATEGORY_NAME, registry=REGISTRY).when(ReserveName(name="Baking", category_id="a", at=AT)).then(mine)
    given(CATEGORY_NAME, mine).when(ReserveName(name="Baking", category_id="a", at=AT)).then()
    given(CATEGORY_NAME, mine).when(ReserveName(name="Baking", category_id="b", at=AT)).then_refused(Taken, match="Baking")
    given(CATEGORY_NAME, mine, registry=REGISTRY).when(ReleaseName(category_id="a", at=AT)).then(free)
    given(CATEGORY_NAME, mine).when(ReleaseName(category_id="b", at=AT)).then()
    theirs = CategoryNameReserved(name="Baking", category_id="b", at=AT)
    given(CATEGORY_NAME, mine, free, registry=REGISTRY).when(ReserveName(name="Baking", category_id="b", at=AT)).then(theirs)


def test_names_that_look_the_same_are_the_same() -> None:
    assert key_of("K\u00fcche") == key_of("Ku\u0308che")
    assert key_of("K\u00fcche") != key_of("Kuche")


# Values


def test_the_check_digit_is_that_of_a_real_code() -> None:
    assert ean13.problem(EAN) is None
    assert ean13.problem("400638133393") == "EAN-13 must have exactly 13 digits, got 12"
    assert ean13.problem("400638133393a") == "EAN-13 must contain only digits"
    assert ean13.problem("4006381333930") == "invalid EAN-13 check digit: expected 1, got 0"


@for_any(st.integers(0, 10**12 - 1))
def test_every_code_has_exactly_one_check_digit(first: int) -> None:
    codes = [f"{first:012}{digit}" for digit in range(10)]
    assert [ean13.problem(code) is None for code in codes].count(True) == 1


@for_any(st.integers(-quantity.LARGEST, quantity.LARGEST))
def test_quantities_come_back_from_their_number_exactly(value: int) -> None:
    assert quantity.thousandths(Decimal(repr(quantity.number(value)))) == value
    assert quantity.thousandths(Decimal(quantity.text(value))) == value


@pytest.mark.parametrize("text", ["0.0005", "10000000", "9999999.9991", "1e999999", "-1e999999", "NaN", "Infinity", "1e-9999999"])
def test_quantities_are_never_rounded(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        quantity.thousandths(Decimal(text))
