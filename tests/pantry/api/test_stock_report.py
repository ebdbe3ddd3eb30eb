"""The stock report is encoded from rows: it has the members and values of the bodies that the OpenAPI document describes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from httpkit.messages.encoding import plain
from pantry.http.bodies import ProductBody
from pantry.http.reports import StockItem
from pantry.http.stock import AT_A_TIME, items_of
from pantry.readmodel.views import ProductView

TIME = "2026-11-24T17:20:00.000001Z"


def row(number: int = 1, **values: Any) -> dict[str, Any]:
    plain_row: dict[str, Any] = {
        "ean13": f"{number:013}",
        "name": 'Flour "fine"\n\u00e9\u2028',
        "description": "",
        "unit": "kg",
        "min_stock": 1500,
        "current_stock": 2000,
        "category_id": None,
        "active": 1,
        "created_at": TIME,
        "updated_at": TIME,
        "counted_at": None,
        "name_key": "flour",
        "version": 3,
    }
    return plain_row | values


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"category_id": "c1", "counted_at": TIME},
        {"category_id": "", "counted_at": ""},
        {"current_stock": 1500},
        {"current_stock": 9_999_999_999, "min_stock": 1},
        {"active": True, "current_stock": 0},
    ],
)
def test_an_item_is_the_body_that_is_described(values: dict[str, Any]) -> None:
    product = ProductView.of(row(**values))
    expected = plain([StockItem(product=ProductBody.of(product), is_low_stock=product.is_low)])
    encoded, low = items_of([row(**values)])
    assert msgspec.json.decode(encoded) == expected
    assert low == product.is_low


@pytest.mark.parametrize("count", [0, 1, AT_A_TIME, AT_A_TIME + 1, 3 * AT_A_TIME])
def test_all_rows_are_there_in_their_order(count: int) -> None:
    encoded, low = items_of([row(number, current_stock=number) for number in range(count)])
    assert [item["product"]["ean13"] for item in msgspec.json.decode(encoded)] == [f"{number:013}" for number in range(count)]
    assert low == min(count, 1501)
