"""A pantry's products by Strawberry on aiohttp and uvloop, documents cached: python strawberry_nested.py PORT DATABASE."""

from __future__ import annotations

import sys
from typing import Any

import strawberry
import uvloop
from aiohttp import web
from pantry_tables import Loaders, Tables, quantity
from strawberry.aiohttp.views import GraphQLView
from strawberry.extensions import ParserCache, ValidationCache

tables = Tables(sys.argv[2])


@strawberry.type
class Category:
    """A category."""

    name: str


@strawberry.type
class Movement:
    """A movement of a product."""

    type: str
    quantity: float
    created_at: str
    of: strawberry.Private[str]

    @strawberry.field
    async def product(self, info: strawberry.Info[Loaders, Any]) -> Product:
        """Its product."""
        return Product.of(await info.context.product(self.of))


@strawberry.type
class Movements:
    """A page of movements."""

    nodes: list[Movement]


@strawberry.type
class Product:
    """A product."""

    name: str
    ean13: str
    current_stock: float
    in_category: strawberry.Private[str | None]

    @classmethod
    def of(cls, row: Any) -> Product:
        """The product of a row."""
        keys = row.keys()
        stock = quantity(row["current_stock"]) if "current_stock" in keys else 0.0
        return cls(
            name=row["name"],
            ean13=row["ean13"],
            current_stock=stock,
            in_category=row["category_id"] if "category_id" in keys else None,
        )

    @strawberry.field
    async def category(self, info: strawberry.Info[Loaders, Any]) -> Category | None:
        """Its category."""
        if self.in_category is None:
            return None
        row = await info.context.category(self.in_category)
        return None if row is None else Category(name=row["name"])

    @strawberry.field
    async def stock(self, info: strawberry.Info[Loaders, Any], as_of: str) -> float:
        """Its stock at a time."""
        row = await info.context.stock(self.ean13, as_of)
        return 0.0 if row is None else quantity(row["stock_after"])

    @strawberry.field
    async def movements(self, info: strawberry.Info[Loaders, Any], first: int) -> Movements:
        """Its newest movements."""
        return Movements(
            nodes=[
                Movement(
                    type=row["type"],
                    quantity=quantity(row["quantity"]),
                    created_at=row["created_at"],
                    of=row["product_ean13"],
                )
                for row in await info.context.movements(self.ean13, first)
            ]
        )


@strawberry.type
class Products:
    """A page of products."""

    nodes: list[Product]


@strawberry.type
class Query:
    """The queries."""

    @strawberry.field
    def products(self, first: int) -> Products:
        """Products by name."""
        return Products(nodes=[Product.of(row) for row in tables.fetch("products", first)])


class View(GraphQLView[Loaders, Any]):
    """The view, with look-ups for each request."""

    async def get_context(self, *_: Any, **_more: Any) -> Loaders:
        """The context of a request."""
        return Loaders(tables)


uvloop.install()
app = web.Application()
schema = strawberry.Schema(Query, extensions=[ParserCache, ValidationCache])
app.router.add_post("/function/pantry", View(schema=schema, graphql_ide=None))
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
