"""`projections rebuild | resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from projections.cli.options import database_option, model_named, nats_option, opened_log, workers_option
from projections.cli.working import ordered, shown
from terminalkit.command import command
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from projections.model import ReadModel

_GOES_ON = "the copy is kept"
_name = click.argument("name", required=False)
_no_switch = click.option("--no-switch", is_flag=True, help="Make and verify the copy; leave the switch to `projections switch`.")


@click.command(
    epilog=examples(
        "projections rebuild tracker --database sqlite:.data/gctd.db",
        "projections rebuild tasks         the read model that this projection belongs to",
        "projections rebuild --workers 2   with two processes that work out the rows",
        "projections rebuild --no-switch   then look at it, and: projections switch",
    )
)
@_name
@nats_option
@database_option
@_no_switch
@workers_option
@command(logs=True, busy=True)
async def rebuild(
    invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool, workers: int
) -> int:
    """Make the read model NAME again beside the live tables, verify it, and switch to it. Reads and writes go on meanwhile.

    A read model is made whole: its projections are read together. Interrupted, it is gone on with by `projections resume`.
    """
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    model = model_named(name)
    await copies_at(database).discard(CopyPart.NEW)
    return await _make(invocation, model, nats_url, database, no_switch=no_switch, count=workers)


@click.command(epilog=examples("projections resume tracker --database sqlite:.data/gctd.db"))
@_name
@nats_option
@database_option
@_no_switch
@workers_option
@command(logs=True, busy=True)
async def resume(invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool, workers: int) -> int:
    """Go on with a rebuild that was stopped, from where it was: bring the copy to the end of the log, verify, switch."""
    from projections.errors import NoCopy  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    if CopyPart.NEW not in await copies_at(database).there():
        raise NoCopy("there is nothing to go on with: `projections rebuild` begins")
    return await _make(invocation, model_named(name), nats_url, database, no_switch=no_switch, count=workers)


async def _make(invocation: Invocation, model: ReadModel, nats_url: str, database: str, *, no_switch: bool, count: int) -> int:
    from projections.parallel import Workers  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.rebuild.operations import Operation  # noqa: PLC0415 - slow
    from projections.rebuild.rebuild import confirm, fill  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at  # noqa: PLC0415 - slow

    output = invocation.output
    invocation.goes_on, invocation.goes_on_hint = _GOES_ON, f"projections resume {model.name} goes on with it"
    async with opened_log(nats_url, model) as log, Workers(model, count) as workers:
        async with copies_at(database).store(CopyPart.NEW) as copy:
            await fill(copy, log, model, run=shown(output, "filling", workers))
            sequence = await confirm(copy, log, model, run=shown(output, "verifying", workers))
        output.note(f"the copy equals a fold of the log up to sequence {sequence}")
        if not no_switch:
            sequence = (await ordered(Operation.SWITCH, database, log, model)).sequence
            output.note("switched; `projections rollback` goes back")
    if output.json:
        output.document({"read_model": model.name, "sequence": sequence, "switched": not no_switch})
    return ExitCode.OK
