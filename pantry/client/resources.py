"""Answers of the pantry's API. Quantities are JSON numbers with at most three decimal places."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from terminalkit.client import Resource


class Category(Resource, frozen=True, kw_only=True):
    """A category of products; its name is unique."""

    id: str
    name: str
    description: str = ""


class Product(Resource, frozen=True, kw_only=True):
    """A product; `category_id` is None if it has no category."""

    ean13: str
    name: str
    unit: str
    current_stock: float
    min_stock: float = 0
    description: str = ""
    category_id: str | None = None
    active: bool = True

    @property
    def is_low(self) -> bool:
        """Whether its stock has come down to the minimum."""
        return self.current_stock <= self.min_stock


class Pairing(Resource, frozen=True, kw_only=True):
    """A code that signs in one device. `link` is its address, `qr` are the rows of its QR code, `1` for a dark module.

    Without tokens the link is the address of the page, which never expires. `warning`: why no phone can use the address.
    """

    link: str
    qr: Sequence[str]
    expires_at: datetime | None = None
    warning: str = ""


class Stock(Resource, frozen=True, kw_only=True):
    """The stock of a product."""

    ean13: str
    current_stock: float
    min_stock: float
    is_low_stock: bool


class Movement(Resource, frozen=True, kw_only=True):
    """A movement. `stock_after` is the stock after it, `reverses` the one that it undoes, `reversed_by` the one that undid it."""

    id: str
    product_ean13: str
    type: str
    quantity: float
    stock_after: float
    unit: str
    created_at: datetime
    reason: str = ""
    notes: str = ""
    created_by: str = ""
    reverses: str | None = None
    reversed_by: str | None = None
    counted: float | None = None


class Barcode(Resource, frozen=True, kw_only=True):
    """A code and the product that it names; `factor` is the quantity that the code stands for."""

    code: str
    product_ean13: str
    factor: float


class Stocktake(Resource, frozen=True, kw_only=True):
    """A stocktake; `movement_id` is the movement of its difference, None without one."""

    product_ean13: str
    counted: float
    unit: str
    difference: float
    created_at: datetime
    movement_id: str | None = None
    reason: str = ""
    notes: str = ""
    created_by: str = ""


class Count(Resource, frozen=True, kw_only=True):
    """The result of a stocktake: `difference` is the booked quantity."""

    ean13: str
    counted: float
    difference: float
    current_stock: float


class MovementRow(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a row of an import of movements; `error` is the reason of a refusal. A dry run shows how the row was read."""

    row: int
    status: int
    product_ean13: str = ""
    type: str = ""
    quantity: float | None = None
    stock_after: float | None = None
    error: str | None = None


class ProductRow(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a row of an import of products; `error` is the reason of a refusal. A dry run shows how the row was read."""

    row: int
    status: int
    ean13: str = ""
    name: str = ""
    unit: str = ""
    min_stock: float | None = None
    category: str = ""
    error: str | None = None


class Imported(Resource, frozen=True, kw_only=True):
    """The result of an import. `unknown` rows may have taken effect or not: a repetition under the same key tells it.

    `ignored` are columns without effect, and `note` how to get the effect that they might be for.
    """

    dry_run: bool
    accepted: int
    refused: int
    unknown: int = 0
    ignored: Sequence[str] = ()
    note: str = ""


class ImportedMovements(Imported, frozen=True, kw_only=True):
    """The result of an import of movements."""

    results: Sequence[MovementRow]


class ImportedProducts(Imported, frozen=True, kw_only=True):
    """The result of an import of products."""

    results: Sequence[ProductRow]


class StockItem(msgspec.Struct, frozen=True, kw_only=True):
    """A product in the stock report."""

    product: Product
    is_low_stock: bool


class StockReport(Resource, frozen=True, kw_only=True):
    """The stock of all products that are kept."""

    total_products: int
    low_stock_products: int
    items: Sequence[StockItem]


class Consumption(Resource, frozen=True, kw_only=True, rename={"total_in": "in", "total_out": "out"}):
    """Consumption of a product in a period; `days_left` is None if it is not known, and `unknown_because` has the reason."""

    ean13: str
    name: str
    unit: str
    total_in: float
    total_out: float
    corrected: float
    net: float
    per_day: float | None
    current_stock: float
    days_left: float | None
    unknown_because: str | None


class ToBuy(Resource, frozen=True, kw_only=True):
    """A product that is low, and how much of it to buy."""

    ean13: str
    name: str
    unit: str
    current_stock: float
    min_stock: float
    suggested: float
