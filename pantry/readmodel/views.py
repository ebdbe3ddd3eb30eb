"""The rows of the pantry's read model as values. Quantities are thousandths, times RFC 3339 text in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

import attrs

from eventlog import ERASED, MISSING, SEALED
from pantry.domain.category import Category
from pantry.domain.errors import BadInput
from pantry.domain.product import MovementRecorded, Product
from pantry.domain.quantity import ONE
from projections import Row, timestamp_text


@attrs.frozen(kw_only=True)
class CategoryView:
    """A category."""

    id: str
    name: str
    description: str
    created_at: str
    updated_at: str
    name_key: str
    version: int

    @classmethod
    def of(cls, row: Row) -> CategoryView:
        """The category in a row of `categories`."""
        return cls(**{name: row[name] for name in _CATEGORY})

    @classmethod
    def of_state(cls, category: Category) -> CategoryView:
        """The category as it will be read, once the read model has its commit."""
        return cls(
            id=category.id,
            name=category.name,
            description=category.description,
            created_at=timestamp_text(category.created_at),
            updated_at=timestamp_text(category.updated_at),
            name_key="",
            version=category.version,
        )


@attrs.frozen(kw_only=True)
class ProductView:
    """A product, now or at some time. `version` is None if it is not the present one."""

    ean13: str
    name: str
    description: str
    unit: str
    min_stock: int
    current_stock: int
    category_id: str | None
    active: bool
    created_at: str
    updated_at: str
    counted_at: str | None
    name_key: str
    version: int | None

    @property
    def is_low(self) -> bool:
        """Whether the stock has come down to the minimum."""
        return self.current_stock <= self.min_stock

    @classmethod
    def of(cls, row: Row) -> ProductView:
        """The product in a row of `products`, or of a query that gives the same columns."""
        values = {name: row[name] for name in _PRODUCT}
        values["active"] = bool(values["active"])
        return cls(**values)

    @classmethod
    def of_state(cls, product: Product) -> ProductView:
        """The product as it will be read, once the read model has its commit."""
        details = product.details
        return cls(
            ean13=product.ean13,
            name=details.name,
            description=details.description,
            unit=details.unit,
            min_stock=details.min_stock,
            current_stock=product.stock,
            category_id=details.category_id,
            active=product.active,
            created_at=timestamp_text(product.created_at),
            updated_at=timestamp_text(product.updated_at),
            counted_at=_time(product.counted_at),
            name_key="",
            version=product.version,
        )


@attrs.frozen(kw_only=True)
class MovementView:
    """A movement; `reversed_by` is the one that undid it."""

    id: str
    product_ean13: str
    type: str
    quantity: int
    reason: str
    notes: str
    created_by: str
    created_at: str
    stock_after: int
    unit: str
    reverses: str | None
    counted: int | None
    reversed_by: str | None = None
    sequence: int = 0
    position: int = 0

    @classmethod
    def of(cls, row: Row, personal: Mapping[str, str] | None = None) -> MovementView:
        """The movement in a row of `movements`, with the one that undid it.

        `personal` are its fields that are sealed, opened; without them they read SEALED.
        """
        if personal is None:
            personal = {} if row["sealed"] is None else _SEALED
        return cls(**{name: row[name] for name in _MOVEMENT} | dict(personal))

    @classmethod
    def of_event(cls, ean13: str, movement: MovementRecorded) -> MovementView:
        """The movement as it will be read, once the read model has its commit."""
        return cls(
            id=movement.id,
            product_ean13=ean13,
            type=movement.type.value,
            quantity=movement.quantity,
            reason=movement.reason,
            notes=movement.notes,
            created_by=movement.created_by,
            created_at=timestamp_text(movement.at),
            stock_after=movement.stock,
            unit=movement.unit,
            reverses=movement.reverses,
            counted=movement.counted,
        )


@attrs.frozen(kw_only=True)
class StocktakeView:
    """A stocktake; `movement_id` is the movement of its difference, None without one."""

    product_ean13: str
    counted: int
    unit: str
    difference: int
    movement_id: str | None
    reason: str
    notes: str
    created_by: str
    created_at: str
    sequence: int = 0
    position: int = 0

    @classmethod
    def of(cls, row: Row, personal: Mapping[str, str] | None = None) -> StocktakeView:
        """The stocktake in a row of `stocktakes`; `personal` as in MovementView."""
        if personal is None:
            personal = {} if row["sealed"] is None else _SEALED
        return cls(**{name: row[name] for name in _STOCKTAKE} | dict(personal))


@attrs.frozen(kw_only=True)
class BarcodeView:
    """A code and the product that it names; `factor` is the quantity that the code stands for."""

    code: str
    product_ean13: str
    factor: int = ONE


@attrs.frozen(kw_only=True)
class MovementOnProduct:
    """The facts for undoing a movement, all true at one moment; `undos`, `unit` and `scale` are the product's."""

    id: str
    product_ean13: str
    type: str
    quantity: int
    moved_unit: str
    moved_scale: str
    reversed_by: str | None
    undos: int
    unit: str
    scale: str


@attrs.frozen(kw_only=True)
class ConsumptionView:
    """Consumption of a product in a period, without movements that were undone, and its stock now.

    `total_corrected` is the sum of the differences that stocktakes found, which is negative if stock was missing. `days` are the
    days of the period in which the product was there.
    """

    ean13: str
    name: str
    unit: str
    current_stock: int
    min_stock: int
    total_in: int
    total_out: int
    total_corrected: int
    name_key: str
    days: float

    @property
    def net(self) -> int:
        """By how much the stock has changed, as far as it was not by an undone movement."""
        return self.total_in - self.total_out + self.total_corrected

    @property
    def is_low(self) -> bool:
        """Whether the stock has come down to the minimum."""
        return self.current_stock <= self.min_stock

    @property
    def suggested(self) -> int:
        """How much to buy, in thousandths: up to twice the minimum, or up to `total_out` if that is more."""
        return max(2 * self.min_stock, self.total_out) - self.current_stock

    @property
    def is_to_buy(self) -> bool:
        """Whether a shopping list has it: it is low, and more of it is needed than none."""
        return self.is_low and self.suggested > 0

    @property
    def per_day(self) -> int | None:
        """Consumption per day in thousandths; None if it was observed for less than `LEAST_DAYS`."""
        return None if self.days < LEAST_DAYS else round(self.total_out / self.days)

    @property
    def days_left(self) -> float | None:
        """How many days the stock lasts at that rate; None if the rate is not known, or nothing went out."""
        return None if self.unknown_because else round(self.current_stock / (self.total_out / self.days), 1)

    @property
    def unknown_because(self) -> str | None:
        """Why `days_left` is not known; None if it is."""
        if self.days < LEAST_DAYS:
            return f"not known yet: consumption was observed for less than {LEAST_DAYS} days"
        return None if self.total_out else "nothing went out"

    @classmethod
    def of(cls, row: Row, since: datetime, until: datetime) -> ConsumptionView:
        """The figures in a row of the report over a period."""
        created_at = datetime.fromisoformat(row["created_at"])
        return cls(**{name: row[name] for name in _CONSUMPTION}, days=_days_observed(max(since, created_at), until))


def in_present_units(rows: Iterable[Row]) -> list[Row]:
    """Rows of the report with one for each product, out of rows in order with one for each scale that its movements have."""
    merged: list[Row] = []
    for _, scales in groupby(rows, key=itemgetter("ean13")):
        first, *others = scales
        if others or first["moved_scale"] not in (None, first["scale"]):
            factors = [(row, Fraction(row["scale"]) / Fraction(row["moved_scale"])) for row in (first, *others)]
            first = {**first, **{name: round(sum(row[name] * factor for row, factor in factors)) for name in _SUMS}}
        merged.append(first)
    return merged


_SUMS = ("total_in", "total_out", "total_corrected")
LEAST_DAYS = 7
"""The fewest days of observation from which a consumption per day is given."""
PERIOD = timedelta(days=28)
"""The default period of consumption, and the period that a shopping list provides for."""


def period_of(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """The period of a report: over `PERIOD` up to now unless given otherwise. Raises BadInput if it ends before it begins.

    Up to now is up to the end of the log, whatever the times of its last events. One that begins in the future is empty, unless
    its end is given.
    """
    end = until or max(datetime.now(UTC), since or _EARLIEST)
    begin = since or max(end, _EARLIEST + PERIOD) - PERIOD
    if begin > end:
        raise BadInput("from", "must not be after `to`")
    return begin, until or _LATEST


def _days_observed(since: datetime, until: datetime) -> float:
    """The length of a period up to now in days: days to come have no consumption yet."""
    return max((min(until, datetime.now(UTC)) - since).total_seconds(), 0) / _DAY


def readable(personal: str) -> str | None:
    """A personal text; None if it is sealed, its key is missing, or its person was erased."""
    return None if personal in (SEALED, ERASED, MISSING) else personal


def _time(value: datetime | None) -> str | None:
    return None if value is None else timestamp_text(value)


_DAY = 86_400
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_CATEGORY = tuple(field.name for field in attrs.fields(CategoryView))
PERSONAL = ("notes", "created_by")
"""The columns of `movements` that are about a person."""
_SEALED = dict.fromkeys(PERSONAL, SEALED)
_CONSUMPTION = tuple(field.name for field in attrs.fields(ConsumptionView) if field.name != "days")
_STOCKTAKE = tuple(field.name for field in attrs.fields(StocktakeView))
_MOVEMENT = tuple(field.name for field in attrs.fields(MovementView))
_PRODUCT = tuple(field.name for field in attrs.fields(ProductView))
