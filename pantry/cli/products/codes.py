"""`pantry code`: the barcodes that name products."""

from __future__ import annotations

import click

from pantry.cli.completion import product_codes
from pantry.cli.movements.quantities import QUANTITY
from pantry.cli.session import Session, client_command
from pantry.cli.tables import show_barcodes
from terminalkit import ExitCode, examples


@click.group()
def code() -> None:
    """List, show, assign and remove the barcodes of products."""


@code.command(
    "list",
    epilog=examples("pantry code list", "pantry code list --ean 4006381333931", "pantry code list --json | jq -r '.[].code'"),
)
@click.option("--ean", "ean13", metavar="EAN", shell_complete=product_codes, help="Only codes of this product.")
@client_command()
async def list_codes(session: Session, *, ean13: str | None) -> int:
    """List codes, apart from the codes that are keys of products."""
    return session.show(await session.client.barcodes(ean13=ean13), show_barcodes)


@code.command(
    "show",
    epilog=examples("pantry code show 14006381333938", "pantry code show 96385074", "pantry code show 14006381333938 --json"),
)
@click.argument("code")
@client_command(not_found="pantry code assign {code} EAN")
async def show(session: Session, *, code: str) -> int:
    """Show the product that CODE names: EAN-8, UPC-A, UPC-E, EAN-13 or GTIN-14."""
    return session.show_one(await session.client.barcode(code), show_barcodes)


@code.command(
    "assign",
    epilog=examples(
        "pantry code assign 14006381333938 4006381333931 --factor 6     a case of six",
        "pantry code assign 5901234123457 4006381333931     the same of another maker",
        "pantry code assign 14006381333938 4006381333931 --factor 6 --json",
    ),
)
@click.argument("code")
@click.argument("ean13", metavar="EAN", shell_complete=product_codes)
@click.option("--factor", type=QUANTITY, default="1", show_default=True, help="The quantity that the code stands for.")
@client_command(not_found="pantry product add {ean13} --name NAME --unit UNIT")
async def assign(session: Session, *, code: str, ean13: str, factor: float) -> int:
    """Let CODE name the product with the code EAN, or change its factor."""
    return session.show_one(await session.client.assign_barcode(code, ean13, factor), show_barcodes)


@code.command(
    "remove",
    epilog=examples(
        "pantry code remove 14006381333938",
        "pantry code remove 14006381333938 --quiet",
        "pantry code remove 14006381333938 && pantry code list",
    ),
)
@click.argument("code")
@client_command(not_found="pantry code list")
async def remove(session: Session, *, code: str) -> int:
    """Free CODE. Movements that were booked with it stay."""
    await session.client.remove_barcode(code)
    session.output.note(f"{code} names no product any more")
    return ExitCode.OK
