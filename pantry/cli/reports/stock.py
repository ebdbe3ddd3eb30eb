"""`pantry stock`: the stock of one product."""

from __future__ import annotations

import click

from pantry.cli.movements.quantities import low_cell, shown, stock_cell
from pantry.cli.products.products import NO_SUCH_PRODUCT, as_of_option, ean13_argument
from pantry.cli.session import Session, client_command
from pantry.client.resources import Stock
from terminalkit import examples
from terminalkit.display import Output


@click.command(
    epilog=examples(
        "pantry stock 4006381333931",
        "pantry stock 4006381333931 --as-of 2026-11-01T00:00:00Z",
        "pantry stock 4006381333931 --json | jq .current_stock",
    )
)
@ean13_argument
@as_of_option
@client_command(not_found=NO_SUCH_PRODUCT)
async def stock(session: Session, *, ean13: str, as_of: str | None) -> int:
    """Print the stock of the product with the code EAN."""
    return session.show(await session.client.stock(ean13, as_of=as_of), _show)


def _show(output: Output, found: Stock) -> None:
    low = found.is_low_stock
    amount = stock_cell(found.current_stock, low=low)
    output.fields([("stock", amount), ("minimum", shown(found.min_stock)), ("state", low_cell(low=low))])
