"""The tables of the pantry's read model, and how each column is read: from the state of an aggregate, or from an event.

Quantities are thousandths. `product_versions` has the details of a product from a time on, and its stock then. Its stock at a
time is the stock after the last movement or version before. Personal data is in `movements` as it is in the log, sealed. A reader
of a row opens it, so that no copy of a table has data to remove when a person is erased.
"""

from __future__ import annotations

import unicodedata

from pantry.domain.product import MovementRecorded, MovementType, StockConfirmed
from projections import Column, Table


def name_key(name: str) -> str:
    """The key that a list is sorted by: the name without case and accents, the same on every database."""
    if name.isascii():
        return name.lower()
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(character for character in plain if not unicodedata.combining(character))


def _difference(event: MovementRecorded | StockConfirmed) -> int:
    """Return the difference that a stocktake found, in thousandths."""
    if isinstance(event, StockConfirmed):
        return 0
    return event.quantity if event.type is MovementType.IN else -event.quantity


CATEGORIES = Table(
    "categories",
    (
        Column("id"),
        Column("name"),
        Column("description"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("name_key", of=lambda category: name_key(category.name)),
        Column("version", "integer"),
        Column("sequence", "integer", given=True),
    ),
    key=("id",),
)

PRODUCTS = Table(
    "products",
    (
        Column("ean13"),
        Column("name", of="details.name"),
        Column("description", of="details.description"),
        Column("unit", of="details.unit"),
        Column("min_stock", "integer", of="details.min_stock"),
        Column("current_stock", "integer", of="stock"),
        Column("category_id", of="details.category_id"),
        Column("active", "boolean"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("counted_at", "timestamp"),
        Column("name_key", of=lambda product: name_key(product.details.name)),
        Column("version", "integer"),
        Column("undos", "integer"),
        Column("sequence", "integer", given=True),
        Column("scale"),
    ),
    key=("ean13",),
)

PRODUCT_VERSIONS = Table(
    "product_versions",
    (
        Column("ean13", given=True),
        Column("sequence", "integer", given=True),
        Column("position", "integer", given=True),
        Column("name", of="details.name"),
        Column("description", of="details.description"),
        Column("unit", of="details.unit"),
        Column("min_stock", "integer", of="details.min_stock"),
        Column("category_id", of="details.category_id"),
        Column("active", "boolean", given=True),
        Column("valid_from", "timestamp", of="at"),
        Column("name_key", of=lambda event: name_key(event.details.name)),
        Column("stock", "integer", given=True),
    ),
    key=("ean13", "sequence", "position"),
)

MOVEMENTS = Table(
    "movements",
    (
        Column("id"),
        Column("product_ean13", given=True),
        Column("type", of="type.value"),
        Column("quantity", "integer"),
        Column("reason"),
        Column("notes"),
        Column("created_by"),
        Column("created_at", "timestamp", of="at"),
        Column("stock_after", "integer", of="stock"),
        Column("reverses"),
        Column("counted", "integer"),
        Column("sequence", "integer", given=True),
        Column("position", "integer", given=True),
        Column("sealed", given=True),
        Column("unit"),
        Column("scale"),
    ),
    key=("id",),
)

BARCODES = Table(
    "barcodes",
    (
        Column("code"),
        Column("product_ean13", of="ean13"),
        Column("factor", "integer"),
        Column("assigned_at", "timestamp", of="at"),
        Column("sequence", "integer", given=True),
    ),
    key=("code",),
)

STOCKTAKES = Table(
    "stocktakes",
    (
        Column("product_ean13", given=True),
        Column("sequence", "integer", given=True),
        Column("position", "integer", given=True),
        Column("counted", "integer"),
        Column("difference", "integer", of=_difference),
        Column("movement_id", of=lambda event: event.id if isinstance(event, MovementRecorded) else None),
        Column("reason"),
        Column("notes"),
        Column("created_by"),
        Column("created_at", "timestamp", of="at"),
        Column("sealed", given=True),
        Column("unit"),
    ),
    key=("sequence", "position"),
)

ERASURES = Table(
    "erasures",
    (
        Column("key_id", of="key"),
        Column("erased_at", "timestamp"),
        Column("sequence", "integer", given=True),
    ),
    key=("key_id",),
)
