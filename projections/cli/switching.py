"""`projections switch | rollback`."""

from __future__ import annotations

import click

from projections.cli.options import database_option, model_named, nats_option, opened_log
from projections.cli.working import ordered
from terminalkit.commands.command import command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

_name = click.argument("name", required=False)


@click.command(epilog=examples("projections switch bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@command(logs=True)
async def switch(invocation: Invocation, *, name: str | None, nats_url: str, database: str) -> int:
    """Switch to the copy that a rebuild has made and verified; one that is not what was verified is refused (exit code 5)."""
    from projections.errors import NoCopy  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.rebuild.operations import OrderKind  # noqa: PLC0415 - slow
    from projections.rebuild.rebuild import check_whole  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    model, copies = model_named(name), copies_at(database)
    if CopyPart.NEW not in await copies.there():
        raise NoCopy("there is no copy: `projections rebuild` makes one")
    async with copies.reader(CopyPart.NEW) as copy:
        await check_whole(copy, model)
    async with opened_log(nats_url, model) as log:
        done = await ordered(OrderKind.SWITCH, database, log, model)
    _say(invocation, model.name, done.sequence, "switched; `projections rollback` goes back")
    return ExitCode.OK


@click.command(epilog=examples("projections rollback bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@command(logs=True)
async def rollback(invocation: Invocation, *, name: str | None, nats_url: str, database: str) -> int:
    """Switch back to the tables that were live before the last switch, brought up to the end of the log first."""
    from projections.rebuild.operations import OrderKind  # noqa: PLC0415 - slow

    model = model_named(name)
    async with opened_log(nats_url, model) as log:
        done = await ordered(OrderKind.ROLLBACK, database, log, model)
    _say(
        invocation,
        model.name,
        done.sequence,
        "rolled back; the tables that were live are the copy now: `projections resume` verifies it",
    )
    return ExitCode.OK


def _say(invocation: Invocation, model: str, sequence: int, text: str) -> None:
    invocation.output.note(text)
    if invocation.output.json:
        invocation.output.document({"read_model": model, "sequence": sequence})
