"""The stock report as JSON, made from rows at a fifth of the cost of a body for each product.

The members are the members of `StockItem` in reports.py, which describes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pantry.domain.quantity import number
from projections import Row

AT_A_TIME = 500
"""Rows that are objects at the same time. The text of the report is all that grows with the number of products."""
_ENCODER = msgspec.json.Encoder()


class _Product(msgspec.Struct, gc=False, omit_defaults=True):
    ean13: str
    name: str
    description: str
    unit: str
    min_stock: float
    current_stock: float
    active: bool
    created_at: str
    updated_at: str
    category_id: str | None = None
    counted_at: str | None = None


class _Item(msgspec.Struct, gc=False):
    product: _Product
    is_low_stock: bool


def items_of(rows: Sequence[Row]) -> tuple[msgspec.Raw, int]:
    """Return the items of products as a list in JSON, and how many of them are low."""
    parts: list[bytes] = []
    low = 0
    for start in range(0, len(rows), AT_A_TIME):
        items = [_item(row) for row in rows[start : start + AT_A_TIME]]
        low += sum(item.is_low_stock for item in items)
        parts.append(_ENCODER.encode(items)[1:-1])
    return msgspec.Raw(b"[" + b",".join(parts) + b"]"), low


def _item(row: Row) -> _Item:
    stock, least = row["current_stock"], row["min_stock"]
    product = _Product(
        row["ean13"],
        row["name"],
        row["description"],
        row["unit"],
        number(least),
        number(stock),
        bool(row["active"]),
        row["created_at"],
        row["updated_at"],
        row["category_id"] or None,
        row["counted_at"] or None,
    )
    return _Item(product, stock <= least)
