"""Queries of a graph of the pantry's things: parts of lists in both directions, and one statement for many parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from pantry.readmodel.statements import COLUMNS, MOVEMENTS, MOVEMENTS_OF_ALL, movements_sql, past_sql, products_sql
from pantry.readmodel.views import CategoryView, MovementView, ProductView
from projections import (
    FoundPart,
    JoinedList,
    ListPart,
    Queryable,
    SortOrder,
    Sql,
    count_of,
    counts_for,
    fetch_for,
    grouped,
    keyed,
    selected,
)

PRODUCTS = SortOrder(("name_key", "ean13"))
PRODUCTS_BY_CODE = SortOrder(("ean13",))
PRODUCTS_BY_STOCK = SortOrder(("current_stock", "ean13"))
PRODUCTS_BY_CHANGE = SortOrder(("updated_at", "ean13"))
CATEGORIES = SortOrder(("name_key", "id"))
_MOVEMENTS_OF_ONE = SortOrder(("sequence", "position"), descending=True)
_OF_PRODUCT = JoinedList(table="movements", alias="m", key="id", condition="product_ean13 = p.ean13")
_OF_CATEGORY = JoinedList(table="products", alias="p", key="ean13", condition="category_id = c.id")


@attrs.frozen
class StockCount:
    """How many products are kept, and how many of them are low."""

    total_products: int
    low_stock_products: int


class PantryGraph:
    """The queries, on one database."""

    def __init__(self, store: Queryable) -> None:
        self._store = store

    async def products(self, part: ListPart, order: SortOrder = PRODUCTS, **conditions: Any) -> FoundPart[ProductView]:
        """Products in an order; the conditions are as in `PantryQueries.products`."""
        return await selected(self._store, products_sql(**conditions), order, part, ProductView.of)

    async def categories(self, part: ListPart) -> FoundPart[CategoryView]:
        """Categories by name."""
        return await selected(self._store, Sql("SELECT * FROM categories WHERE TRUE"), CATEGORIES, part, CategoryView.of)

    async def count_products(self, **conditions: Any) -> int:
        """The number of products that meet conditions."""
        return await count_of(self._store, products_sql(**conditions))

    async def count_categories(self) -> int:
        """The number of categories."""
        return await count_of(self._store, Sql("SELECT id FROM categories"))

    async def movements(self, part: ListPart, order: SortOrder = MOVEMENTS_OF_ALL, **conditions: Any) -> FoundPart[MovementView]:
        """Movements in an order; the conditions are as in `PantryQueries.movements`."""
        first = part if order == MOVEMENTS_OF_ALL else None
        return await selected(self._store, movements_sql(first=first, **conditions), order, part, MovementView.of)

    async def count_movements(self, **conditions: Any) -> int:
        """The number of movements that meet conditions."""
        return await count_of(self._store, movements_sql(**conditions))

    async def count_movements_of(self, codes: Sequence[str]) -> Mapping[str, int]:
        """The number of movements of each of these products, as far as there are any."""
        sql = Sql("SELECT product_ean13, count(*) AS found FROM movements")
        sql.any_of("WHERE product_ean13 IN ({}) GROUP BY product_ean13", codes)
        return await counts_for(self._store, sql, "product_ean13")

    async def count_products_of(self, categories: Sequence[str]) -> Mapping[str, int]:
        """The number of products of each of these categories, as far as there are any."""
        sql = Sql("SELECT category_id, count(*) AS found FROM products")
        sql.any_of("WHERE category_id IN ({}) GROUP BY category_id", categories)
        return await counts_for(self._store, sql, "category_id")

    async def products_by_code(self, codes: Sequence[str], as_of: datetime | None = None) -> Mapping[str, ProductView]:
        """The products with these codes, now or as they were at a time, as far as they were there."""
        if as_of is None:
            sql = Sql("SELECT * FROM products")
            sql.any_of("WHERE ean13 IN ({})", codes)
        else:
            sql = past_sql(as_of, codes)
        return await keyed(await fetch_for(self._store, sql), "ean13", ProductView.of)

    async def categories_by_id(self, ids: Sequence[str]) -> Mapping[str, CategoryView]:
        """The categories with these ids."""
        sql = Sql("SELECT * FROM categories")
        sql.any_of("WHERE id IN ({})", ids)
        return await keyed(await fetch_for(self._store, sql), "id", CategoryView.of)

    async def movements_by_id(self, ids: Sequence[str]) -> Mapping[str, MovementView]:
        """The movements with these ids."""
        sql = Sql(MOVEMENTS)
        sql.any_of("WHERE m.id IN ({})", ids)
        return await keyed(await fetch_for(self._store, sql), "id", MovementView.of)

    async def movements_of(self, codes: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[MovementView]]:
        """Part of the movements of each of these products, newest first: an index finds it for each of them."""
        sql = Sql(f"SELECT {COLUMNS} FROM products AS p")  # noqa: S608 - a constant
        _MOVEMENTS_OF_ONE.join(sql, part, _OF_PRODUCT, self._store.dialect)
        sql.any_of("LEFT JOIN movements AS r ON r.reverses = m.id WHERE p.ean13 IN ({})", codes)
        sql.add(f"ORDER BY p.ean13, {_MOVEMENTS_OF_ONE.text(backward=part.backward, prefix='m.')}")
        return await grouped(await fetch_for(self._store, sql), "product_ean13", part, MovementView.of)

    async def products_of(self, categories: Sequence[str], part: ListPart) -> Mapping[str, FoundPart[ProductView]]:
        """Part of the products of each of these categories, by name."""
        sql = Sql("SELECT p.* FROM categories AS c")
        PRODUCTS.join(sql, part, _OF_CATEGORY, self._store.dialect)
        sql.any_of("WHERE c.id IN ({})", categories)
        sql.add(f"ORDER BY c.id, {PRODUCTS.text(backward=part.backward, prefix='p.')}")
        return await grouped(await fetch_for(self._store, sql), "category_id", part, ProductView.of)

    async def stock_at(self, codes: Sequence[str], at: datetime) -> Mapping[str, int]:
        """The stock of each of these products at a time, in thousandths, as far as they were there."""
        return {code: product.current_stock for code, product in (await self.products_by_code(codes, at)).items()}

    async def report(self, *, as_of: datetime | None = None) -> StockCount:
        """How many products are kept, and how many of them are low, now or at a time."""
        inner = products_sql(active=True, as_of=as_of)
        # The sum of a condition is not the same in both dialects, a CASE is.
        row = await self._store.fetch_in_thread(
            f"""
            SELECT count(*) AS kept, coalesce(sum(CASE WHEN current_stock <= min_stock THEN 1 ELSE 0 END), 0) AS low
            FROM ({inner.text}) AS counted""",  # noqa: S608 - constants
            *inner.arguments,
        )
        return StockCount(row[0]["kept"], row[0]["low"])
