"""`pantry movement import`: many movements of a file."""

from __future__ import annotations

from typing import BinaryIO

import click

from pantry.cli.session import Session, client_command
from pantry.client.resources import Imported
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.table import Column
from terminalkit.text import count

_OBJECT, _LIST = b"{", b"["


@click.command(
    "import",
    epilog=examples(
        "pantry movement import shopping.csv --dry-run",
        "pantry movement import movements.ndjson",
        "printf 'product_ean13,type,quantity\\n4006381333931,in,2\\n' | pantry movement import -",
    ),
)
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Only print the result that each row would have.")
@client_command()
async def import_(session: Session, *, file: BinaryIO, dry_run: bool) -> int:
    """Book the movements of FILE, `-` for standard input, in their order.

    CSV with a first line of names (product_ean13, type, quantity, reason, notes, created_by), or a JSON object on each line.
    Each row is judged separately. Refused rows are listed, and the exit code is 7 then.
    """
    rows = file.read()
    done = await session.client.import_movements(rows, media_of(rows), dry_run=dry_run)
    if session.output.json:
        session.output.document(done.document)
    elif done.refused:
        _show_refused(session, done)
    would = "would be " if dry_run else ""
    session.output.note(f"{count(done.accepted, 'row')} {would}booked, {done.refused} {would}refused")
    return ExitCode.PARTIAL if done.refused else ExitCode.OK


def media_of(rows: bytes) -> str:
    """Return the type of a file of movements, by its first bytes."""
    begins = rows.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {_OBJECT: "application/x-ndjson", _LIST: "application/json"}.get(begins, "text/csv")


def _show_refused(session: Session, done: Imported) -> None:
    columns = [Column("ROW", "number"), Column("STATUS", "number"), Column("WHY")]
    refused = [row for row in done.results if row.error is not None]
    session.output.table(columns, [[str(row.row), str(row.status), row.error or ""] for row in refused])
