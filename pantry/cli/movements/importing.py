"""`pantry movement import` and `pantry product import`: the rows of a file."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import BinaryIO, TypeVar
from uuid import uuid4

import click

from pantry.cli.movements.quantities import shown
from pantry.cli.session import Session, client_command
from pantry.client.resources import Imported, MovementRow, ProductRow
from terminalkit import ExitCode, Failure, examples
from terminalkit.client import Unavailable
from terminalkit.display import Cell, Column, count

R = TypeVar("R", bound=Imported)

_OBJECT, _LIST = b"{", b"["
_MOVEMENT = [Column("EAN13", "id"), Column("TYPE"), Column("QUANTITY", "number"), Column("STOCK", "number")]
_PRODUCT = [Column("EAN13", "id"), Column("NAME"), Column("UNIT"), Column("MINIMUM", "number"), Column("CATEGORY")]

file_argument = click.argument("file", type=click.File("rb"))
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only print how each row is read, and the result that it would have."
)
key_option = click.option(
    "--key", metavar="KEY", help="Repeat an import that was cut off: no row takes effect twice.  [default: a new key]"
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
@key_option
@client_command()
async def import_movements(session: Session, *, file: BinaryIO, dry_run: bool, key: str | None) -> int:
    """Book the movements of FILE, `-` for standard input, in their order.

    A table with a first line of names (product_ean13, type, quantity, reason, notes, created_by), or a JSON object on each line.
    Commas, semicolons or tabs separate the cells of a table, and decimals may have a comma. Each row is judged separately.
    Refused rows are listed, and rows of which it is not known whether they took effect. The exit code is 7 then.
    """
    rows = file.read()
    key = key or str(uuid4())
    sending = session.client.import_movements(rows, media_of(rows), dry_run=dry_run, key=key)
    done = await (sending if dry_run else _repeatable(session, sending, key))
    return _report(session, done, key, "booked", _MOVEMENT, [(row, _cells_of_movement(row)) for row in done.results])


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
@key_option
@client_command()
async def import_products(session: Session, *, file: BinaryIO, dry_run: bool, key: str | None) -> int:
    """Create the products of FILE, `-` for standard input, without stock.

    A table with a first line of names (ean13, name, unit, min_stock, category, description), or a JSON object on each line.
    Commas, semicolons or tabs separate the cells of a table, and decimals may have a comma. Each row is judged separately.
    Refused rows are listed, and rows of which it is not known whether they took effect. The exit code is 7 then.
    """
    rows = file.read()
    key = key or str(uuid4())
    sending = session.client.import_products(rows, media_of(rows), dry_run=dry_run, key=key)
    done = await (sending if dry_run else _repeatable(session, sending, key))
    return _report(session, done, key, "created", _PRODUCT, [(row, _cells_of_product(row)) for row in done.results])


def media_of(rows: bytes) -> str:
    """Return the type of a file of rows, by its first bytes."""
    begins = rows.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {_OBJECT: "application/x-ndjson", _LIST: "application/json"}.get(begins, "text/csv")


async def _repeatable(session: Session, sending: Awaitable[R], key: str) -> R:
    """Return the result of an import. If it is cut off, the error names the way to repeat it."""
    run = session.invocation
    run.goes_on, run.goes_on_hint = "rows of it may have taken effect", _repeat(key)
    try:
        return await sending
    except Unavailable as error:
        if not error.sent:
            raise
        raise Failure(run.what, f"{error}; {run.goes_on}", exit_code=error.exit_code, hint=run.goes_on_hint) from error


def _repeat(key: str) -> str:
    return f"repeat the command with --key {key}"


def _report(
    session: Session,
    done: Imported,
    key: str,
    verb: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[MovementRow | ProductRow, Sequence[Cell]]],
) -> int:
    """Print the rows that were not accepted, or all rows as they were read in a dry run. Return the exit code."""
    if session.output.json:
        session.output.document(done.document)
    elif done.dry_run:
        table = [[str(row.row), *cells, str(row.status), row.error or ""] for row, cells in rows]
        session.output.table([Column("ROW", "number"), *columns, Column("STATUS", "number"), Column("WHY")], table)
    elif done.refused or done.unknown:
        table = [[str(row.row), str(row.status), row.error] for row, _ in rows if row.error is not None]
        session.output.table([Column("ROW", "number"), Column("STATUS", "number"), Column("WHY")], table)
    would = "would be " if done.dry_run else ""
    again = "" if done.dry_run else f": {_repeat(key)}"
    unknown = f", {done.unknown} not known{again}" if done.unknown else ""
    session.output.note(f"{count(done.accepted, 'row')} {would}{verb}, {done.refused} {would}refused{unknown}")
    if done.ignored:
        session.output.note(f"without effect: {', '.join(done.ignored)}")
    if done.note:
        session.output.note(done.note)
    return ExitCode.PARTIAL if done.refused or done.unknown else ExitCode.OK


def _cells_of_movement(row: MovementRow) -> Sequence[Cell]:
    return [row.product_ean13, row.type, _quantity(row.quantity), _quantity(row.stock_after)]


def _cells_of_product(row: ProductRow) -> Sequence[Cell]:
    return [row.ean13, row.name, row.unit, _quantity(row.min_stock), row.category]


def _quantity(value: float | None) -> str:
    return "" if value is None else shown(value)
