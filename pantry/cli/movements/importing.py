"""`pantry movement import` and `pantry product import`: the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import click

from pantry.cli.movements.quantities import shown
from pantry.cli.session import Session, client_command
from pantry.client.resources import Imported, MovementRow, ProductRow
from terminalkit.commands.options import examples
from terminalkit.display.table import Cell, Column
from terminalkit.display.text import count
from terminalkit.exits import ExitCode

_OBJECT, _LIST = b"{", b"["
_MOVEMENT = [Column("EAN13", "id"), Column("TYPE"), Column("QUANTITY", "number"), Column("STOCK", "number")]
_PRODUCT = [Column("EAN13", "id"), Column("NAME"), Column("UNIT"), Column("MINIMUM", "number"), Column("CATEGORY")]

file_argument = click.argument("file", type=click.File("rb"))
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only print how each row is read, and the result that it would have."
)


@click.command(
    "import",
    epilog=examples(
        "pantry movement import shopping.csv --dry-run",
        "pantry movement import movements.ndjson",
        "printf 'product_ean13;type;quantity\\n4006381333931;in;2,5\\n' | pantry movement import -",
    ),
)
@file_argument
@dry_run_option
@client_command()
async def import_movements(session: Session, *, file: BinaryIO, dry_run: bool) -> int:
    """Book the movements of FILE, `-` for standard input, in their order.

    A table with a first line of names (product_ean13, type, quantity, reason, notes, created_by), or a JSON object on each line.
    Commas, semicolons or tabs separate the cells of a table, and decimals may have a comma. Each row is judged separately.
    Refused rows are listed, and the exit code is 7 then.
    """
    rows = file.read()
    done = await session.client.import_movements(rows, media_of(rows), dry_run=dry_run)
    return _report(session, done, "booked", _MOVEMENT, [(row, _cells_of_movement(row)) for row in done.results])


@click.command(
    "import",
    epilog=examples(
        "pantry product import products.csv --dry-run",
        "pantry product import products.ndjson",
        "printf 'ean13;name;unit;min_stock\\n4006381333931;Flour;kg;1,5\\n' | pantry product import -",
    ),
)
@file_argument
@dry_run_option
@client_command()
async def import_products(session: Session, *, file: BinaryIO, dry_run: bool) -> int:
    """Create the products of FILE, `-` for standard input, without stock.

    A table with a first line of names (ean13, name, unit, min_stock, category, description), or a JSON object on each line.
    Commas, semicolons or tabs separate the cells of a table, and decimals may have a comma. Each row is judged separately.
    Refused rows are listed, and the exit code is 7 then.
    """
    rows = file.read()
    done = await session.client.import_products(rows, media_of(rows), dry_run=dry_run)
    return _report(session, done, "created", _PRODUCT, [(row, _cells_of_product(row)) for row in done.results])


def media_of(rows: bytes) -> str:
    """Return the type of a file of rows, by its first bytes."""
    begins = rows.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {_OBJECT: "application/x-ndjson", _LIST: "application/json"}.get(begins, "text/csv")


def _report(
    session: Session,
    done: Imported,
    verb: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[MovementRow | ProductRow, Sequence[Cell]]],
) -> int:
    """Print the refused rows, or all rows as they were read in a dry run. Return the exit code."""
    if session.output.json:
        session.output.document(done.document)
    elif done.dry_run:
        table = [[str(row.row), *cells, str(row.status), row.error or ""] for row, cells in rows]
        session.output.table([Column("ROW", "number"), *columns, Column("STATUS", "number"), Column("WHY")], table)
    elif done.refused:
        table = [[str(row.row), str(row.status), row.error] for row, _ in rows if row.error is not None]
        session.output.table([Column("ROW", "number"), Column("STATUS", "number"), Column("WHY")], table)
    would = "would be " if done.dry_run else ""
    session.output.note(f"{count(done.accepted, 'row')} {would}{verb}, {done.refused} {would}refused")
    return ExitCode.PARTIAL if done.refused else ExitCode.OK


def _cells_of_movement(row: MovementRow) -> Sequence[Cell]:
    return [row.product_ean13, row.type, _quantity(row.quantity), _quantity(row.stock_after)]


def _cells_of_product(row: ProductRow) -> Sequence[Cell]:
    return [row.ean13, row.name, row.unit, _quantity(row.min_stock), row.category]


def _quantity(value: float | None) -> str:
    return "" if value is None else shown(value)
