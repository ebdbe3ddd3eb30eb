"""`projections rebuild | resume | switch | rollback`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from projections.cli.options import database_option, model_named, nats_option, opened_log, ordered, parked_line, shown
from terminalkit.commands.command import command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from projections.model import ReadModel

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


_GOES_ON = "the copy is kept"
_no_switch = click.option("--no-switch", is_flag=True, help="Make and verify the copy; leave the switch to `projections switch`.")


@click.command(
    epilog=examples(
        "projections rebuild bank --database sqlite:bank.db",
        "projections rebuild balances      the read model that this projection belongs to",
        "projections rebuild --no-switch   then look at it, and: projections switch",
    )
)
@_name
@nats_option
@database_option
@_no_switch
@command(logs=True, busy=True)
async def rebuild(invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool) -> int:
    """Rebuild the read model NAME next to the live tables, verify it, and switch to it. Reads and writes continue.

    All projections of the read model are rebuilt together. `projections resume` continues an interrupted rebuild.
    Exit code 5: a record of the log is not sound, or an aggregate is parked. The output names it.
    """
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    model = model_named(name)
    await copies_at(database).discard(CopyPart.NEW)
    return await _make(invocation, model, nats_url, database, no_switch=no_switch)


@click.command(epilog=examples("projections resume bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@_no_switch
@command(logs=True, busy=True)
async def resume(invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool) -> int:
    """Continue a stopped rebuild at its position: bring the copy to the end of the log, verify it, and switch to it."""
    from projections.errors import NoCopy  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    if CopyPart.NEW not in await copies_at(database).there():
        raise NoCopy("there is nothing to resume: `projections rebuild` begins")
    return await _make(invocation, model_named(name), nats_url, database, no_switch=no_switch)


async def _make(invocation: Invocation, model: ReadModel, nats_url: str, database: str, *, no_switch: bool) -> int:
    from projections.rebuild.audit import audit  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.rebuild.operations import OrderKind  # noqa: PLC0415 - slow
    from projections.rebuild.rebuild import confirm, fill  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    output = invocation.output
    invocation.goes_on, invocation.goes_on_hint = _GOES_ON, f"projections resume {model.name} resumes it"
    async with opened_log(nats_url, model) as log:
        async with copies_at(database).store(CopyPart.NEW) as copy:
            await fill(copy, log, model, run=shown(output, "filling"))
            sequence = await confirm(copy, log, model, run=shown(output, "verifying"))
            problems = (await audit(log, model, until=sequence)).problems
            parked = await copy.parked()
        output.note(f"the copy equals a fold of the log up to sequence {sequence}")
        if not no_switch:
            sequence = (await ordered(OrderKind.SWITCH, database, log, model)).sequence
            output.note("switched; `projections rollback` goes back")
    lines = [parked_line(one) for one in parked]
    if output.json:
        document = {"read_model": model.name, "sequence": sequence, "switched": not no_switch, "log": list(problems)}
        output.document(document | {"parked": lines})
    else:
        for problem in problems:
            output.row(["log", problem])
        for line in lines:
            output.row(["parked", line])
    return ExitCode.CONFLICT if problems or parked else ExitCode.OK
