"""Routes of movements: booking in and out, undoing, and stocktaking."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from httpkit import UNSET, Answer, Call, Route, Unset, decode_cursor, member, message, moment, page_of, path, query
from pantry.commands.execution import NewMovement, ProductOutcome
from pantry.commands.pantry import Remarks
from pantry.domain.errors import NotFound
from pantry.domain.product import CREATED_BY_LENGTH, REASON_LENGTH, UNIT_LENGTH, MovementRecorded, MovementType
from pantry.domain.quantity import number
from pantry.http.bodies import MovementBody, StocktakeBody
from pantry.http.categories import LONGEST_TEXT, PAGE
from pantry.http.services import Services
from pantry.http.values import EAN13_SCHEMA, EXAMPLE, MOVEMENT_CURSOR, amount, checked_ean13, period, product_filter, quantity
from pantry.readmodel.views import MovementView
from servicekit import answer


@message
class ListStocktakes:
    """Which stocktakes to list."""

    ean13: str | None = product_filter("only of this product")
    since: datetime | None = moment(name="from", description="not before", empty=True)
    until: datetime | None = moment(name="to", description="not after", empty=True)
    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=MOVEMENT_CURSOR, max_length=4096, description="resumes after a page")


@message
class ListMovements(ListStocktakes):
    """Which movements to list."""

    type: MovementType | None = query(default=None, empty=True)


@message
class ListMovementsOfProduct(ListMovements):
    """Which movements of a product to list."""

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)


@message
class OneMovement:
    """Names a movement."""

    id: str = path(pattern="^[0-9a-f-]{36}$", form="the id of a movement, a UUID")


@message
class GivenRemarks:
    """Remarks of a request that books a movement."""

    reason: str | None = member(default=None, max_length=REASON_LENGTH)
    notes: str | None = member(default=None, max_length=LONGEST_TEXT, multiline=True, personal=True)
    created_by: str | None = member(default=None, max_length=CREATED_BY_LENGTH, personal=True)

    @property
    def remarks(self) -> Remarks:
        """The same as the write side takes it."""
        return Remarks(reason=self.reason or "", notes=self.notes or "", created_by=self.created_by or "")


def _unit() -> Any:
    text = "the unit of the quantity: 409 if the product is kept in another one"
    return member(default=None, max_length=UNIT_LENGTH, description=text)


@message
class GivenMovement(GivenRemarks):
    """A movement to be booked."""

    product_ean13: str = member(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)
    type: MovementType = member(example="in")
    quantity: int = quantity(example=1.5)
    unit: str | None = _unit()

    @property
    def movement(self) -> NewMovement:
        """The same as the write side takes it."""
        return NewMovement(
            ean13=self.product_ean13,
            type=self.type,
            quantity=self.quantity,
            reason=self.reason or "",
            notes=self.notes or "",
            created_by=self.created_by or "",
            unit=self.unit or None,
        )


@message
class UndoRequest(GivenRemarks):
    """Names a movement that is to be undone, with remarks."""

    id: str = path(pattern="^[0-9a-f-]{36}$", form="the id of a movement, a UUID")


@message
class CountRequest(GivenRemarks):
    """The counted stock of a stocktake."""

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)
    counted: int = amount(example=7)
    unit: str | None = _unit()


@message
class CountBody:
    """The result of a stocktake: the difference, and the movement that books it if there is one."""

    ean13: str = member()
    counted: float = member()
    difference: float = member()
    current_stock: float = member()
    movement: MovementBody | Unset = member(default=UNSET)


async def list_movements(request: ListMovements, call: Call[Services]) -> Answer[Sequence[MovementBody]]:
    """Movements, newest first."""
    await call.services.check_filter(request.ean13)
    if request.since is not None and request.until is not None:
        period(request.since, request.until)
    found = await call.services.queries.movements(
        ean13=request.ean13,
        type=request.type.value if request.type else None,
        since=request.since,
        until=request.until,
        before=None if request.cursor is None else decode_cursor(request.cursor, tuple[int, int]),
        limit=request.limit + 1,
    )
    page, more = page_of(found, request.limit, lambda one: (one.sequence, one.position))
    return Answer([MovementBody.of(movement) for movement in page], cursor=more)


async def list_movements_of_product(request: ListMovementsOfProduct, call: Call[Services]) -> Answer[Sequence[MovementBody]]:
    """Movements of a product, newest first."""
    return await list_movements(request, call)


async def record_movement(request: GivenMovement, call: Call[Services]) -> Answer[MovementBody]:
    """Book what goes in or out. Nothing goes out that is not there."""
    outcome = await call.services.pantry.move(request.movement, call.context)
    return _answer(outcome)


async def get_movement(request: OneMovement, call: Call[Services]) -> MovementBody:
    """A movement."""
    movement = await call.services.queries.movement(request.id)
    if movement is None:
        raise NotFound(f"there is no movement {request.id}")
    return MovementBody.of(movement)


async def undo_movement(request: UndoRequest, call: Call[Services]) -> Answer[MovementBody]:
    """Undo a movement by booking the opposite one. Each movement can be undone once. The history is kept."""
    outcome = await call.services.pantry.undo(request.id, request.remarks, call.context)
    return _answer(outcome)


async def count_stock(request: CountRequest, call: Call[Services]) -> Answer[CountBody]:
    """Book a stocktake: the difference between the counted and the expected stock, or that there is none."""
    outcome = await call.services.pantry.count(
        request.ean13, request.counted, request.remarks, call.context, unit=request.unit or None
    )
    movement = _movement(outcome)
    sign = 0 if movement is None else 1 if movement.type == MovementType.IN else -1
    body = CountBody(
        ean13=request.ean13,
        counted=number(request.counted),
        difference=number(0 if movement is None else sign * movement.quantity),
        current_stock=number(outcome.state.stock),
        movement=UNSET if movement is None else MovementBody.of(movement),
    )
    return answer(outcome, body)


async def list_stocktakes(request: ListStocktakes, call: Call[Services]) -> Answer[Sequence[StocktakeBody]]:
    """Stocktakes, newest first, with and without a difference."""
    await call.services.check_filter(request.ean13)
    if request.since is not None and request.until is not None:
        period(request.since, request.until)
    found = await call.services.queries.stocktakes(
        ean13=request.ean13,
        since=request.since,
        until=request.until,
        before=None if request.cursor is None else decode_cursor(request.cursor, tuple[int, int]),
        limit=request.limit + 1,
    )
    page, more = page_of(found, request.limit, lambda one: (one.sequence, one.position))
    return Answer([StocktakeBody.of(stocktake) for stocktake in page], cursor=more)


def _answer(outcome: ProductOutcome) -> Answer[MovementBody]:
    movement = _movement(outcome)
    assert movement is not None, "the command made a movement"
    return answer(outcome, MovementBody.of(movement), location=f"/api/v1/movements/{movement.id}")


def _movement(outcome: ProductOutcome) -> MovementView | None:
    [event] = outcome.events
    return MovementView.of_event(outcome.state.ean13, event) if isinstance(event, MovementRecorded) else None


_ALL = "/api/v1/movements"
_TAGS = ("movements",)

ROUTES = (
    Route("GET", _ALL, list_movements, summary="List movements", tags=_TAGS, errors=(404,), csv=MovementBody),
    Route(
        "POST",
        _ALL,
        record_movement,
        summary="Book a movement",
        tags=_TAGS,
        status=201,
        errors=(404, 409),
        idempotent=True,
        immediate=True,
    ),
    Route("GET", f"{_ALL}/{{id}}", get_movement, summary="Look at a movement", tags=_TAGS, errors=(404,)),
    Route(
        "POST",
        f"{_ALL}/{{id}}/undo",
        undo_movement,
        summary="Undo a movement",
        tags=_TAGS,
        status=201,
        errors=(404, 409),
        idempotent=True,
    ),
    Route(
        "GET",
        "/api/v1/products/{ean13}/movements",
        list_movements_of_product,
        summary="Movements of a product",
        tags=_TAGS,
        errors=(404,),
        csv=MovementBody,
    ),
    Route(
        "POST",
        "/api/v1/products/{ean13}/count",
        count_stock,
        summary="Book a stocktake",
        tags=_TAGS,
        errors=(404, 409),
        idempotent=True,
    ),
    Route("GET", "/api/v1/stocktakes", list_stocktakes, summary="List stocktakes", tags=_TAGS, errors=(404,), csv=StocktakeBody),
)
