"""Products, categories and movements as tables."""

from __future__ import annotations

from collections.abc import Sequence

from pantry.cli.movements.quantities import low_cell, shown, stock_cell
from pantry.client.resources import Barcode, Category, Movement, Product, Stocktake
from terminalkit.display import Cell, Column, Output, Painted, moment


def show_products(output: Output, products: Sequence[Product]) -> None:
    """Products, one on a line."""
    columns = [
        Column("EAN13", "id"),
        Column("NAME"),
        Column("STOCK", "number"),
        Column("UNIT"),
        Column("MINIMUM", "number", drop=1),
        Column("STATE"),
    ]
    output.table(
        columns,
        [
            [
                product.ean13,
                product.name,
                stock_cell(product.current_stock, low=product.is_low),
                product.unit,
                shown(product.min_stock),
                state(product),
            ]
            for product in products
        ],
    )


def state(product: Product) -> Cell:
    """Remarkable facts of a product."""
    return low_cell(low=product.is_low) if product.active else Painted("inactive", "yellow")


def show_product(output: Output, product: Product, category: str) -> None:
    """One product; `category` is its category's name."""
    output.fields(
        [
            ("ean13", product.ean13),
            ("name", product.name),
            ("stock", f"{shown(product.current_stock)} {product.unit}"),
            ("minimum", f"{shown(product.min_stock)} {product.unit}"),
            ("state", state(product)),
            ("category", category),
            ("description", product.description),
        ]
    )


def show_categories(output: Output, categories: Sequence[Category]) -> None:
    """Categories, one on a line."""
    columns = [Column("NAME"), Column("DESCRIPTION", drop=1), Column("ID", "id")]
    output.table(columns, [[category.name, category.description, category.id] for category in categories])


def show_movements(output: Output, movements: Sequence[Movement]) -> None:
    """Movements, one on a line."""
    columns = [
        Column("TIME", "number"),
        Column("EAN13", "id"),
        Column("TYPE"),
        Column("QUANTITY", "number"),
        Column("UNIT"),
        Column("STOCK", "number", drop=1),
        Column("WHY", drop=3),
        Column("BY", drop=2),
        Column("ID", "id", drop=4),
    ]
    output.table(
        columns,
        [
            [
                moment(movement.created_at),
                movement.product_ean13,
                movement.type,
                shown(movement.quantity),
                movement.unit,
                shown(movement.stock_after),
                why(movement),
                movement.created_by,
                movement.id,
            ]
            for movement in movements
        ],
    )


def show_barcodes(output: Output, barcodes: Sequence[Barcode]) -> None:
    """Codes, one on a line."""
    columns = [Column("CODE", "id"), Column("EAN13", "id"), Column("FACTOR", "number")]
    output.table(columns, [[one.code, one.product_ean13, shown(one.factor)] for one in barcodes])


def show_stocktakes(output: Output, stocktakes: Sequence[Stocktake]) -> None:
    """Stocktakes, one on a line."""
    columns = [
        Column("TIME", "number"),
        Column("EAN13", "id"),
        Column("COUNTED", "number"),
        Column("DIFFERENCE", "number"),
        Column("WHY"),
        Column("BY"),
    ]
    output.table(
        columns,
        [
            [moment(one.created_at), one.product_ean13, shown(one.counted), shown(one.difference), one.reason, one.created_by]
            for one in stocktakes
        ],
    )


def why(movement: Movement) -> str:
    """The reason of a movement, and its later fate, in a few words."""
    said = [movement.reason]
    if movement.counted is not None:
        said.append(f"counted {shown(movement.counted)}")
    if movement.reverses:
        said.append("undoes another")
    if movement.reversed_by:
        said.append("undone")
    return ", ".join(word for word in said if word)
