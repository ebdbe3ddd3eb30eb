"""`pantry stock`: the stock of one product."""

from __future__ import annotations

import click

from pantry.cli.movements.quantities import low_cell, shown, stock_cell
from pantry.cli.products.products import NO_SUCH_PRODUCT, as_of_option, ean13_argument
from pantry.cli.session import Session, client_command
from terminalkit.commands.options import examples
from terminalkit.exits import ExitCode


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
    found = await session.client.stock(ean13, as_of=as_of)
    if session.output.json:
        session.output.document(found.document)
    else:
        low = found.is_low_stock
        amount = stock_cell(found.current_stock, low=low)
        session.output.fields([("stock", amount), ("minimum", shown(found.min_stock)), ("state", low_cell(low=low))])
    return ExitCode.OK
