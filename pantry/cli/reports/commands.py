"""`pantry report`: stock, low stock, consumption, shopping list."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pantry.cli.completion import product_codes
from pantry.cli.movements.quantities import shown, stock_cell
from pantry.cli.products.products import as_of_option, category_option, limit_option
from pantry.cli.session import Session, client_command
from pantry.cli.tables import show_products, show_stocktakes
from pantry.client.resources import StockReport
from terminalkit import ExitCode, examples
from terminalkit.client import Resource, one_more
from terminalkit.display import Cell, Column, Output

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Write CSV, with a first line of names.")


@click.group()
def report() -> None:
    """Stock, low stock, consumption, shopping list."""


@report.command(
    epilog=examples(
        "pantry report stock", "pantry report stock --as-of 2026-11-01T00:00:00Z", "pantry report stock --csv > stock.csv"
    )
)
@as_of_option
@csv_option
@client_command()
async def stock(session: Session, *, as_of: str | None, as_csv: bool) -> int:
    """The stock of everything that is kept, by name."""
    if as_csv:
        return await _csv(session, "stock", {"as_of": as_of})
    return session.show(await session.client.stock_report(as_of=as_of), _show_report)


def _show_report(output: Output, found: StockReport) -> None:
    show_products(output, [item.product for item in found.items])
    output.note(f"{found.low_stock_products} of {found.total_products} low")


@report.command(
    "low-stock",
    epilog=examples("pantry report low-stock", "pantry report low-stock --json", "pantry report low-stock --csv > low.csv"),
)
@as_of_option
@csv_option
@client_command()
async def low_stock(session: Session, *, as_of: str | None, as_csv: bool) -> int:
    """Products at or below their minimum."""
    if as_csv:
        return await _csv(session, "low-stock", {"as_of": as_of})
    return session.show(await session.client.low_stock(as_of=as_of), show_products)


@report.command(
    epilog=examples(
        "pantry report stocktakes",
        "pantry report stocktakes --ean 4006381333931 --from 2026-10-01T00:00:00Z",
        "pantry report stocktakes --json | jq '.[] | select(.difference != 0)'",
    )
)
@click.option("--ean", "ean13", metavar="EAN", shell_complete=product_codes, help="Only of this product.")
@click.option("--from", "since", metavar="TIME", help="Not before: a time in RFC 3339 form.")
@click.option("--to", "until", metavar="TIME", help="Not after: a time as of --from.")
@limit_option
@client_command()
async def stocktakes(session: Session, *, limit: int, **which: str | None) -> int:
    """Stocktakes, newest first, with and without a difference."""
    found = await session.client.stocktakes(limit=one_more(limit), **which)
    return session.show_first(limit, found, show_stocktakes)


@report.command(
    epilog=examples(
        "pantry report consumption",
        "pantry report consumption --from 2026-10-01T00:00:00Z --to 2026-10-31T23:59:59Z --category Baking",
        "pantry report consumption --csv > used.csv",
    )
)
@click.option("--from", "since", metavar="TIME", help="Not before: a time in RFC 3339 form.  [default: four weeks ago]")
@click.option("--to", "until", metavar="TIME", help="Not after.  [default: now]")
@click.option("--ean", "ean13", metavar="EAN", shell_complete=product_codes, help="Only this product.")
@category_option
@csv_option
@client_command()
async def consumption(
    session: Session, *, since: str | None, until: str | None, ean13: str | None, category: str | None, as_csv: bool
) -> int:
    """Movements in and out, and the days that the stock lasts at that rate."""
    category_id = await session.category_id(category)
    if as_csv:
        return await _csv(session, "consumption", {"from": since, "to": until, "ean13": ean13, "category": category_id})
    found = await session.client.consumption(since=since, until=until, ean13=ean13, category=category_id)
    titles = ("IN", "OUT", "CORRECTED", "PER DAY", "STOCK", "DAYS LEFT")
    rows: list[list[Cell]] = [
        [
            one.ean13,
            one.name,
            one.unit,
            shown(one.total_in),
            shown(one.total_out),
            shown(one.corrected),
            "not known yet" if one.per_day is None else shown(one.per_day),
            shown(one.current_stock),
            (one.unknown_because or "").partition(":")[0] if one.days_left is None else shown(one.days_left),
        ]
        for one in found
    ]
    return _answer(session, found, titles, rows)


@report.command(
    "shopping-list",
    epilog=examples(
        "pantry report shopping-list",
        "pantry report shopping-list --category Baking --json",
        "pantry report shopping-list --csv > buy.csv",
    ),
)
@category_option
@csv_option
@client_command()
async def shopping_list(session: Session, *, category: str | None, as_csv: bool) -> int:
    """Products that are low, with the quantity to buy."""
    category_id = await session.category_id(category)
    if as_csv:
        return await _csv(session, "shopping-list", {"category": category_id})
    found = await session.client.shopping_list(category=category_id)
    titles = ("BUY", "STOCK", "MINIMUM")
    rows: list[list[Cell]] = [
        [one.ean13, one.name, one.unit, shown(one.suggested), stock_cell(one.current_stock, low=True), shown(one.min_stock)]
        for one in found
    ]
    return _answer(session, found, titles, rows)


def _answer(session: Session, found: Sequence[Resource], titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> int:
    columns = [Column("EAN13", "id"), Column("NAME"), Column("UNIT"), *(Column(title, "number") for title in titles)]
    return session.show(found, lambda output, _: output.table(columns, rows))


async def _csv(session: Session, name: str, query: dict[str, str | None]) -> int:
    """The report as the server writes it; a terminal gets it without what would move its cursor."""
    if session.output.json:
        raise click.UsageError("--csv and --json exclude each other")
    text = await session.client.report_csv(name, query)
    if session.output.stdout.isatty():
        session.output.lines(text.replace("\r\n", "\n"))
    else:
        session.output.raw(text)
    return ExitCode.OK
