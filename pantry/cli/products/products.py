"""`pantry product`: the products."""

from __future__ import annotations

from typing import Any

import click

from pantry.cli.completion import category_names, product_codes
from pantry.cli.movements.importing import import_products
from pantry.cli.movements.quantities import AMOUNT, FACTOR, remark_options, shown
from pantry.cli.session import Session, client_command
from pantry.cli.tables import show_product, show_products
from pantry.client.resources import Count, Product
from terminalkit import ExitCode, examples
from terminalkit.client import one_more
from terminalkit.display import Output

NO_SUCH_PRODUCT = "pantry product add {ean13} --name NAME --unit UNIT"
LISTED = 100
"""How many products or movements are listed, unless the user says otherwise."""

limit_option = click.option(
    "--limit", type=click.IntRange(min=0), default=LISTED, show_default=True, help="Largest number; 0 for all."
)
as_of_option = click.option("--as-of", metavar="TIME", help="As it was then: a time in RFC 3339 form.")
category_option = click.option("--category", shell_complete=category_names, help="A category's name or id.")
ean13_argument = click.argument("ean13", metavar="EAN", shell_complete=product_codes)


@click.group()
def product() -> None:
    """List, show, create, import and change products, and count what is there."""


product.add_command(import_products)


@product.command(
    "list",
    epilog=examples(
        "pantry product list", "pantry product list --low", "pantry product list --search flour --json | jq -r '.[].ean13'"
    ),
)
@click.option("--search", help="Part of the name, or beginning of the code.")
@category_option
@click.option("--low", "low_stock", is_flag=True, default=None, help="Only what has come down to its minimum.")
@click.option("--active/--inactive", default=None, help="Only what is kept, or is not kept any more.")
@as_of_option
@limit_option
@client_command()
async def list_products(session: Session, *, category: str | None, limit: int, **which: Any) -> int:
    """List products by name."""
    category_id = await session.category_id(category)
    found = await session.client.products(category=category_id, limit=one_more(limit), **which)
    return session.show_first(limit, found, show_products)


@product.command(
    "show",
    epilog=examples(
        "pantry product show 4006381333931",
        "pantry product show 4006381333931 --as-of 2026-11-01T00:00:00Z",
        "pantry product show 4006381333931 --json | jq .current_stock",
    ),
)
@ean13_argument
@as_of_option
@client_command(not_found=NO_SUCH_PRODUCT)
async def show(session: Session, *, ean13: str, as_of: str | None) -> int:
    """Show the product with the code EAN."""
    return await _show(session, await session.client.product(ean13, as_of=as_of))


@product.command(
    "add",
    epilog=examples(
        "pantry product add 4006381333931 --name Flour --unit kg",
        "pantry product add 4006381333931 --name Flour --unit kg --min 2 --category Baking",
        "pantry product add --name 'Plum jam' --unit jar --json     it gets an own code",
    ),
)
@click.argument("ean13", metavar="[EAN]", required=False)
@click.option("--name", required=True, help="Name of the product.")
@click.option("--unit", required=True, help="Unit of its stock: kg, l, piece.")
@click.option("--min", "min_stock", type=AMOUNT, default="0", show_default=True, help="From this stock down it is low.")
@category_option
@click.option("--description", default="", help="Anything else about it.")
@client_command()
async def add(session: Session, *, ean13: str | None, category: str | None, **details: Any) -> int:
    """Create the product with the code EAN, without stock. Without EAN it gets an own code that begins with 29."""
    body = details | {"category_id": await session.category_id(category)}
    client = session.client
    added = client.add_product_without_code(body) if ean13 is None else client.add_product(ean13, body)
    return await _show(session, await added)


@product.command(
    "edit",
    epilog=examples(
        "pantry product edit 4006381333931 --min 3",
        "pantry product edit 4006381333931 --unit g --factor 1000     1 kg is 1000 g",
        "pantry product edit 4006381333931 --category ''     it has none then",
    ),
)
@ean13_argument
@click.option("--name", help="Name of the product.")
@click.option("--unit", help="Unit of its stock.")
@click.option("--factor", type=FACTOR, help="How many of the new unit one of the present unit is: converts the stock.")
@click.option("--min", "min_stock", type=AMOUNT, help="From this stock down it is low.")
@category_option
@click.option("--description", help="Anything else about it.")
@client_command(not_found=NO_SUCH_PRODUCT)
async def edit(session: Session, *, ean13: str, category: str | None, **details: Any) -> int:
    """Change details of the product with the code EAN. Values without an option stay."""
    changes = {name: value for name, value in details.items() if value is not None}
    if category is not None:
        changes["category_id"] = await session.category_id(category)
    if not changes:
        raise click.UsageError("nothing to change: name what is to be different")
    return await _show(session, await session.client.edit_product(ean13, changes))


@product.command(
    "deactivate",
    epilog=examples(
        "pantry product deactivate 4006381333931",
        "pantry product deactivate 4006381333931 --json",
        "pantry product deactivate 4006381333931 && pantry product list --inactive",
    ),
)
@ean13_argument
@client_command(not_found=NO_SUCH_PRODUCT)
async def deactivate(session: Session, *, ean13: str) -> int:
    """Deactivate the product with the code EAN. Its data stays, and its remaining stock can be taken out."""
    await session.client.deactivate(ean13)
    if session.output.json:
        session.output.document((await session.client.product(ean13)).document)
    session.output.note(f"{ean13} is not kept any more")
    return ExitCode.OK


@product.command(
    "activate",
    epilog=examples(
        "pantry product activate 4006381333931",
        "pantry product activate 4006381333931 --json",
        "pantry product activate 4006381333931 --quiet",
    ),
)
@ean13_argument
@client_command(not_found=NO_SUCH_PRODUCT)
async def activate(session: Session, *, ean13: str) -> int:
    """Keep the product with the code EAN again."""
    return await _show(session, await session.client.activate(ean13))


@product.command(
    "count",
    epilog=examples(
        "pantry product count 4006381333931 7",
        "pantry product count 4006381333931 0.75 --by anna --reason stocktake",
        "pantry product count 4006381333931 7 --json | jq .difference",
    ),
)
@ean13_argument
@click.argument("counted", metavar="QUANTITY", type=AMOUNT)
@remark_options
@client_command(not_found=NO_SUCH_PRODUCT)
async def count(session: Session, *, ean13: str, counted: float, remarks: dict[str, str]) -> int:
    """Set the stock of the product with the code EAN to QUANTITY: the difference is booked."""
    return session.show(await session.client.count(ean13, counted, remarks), _show_count)


def _show_count(output: Output, found: Count) -> None:
    sign = "+" if found.difference > 0 else ""
    booked = f"booked {sign}{shown(found.difference)}" if found.difference else "as the books have it"
    output.row([found.ean13, shown(found.current_stock), booked])


async def _show(session: Session, product: Product) -> int:
    categories = await session.client.categories() if product.category_id and not session.output.json else ()
    names = {category.id: category.name for category in categories}
    return session.show(product, lambda output, one: show_product(output, one, names.get(one.category_id or "", "")))
