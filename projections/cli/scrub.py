"""`projections scrub`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import model_option, nats_option, opened_log
from terminalkit.commands.command import command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from eventlog.admin.scrub import ScrubPass
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel


@click.command(epilog=examples("projections scrub", "projections scrub --rate 500", "projections scrub --json"))
@model_option
@nats_option
@click.option("--each-server", is_flag=True, help="On a cluster, let each server lead the stream in turn, and read its files.")
@click.option("--rate", type=click.FloatRange(min=1), help="Records per second at most.")
@command(logs=True, busy=True)
async def scrub(invocation: Invocation, *, model: ReadModel, nats_url: str, each_server: bool, rate: float | None) -> int:
    """Read every record of the log once, also while the services run. Exit code 5: some are damaged.

    Each state is compared with its events.

    One server of a cluster is read. With --each-server, writers wait about a second each time that another server leads.

    A record that was written or read in the last seconds may come from the memory of nats-server, which hides damage on the disk.
    """
    from eventlog.admin.repair.repair import repairs  # noqa: PLC0415 - slow

    output = invocation.output
    async with opened_log(nats_url, model) as log:
        passes = [one async for one in _passes(log, model, rate, each_server=each_server)]
        repaired = await repairs(log.connection, model.stream)
    count, until = sum(done.count for _, done in passes), max(done.until for _, done in passes)
    found = [(server, damage) for server, done in passes for damage in done.found]
    if output.json:
        output.document(
            {
                "stream": model.stream,
                "until": until,
                "damaged": count,
                "found": [attrs.asdict(damage) | {"server": server} for server, damage in found],
                "repaired": repaired,
            }
        )
    else:
        for server, damage in found:
            output.row(["damaged", f"{damage}" if server is None else f"{server}: {damage}"])
        for one in repaired:
            output.row(["repaired", f"{one['remedy']}, {one['at']}"])
        output.note(f"{count} problems up to sequence {until} of {model.stream}")
    if count:
        output.note(
            "do not delete the tables or older copies, and do not restart nats-server: it may cut the log there. "
            "Take a copy with `projections streams backup --unverified`; `projections repair` shows how they can be restored"
        )
    return ExitCode.CONFLICT if count else ExitCode.OK


async def _passes(
    log: JetStreamLog, model: ReadModel, rate: float | None, *, each_server: bool
) -> AsyncIterator[tuple[str | None, ScrubPass]]:
    """A pass over the log; with `each_server` one of each server of a cluster, with the name of the server."""
    from eventlog.admin.repair.diagnosis import each_leads  # noqa: PLC0415 - slow
    from eventlog.admin.scrub import LogScrubber  # noqa: PLC0415 - slow
    from eventlog.jetstream.message_reader import MessageReader  # noqa: PLC0415 - slow

    def scrubber() -> LogScrubber:
        reader = MessageReader(log.connection, model.stream)
        return LogScrubber(reader, model.registry, log.head, folds=model.folds, share=1, from_leader=each_server)

    if each_server:
        async for server in each_leads(log.connection, model.stream):
            yield server or None, await scrubber().scrub(rate=rate)
    else:
        yield None, await scrubber().scrub(rate=rate)
