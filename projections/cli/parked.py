"""`projections parked | unpark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import database_option, model_option, nats_option, opened_log, ordered
from terminalkit.commands.command import command, examples
from terminalkit.display.table import Column
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from projections.model import ReadModel


@click.command(
    epilog=examples(
        "projections parked --database sqlite:bank.db",
        "projections parked --traceback    with where the errors arose",
        "projections parked --json",
    )
)
@model_option
@database_option
@click.option("--traceback", "traces", is_flag=True, help="Also print where each error arose.")
@command(logs=True)
async def parked(
    invocation: Invocation,
    *,
    model: ReadModel,  # noqa: ARG001 - it names the database
    database: str,
    traces: bool,
) -> int:
    """List the aggregates that wait behind an event that cannot be applied; also while the service runs."""
    from projections.model import timestamp_text  # noqa: PLC0415 - slow
    from projections.stores.databases import reader_at  # noqa: PLC0415 - slow

    output = invocation.output
    async with reader_at(database) as reader:
        found = await reader.parked()
    if output.json:
        output.document([attrs.asdict(one) | {"at": timestamp_text(one.at)} for one in found])
        return ExitCode.OK
    titles = (("PROJECTION", "text"), ("AGGREGATE", "id"), ("SEQUENCE", "number"), ("WAITING", "number"), ("EVENTS", "text"))
    columns = [*(Column(title, kind) for title, kind in titles), Column("ERROR")]  # type: ignore[arg-type]  # they are literals
    rows = [(one.projection, one.subject, str(one.sequence), str(one.waiting), one.types or "-", one.error) for one in found]
    if rows:
        output.table(columns, rows)
    else:
        output.note("nothing is parked")
    for one in found if traces else ():
        output.line(f"{one.projection} {one.subject}, sequence {one.sequence}:")
        output.lines(one.traceback)
    return ExitCode.OK


@click.command(
    epilog=examples(
        "projections unpark --database sqlite:bank.db",
        "projections unpark --projection balances --aggregate bank.account.anna",
    )
)
@model_option
@nats_option
@database_option
@click.option("--projection", metavar="NAME", help="Only what this projection has parked.")
@click.option("--aggregate", metavar="SUBJECT", help="Only this aggregate, as `projections parked` names it.")
@command(logs=True)
async def unpark(
    invocation: Invocation, *, model: ReadModel, nats_url: str, database: str, projection: str | None, aggregate: str | None
) -> int:
    """Apply the waiting commits in order. Exit code 5: a commit still cannot be applied, and its aggregate stays parked."""
    from projections.rebuild.operations import OrderKind  # noqa: PLC0415 - slow

    output = invocation.output
    async with opened_log(nats_url, model) as log:
        done = await ordered(OrderKind.UNPARK, database, log, model, projection=projection, aggregate=aggregate)
    if output.json:
        output.document({"freed": list(done.freed), "parked": list(done.parked)})
    else:
        for word, places in (("freed", done.freed), ("parked", done.parked)):
            for place in places:
                output.row([word, place])
        if not done.freed and not done.parked:
            output.note("nothing is parked")
    return ExitCode.CONFLICT if done.parked else ExitCode.OK
