"""`projections scrub`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import model_option, nats_option, opened_log
from terminalkit.command import command
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from eventlog.admin.scrub import ScrubPass
    from projections.model import ReadModel


@click.command(epilog=examples("projections scrub", "projections scrub --rate 500", "projections scrub --json"))
@model_option
@nats_option
@click.option("--rate", type=click.FloatRange(min=1), help="Records per second at most.")
@command(logs=True, busy=True)
async def scrub(invocation: Invocation, *, model: ReadModel, nats_url: str, rate: float | None) -> int:
    """Read every record of the log once, also while the services run. Exit code 5: some are damaged.

    Each state is compared with its events.

    A record that was written or read in the last seconds may come from the memory of nats-server, which hides damage on the disk.
    """
    from eventlog.admin.repair.repair import repairs  # noqa: PLC0415 - slow
    from eventlog.admin.scrub import LogScrubber  # noqa: PLC0415 - slow
    from eventlog.jetstream.message_reader import MessageReader  # noqa: PLC0415 - slow

    output = invocation.output
    async with opened_log(nats_url, model) as log:
        reader = MessageReader(log.connection, model.stream)
        done: ScrubPass = await LogScrubber(reader, model.registry, log.head, folds=model.folds, share=1).scrub(rate=rate)
        repaired = await repairs(log.connection, model.stream)
    if output.json:
        output.document(
            {
                "stream": model.stream,
                "until": done.until,
                "damaged": done.count,
                "found": [attrs.asdict(damage) for damage in done.found],
                "repaired": repaired,
            }
        )
    else:
        for damage in done.found:
            output.row(["damaged", str(damage)])
        for one in repaired:
            output.row(["repaired", f"{one['remedy']}, {one['at']}"])
        output.note(f"{done.count} problems up to sequence {done.until} of {model.stream}")
    if done.count:
        output.note(
            "do not delete the tables or older copies, and do not restart nats-server: it may cut the log there. "
            "Take a copy with `projections streams backup --unverified`; `projections repair` shows how they can be restored"
        )
    return ExitCode.CONFLICT if done.count else ExitCode.OK
