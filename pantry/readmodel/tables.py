"""The tables of the pantry's read model, and how categories, products and movements become rows of them.

Quantities are thousandths. `product_versions` has the details of a product from a time on, and its stock then. Its stock at a
time is the stock after the last movement or version before. Personal data is in `movements` as it is in the log, sealed. A reader
of a row opens it, so that no copy of a table has data to remove when a person is erased.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

from pantry.domain.barcode import Barcode
from pantry.domain.category import Category
from pantry.domain.person import Person
from pantry.domain.product import Details, MovementRecorded, MovementType, Product, StockConfirmed
from projections import Column, Table

CATEGORIES = Table(
    "categories",
    (
        Column("id"),
        Column("name"),
        Column("description"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("name_key"),
        Column("version", "integer"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)

PRODUCTS = Table(
    "products",
    (
        Column("ean13"),
        Column("name"),
        Column("description"),
        Column("unit"),
        Column("min_stock", "integer"),
        Column("current_stock", "integer"),
        Column("category_id"),
        Column("active", "boolean"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("counted_at", "timestamp"),
        Column("name_key"),
        Column("version", "integer"),
        Column("undos", "integer"),
        Column("sequence", "integer"),
        Column("scale"),
    ),
    key=("ean13",),
)

STOCKS = PRODUCTS.partial("name", "description", "unit", "min_stock", "category_id", "active", "created_at", "name_key", "scale")
"""Products of which only the stock has changed: the most frequent case, and no list has another order for it."""

PRODUCT_VERSIONS = Table(
    "product_versions",
    (
        Column("ean13"),
        Column("sequence", "integer"),
        Column("position", "integer"),
        Column("name"),
        Column("description"),
        Column("unit"),
        Column("min_stock", "integer"),
        Column("category_id"),
        Column("active", "boolean"),
        Column("valid_from", "timestamp"),
        Column("name_key"),
        Column("stock", "integer"),
    ),
    key=("ean13", "sequence", "position"),
)

MOVEMENTS = Table(
    "movements",
    (
        Column("id"),
        Column("product_ean13"),
        Column("type"),
        Column("quantity", "integer"),
        Column("reason"),
        Column("notes"),
        Column("created_by"),
        Column("created_at", "timestamp"),
        Column("stock_after", "integer"),
        Column("reverses"),
        Column("counted", "integer"),
        Column("sequence", "integer"),
        Column("position", "integer"),
        Column("sealed"),
        Column("unit"),
        Column("scale"),
    ),
    key=("id",),
)

BARCODES = Table(
    "barcodes",
    (
        Column("code"),
        Column("product_ean13"),
        Column("factor", "integer"),
        Column("assigned_at", "timestamp"),
        Column("sequence", "integer"),
    ),
    key=("code",),
)

STOCKTAKES = Table(
    "stocktakes",
    (
        Column("product_ean13"),
        Column("sequence", "integer"),
        Column("position", "integer"),
        Column("counted", "integer"),
        Column("difference", "integer"),
        Column("movement_id"),
        Column("reason"),
        Column("notes"),
        Column("created_by"),
        Column("created_at", "timestamp"),
        Column("sealed"),
        Column("unit"),
    ),
    key=("sequence", "position"),
)

ERASURES = Table("erasures", (Column("key_id"), Column("erased_at", "timestamp"), Column("sequence", "integer")), key=("key_id",))


def name_key(name: str) -> str:
    """The key that a list is sorted by: the name without case and accents, the same on every database."""
    if name.isascii():
        return name.lower()
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(character for character in plain if not unicodedata.combining(character))


def category_row(category: Category, sequence: int) -> tuple[Any, ...]:
    """A category as a row of `categories`."""
    return (
        category.id,
        category.name,
        category.description,
        category.created_at,
        category.updated_at,
        name_key(category.name),
        category.version,
        sequence,
    )


def product_row(product: Product, sequence: int) -> tuple[Any, ...]:
    """A product as a row of `products`."""
    details = product.details
    return (
        product.ean13,
        details.name,
        details.description,
        details.unit,
        details.min_stock,
        product.stock,
        details.category_id,
        product.active,
        product.created_at,
        product.updated_at,
        product.counted_at,
        name_key(details.name),
        product.version,
        product.undos,
        sequence,
        product.scale,
    )


def version_row(
    ean13: str, details: Details, at: datetime, place: tuple[int, int], *, active: bool, stock: int
) -> tuple[Any, ...]:
    """The details of a product from a time on as a row of `product_versions`; `place` is the event's sequence and index.

    `active` and `stock` are as the event left them.
    """
    return (
        ean13,
        *place,
        details.name,
        details.description,
        details.unit,
        details.min_stock,
        details.category_id,
        active,
        at,
        name_key(details.name),
        stock,
    )


def movement_row(ean13: str, movement: MovementRecorded, place: tuple[int, int], sealed: str | None = None) -> tuple[Any, ...]:
    """A movement as a row of `movements`; `place` is the event's sequence and index, `sealed` its personal fields."""
    return (
        movement.id,
        ean13,
        movement.type.value,
        movement.quantity,
        movement.reason,
        movement.notes,
        movement.created_by,
        movement.at,
        movement.stock,
        movement.reverses,
        movement.counted,
        *place,
        sealed,
        movement.unit,
        movement.scale,
    )


def barcode_row(barcode: Barcode, sequence: int) -> tuple[Any, ...]:
    """A barcode that names a product as a row of `barcodes`."""
    return (barcode.code, barcode.ean13, barcode.factor, barcode.at, sequence)


def stocktake_row(
    ean13: str, event: MovementRecorded | StockConfirmed, place: tuple[int, int], sealed: str | None = None
) -> tuple[Any, ...]:
    """A stocktake as a row of `stocktakes`: the movement of its difference, or the event that there was none."""
    difference, movement_id = 0, None
    if isinstance(event, MovementRecorded):
        difference = event.quantity if event.type is MovementType.IN else -event.quantity
        movement_id = event.id
    texts = (event.reason, event.notes, event.created_by)
    return (ean13, *place, event.counted, difference, movement_id, *texts, event.at, sealed, event.unit)


def erasure_row(person: Person, sequence: int) -> tuple[Any, ...]:
    """A person who was erased as a row of `erasures`."""
    return (person.key, person.erased_at, sequence)
