"""`projections status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import database_option, model_option, nats_option, opened_log
from terminalkit.commands.command import command, examples
from terminalkit.display.table import Column
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from projections.model import ReadModel
    from projections.projector.report import ProjectionStatus


@click.command(
    epilog=examples(
        "projections status",
        "projections status --database sqlite:bank.db --json",
        "projections status --digest       also a digest of all rows, to compare two databases by",
    )
)
@model_option
@nats_option
@database_option
@click.option("--digest", is_flag=True, help="Also read all rows and print their digest.")
@command(logs=True)
async def status(invocation: Invocation, *, model: ReadModel, nats_url: str, database: str, digest: bool) -> int:
    """Show the position of each projection, and whether it can continue. The service may run."""
    from projections.projector.report import standing  # noqa: PLC0415 - slow
    from projections.rebuild.verify import dump  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_of, reader_at, shown  # noqa: PLC0415 - slow

    output = invocation.output
    async with reader_at(database) as reader, opened_log(nats_url, model) as log:
        found = await standing(reader, copies_of(reader), log, model)
        whole = (await dump(reader, model)).digest if digest else None
    if output.json:
        document: dict[str, Any] = {"database": shown(database)} | attrs.asdict(found) | ({"digest": whole} if whole else {})
        document["parked"] = len(found.parked)
        output.document(document)
    else:
        numbers = ("VERSION", "POSITION", "HEAD", "LAG", "SECONDS", "APPLIED", "PARKED", "WAITING")
        columns = [Column("PROJECTION", "id"), *(Column(title, "number") for title in numbers), Column("PROBLEM")]
        output.table(columns, [_cells(line) for line in found.projections])
        for copy in found.copies:
            output.row(["copy", copy.part, str(copy.position), copy.problem or "can be switched to"])
        if whole:
            output.row(["digest", whole])
        if found.parked:
            output.note(f"{len(found.parked)} parked: `projections parked` lists them")
    return ExitCode.CONFLICT if found.schema.dirty or any(line.problem for line in found.projections) else ExitCode.OK


def _cells(line: ProjectionStatus) -> list[str]:
    return ["-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value) for value in attrs.astuple(line)]
