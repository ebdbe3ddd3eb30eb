"""A pantry's products by Ariadne on uvicorn with uvloop and httptools: python ariadne_nested.py PORT DATABASE."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from ariadne import ObjectType, QueryType, make_executable_schema
from ariadne.asgi import GraphQL
from pantry_tables import Loaders, Row, Tables, quantity

SDL = """
type Query { products(first: Int!): Products! }
type Products { nodes: [Product!]! }
type Product {
  name: String!  quantity: String!  category: Category  quantityAt(time: String!): String!  movements(first: Int!): Movements!
}
type Category { name: String! }
type Movements { nodes: [Movement!]! }
type Movement { kind: String! amount: String! createdAt: String! product: Product! }
"""
tables = Tables(sys.argv[2])
query, product, movement, category = QueryType(), ObjectType("Product"), ObjectType("Movement"), ObjectType("Category")
product.set_field("name", lambda row, _: row["name"])
product.set_field("quantity", lambda row, _: str(quantity(row["current_stock"])))
category.set_field("name", lambda row, _: row["name"])
movement.set_field("kind", lambda row, _: row["type"].upper())
movement.set_field("amount", lambda row, _: str(quantity(row["quantity"])))
movement.set_field("createdAt", lambda row, _: row["created_at"])
movement.set_field("product", lambda row, info: info.context.product(row["product_ean13"]))


@query.field("products")
def products(_: Any, _info: Any, first: int) -> dict[str, Any]:
    """Products by name."""
    return {"nodes": tables.fetch("products", first)}


@product.field("category")
def category_of(row: Row, info: Any) -> Any:
    """The category of a product."""
    return None if row["category_id"] is None else info.context.category(row["category_id"])


@product.field("quantityAt")
async def quantity_at(row: Row, info: Any, time: str) -> str:
    """The stock of a product at a time."""
    found = await info.context.stock(row["ean13"], time)
    return "0" if found is None else str(quantity(found["stock_after"]))


@product.field("movements")
async def movements_of(row: Row, info: Any, first: int) -> dict[str, Any]:
    """The newest movements of a product."""
    return {"nodes": await info.context.movements(row["ean13"], first)}


schema = make_executable_schema(SDL, query, product, movement, category)
application = GraphQL(schema, context_value=lambda *_: Loaders(tables))
uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", http="httptools")
