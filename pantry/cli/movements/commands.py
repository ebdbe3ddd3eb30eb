"""`pantry movement`: movements in and out."""

from __future__ import annotations

import click

from pantry.cli.completion import product_codes
from pantry.cli.movements.importing import import_movements
from pantry.cli.movements.quantities import QUANTITY, remark_options
from pantry.cli.products.products import NO_SUCH_PRODUCT, limit_option
from pantry.cli.session import Session, client_command
from pantry.cli.tables import show_movements
from terminalkit import Choice, examples
from terminalkit.client import one_more

NO_SUCH_MOVEMENT = "pantry movement list"


@click.group()
def movement() -> None:
    """Book, list, show, undo and import movements."""


movement.add_command(import_movements)


@movement.command(
    "add",
    epilog=examples(
        "pantry movement add --ean 4006381333931 --in 10.3",
        "pantry movement add --ean 4006381333931 --out 1 --reason recipe --by anna",
        "pantry movement add --ean 4006381333931 --out 1 --json | jq .stock_after",
    ),
)
@click.option("--ean", "ean13", metavar="EAN", required=True, shell_complete=product_codes, help="The product's code.")
@click.option("--in", "coming", type=QUANTITY, help="How much goes in.")
@click.option("--out", "going", type=QUANTITY, help="How much goes out.")
@remark_options
@client_command(not_found=NO_SUCH_PRODUCT)
async def add(session: Session, *, ean13: str, coming: float | None, going: float | None, remarks: dict[str, str]) -> int:
    """Book what goes in or out of a product. More than there is cannot go out."""
    if (coming is None) == (going is None):
        raise click.UsageError("either --in or --out is needed")
    type_, quantity = ("in", coming) if coming is not None else ("out", going)
    assert quantity is not None, "one of both is given"
    return session.show_one(await session.client.move(ean13, type_, quantity, remarks), show_movements)


@movement.command(
    "list",
    epilog=examples(
        "pantry movement list",
        "pantry movement list --ean 4006381333931 --type out --from 2026-11-01T00:00:00Z",
        "pantry movement list --limit 0 --json | jq -r '.[].id'",
    ),
)
@click.option("--ean", "ean13", metavar="EAN", shell_complete=product_codes, help="Only movements of this product.")
@click.option("--type", "type_", type=Choice(["in", "out"]), help="Only what went in, or out.")
@click.option("--from", "since", metavar="TIME", help="Not before: a time in RFC 3339 form.")
@click.option("--to", "until", metavar="TIME", help="Not after this time.")
@limit_option
@client_command()
async def list_movements(
    session: Session, *, ean13: str | None, type_: str | None, since: str | None, until: str | None, limit: int
) -> int:
    """List movements, the newest first."""
    most = one_more(limit)
    found = await session.client.movements(ean13=ean13, type_=type_, since=since, until=until, limit=most)
    return session.show_first(limit, found, show_movements)


@movement.command(
    "show",
    epilog=examples("pantry movement show ID", "pantry movement show ID --json", "pantry movement show ID --json | jq .notes"),
)
@click.argument("id_", metavar="ID")
@client_command(not_found=NO_SUCH_MOVEMENT)
async def show(session: Session, *, id_: str) -> int:
    """Show the movement ID."""
    return session.show_one(await session.client.movement(id_), show_movements)


@movement.command(
    "undo",
    epilog=examples(
        "pantry movement undo ID", "pantry movement undo ID --reason 'scanned twice'", "pantry movement undo ID --json"
    ),
)
@click.argument("id_", metavar="ID")
@remark_options
@client_command(not_found=NO_SUCH_MOVEMENT)
async def undo(session: Session, *, id_: str, remarks: dict[str, str]) -> int:
    """Book the opposite of the movement ID, once."""
    return session.show_one(await session.client.undo(id_, remarks), show_movements)
