"""`projections parked | unpark | scrub | repair`: parked aggregates, and damaged records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import carried_out, database_option, model_option, nats_option, opened_log
from terminalkit.coroutine import command, examples
from terminalkit.display.output import Output
from terminalkit.display.table import Column
from terminalkit.failure import ExitCode
from terminalkit.invocation import Invocation

if TYPE_CHECKING:
    from eventlog.admin.diagnosis import RepairSource, Witness
    from eventlog.admin.repair import Repair
    from eventlog.admin.scrub import ScrubPass
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel
    from projections.store import Reader


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
    from projections.model import timestamp_text
    from projections.stores.databases import reader_at

    output = invocation.output
    async with reader_at(database) as reader:
        aggregates = await reader.parked()
    if output.json:
        output.document([attrs.asdict(aggregate) | {"at": timestamp_text(aggregate.at)} for aggregate in aggregates])
        return ExitCode.OK
    titles = (("PROJECTION", "text"), ("AGGREGATE", "id"), ("SEQUENCE", "number"), ("WAITING", "number"), ("EVENTS", "text"))
    columns = [*(Column(title, kind) for title, kind in titles), Column("ERROR")]  # type: ignore[arg-type]  # they are literals
    rows = [(a.projection, a.subject, str(a.sequence), str(a.waiting), a.types or "-", a.error) for a in aggregates]
    if rows:
        output.table(columns, rows)
    else:
        output.note("nothing is parked")
    for aggregate in aggregates if traces else ():
        output.line(f"{aggregate.projection} {aggregate.subject}, sequence {aggregate.sequence}:")
        output.lines(aggregate.traceback)
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
    from projections.rebuild.operations import OperationKind

    output = invocation.output
    async with opened_log(nats_url, model) as log:
        done = await carried_out(OperationKind.UNPARK, database, log, model, projection=projection, aggregate=aggregate)
    if output.json:
        output.document({"freed": list(done.freed), "parked": list(done.parked)})
    else:
        for word, places in (("freed", done.freed), ("parked", done.parked)):
            for place in places:
                output.row([word, place])
        if not done.freed and not done.parked:
            output.note("nothing is parked")
    return ExitCode.CONFLICT if done.parked else ExitCode.OK


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
    from eventlog.admin.repair import repairs

    output = invocation.output
    async with opened_log(nats_url, model) as log:
        passes = [each async for each in _passes(log, model, rate, each_server=each_server)]
        repaired = await repairs(log.connection, model.stream)
    count, until = sum(done.count for _, done in passes), max(done.until for _, done in passes)
    damages = [(server, damage) for server, done in passes for damage in done.found]
    if output.json:
        output.document(
            {
                "stream": model.stream,
                "until": until,
                "damaged": count,
                "found": [attrs.asdict(damage) | {"server": server} for server, damage in damages],
                "repaired": repaired,
            }
        )
    else:
        for server, damage in damages:
            output.row(["damaged", f"{damage}" if server is None else f"{server}: {damage}"])
        for repair_event in repaired:
            output.row(["repaired", f"{repair_event['remedy']}, {repair_event['at']}"])
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
    from eventlog.admin.diagnosis import each_leads
    from eventlog.admin.scrub import LogScrubber
    from eventlog.jetstream.api import MessageReader

    def scrubber() -> LogScrubber:
        reader = MessageReader(log.connection, model.stream)
        return LogScrubber(reader, model.registry, log.head, folds=model.folds, share=1, from_leader=each_server)

    if each_server:
        async for server in each_leads(log.connection, model.stream):
            yield server or None, await scrubber().scrub(rate=rate)
    else:
        yield None, await scrubber().scrub(rate=rate)


_directory = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog=examples(
        "projections repair --from-backup /backup/2026-11-22     the plan",
        "projections repair --from-backup /backup/2026-11-22 --apply --keep /backup/repair",
        "projections repair --tombstone --operator ann --reason 'disk of node 2' --apply --keep /backup/repair",
    )
)
@model_option
@nats_option
@database_option
@click.option(
    "--from-backup", "backups", multiple=True, type=_directory, help="A backup to restore commits from; may be given again."
)
@click.option("--tombstone", is_flag=True, help="Accept the loss of commits that no source has.")
@click.option("--operator", metavar="NAME", help="The name of the person who accepts the loss.")
@click.option("--reason", metavar="TEXT", help="The reason of the loss.")
@click.option("--apply", "apply", is_flag=True, help="Repair the stream; without it only the plan is shown.")
@click.option("--keep", type=_directory, help="An empty directory for a copy of the stream from before and one from after.")
@command(logs=True, busy=True)
async def repair(
    invocation: Invocation,
    *,
    model: ReadModel,
    nats_url: str,
    database: str,
    backups: tuple[Path, ...],
    tombstone: bool,
    operator: str | None,
    reason: str | None,
    apply: bool,
    keep: Path | None,
) -> int:
    """Restore the damaged records of the event stream: from its replicas, from backups; else put tombstones in their places.

    Without --apply the plan is shown. Exit code 5: something is damaged. With --apply the stream is written again with the same
    sequences, and put in the place of the damaged one; writers get 503 until it ends. A restored record has to fit the commits
    around it, and the log that the tables were made from. A tombstone is an event with the name and the reason; the tables then
    have to be rebuilt.
    """
    from eventlog.admin.repair import Operator, StreamRepair

    if tombstone and not (operator and reason):
        raise click.UsageError("--tombstone needs --operator NAME and --reason TEXT", click.get_current_context())
    if apply and keep is None:
        raise click.UsageError("--apply needs --keep DIRECTORY", click.get_current_context())
    by = Operator(name=operator, reason=reason) if tombstone and operator and reason else None
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(opened_log(nats_url, model))
        witness = await _witness(stack, database, log, model)
        sources = await _sources(stack, log, model, backups)
        stream_repair = StreamRepair(log.connection, model.stream, model.registry, sources=sources, witness=witness, operator=by)
        outcome = await (stream_repair.plan() if keep is None or not apply else stream_repair.apply(keep))
    return _show(invocation.output, outcome, applied=apply)


async def _witness(stack: AsyncExitStack, database: str, log: JetStreamLog, model: ReadModel) -> Witness:
    """The knowledge of the tables, if they are of this incarnation."""
    from eventlog.admin.diagnosis import Witness
    from projections.model import COMMAND_KEYS
    from projections.stores.databases import reader_at

    reader: Reader = await stack.enter_async_context(reader_at(database))
    incarnation = (await log.head()).incarnation
    names = {projection.name for projection in model.projections}
    checkpoints = [c for name, c in (await reader.checkpoints()).items() if name in names and c.incarnation == incarnation]
    if not checkpoints:
        return Witness()
    end = max(checkpoints, key=lambda checkpoint: (checkpoint.sequence, checkpoint.digest is not None))

    async def subject_at(sequence: int) -> str | None:
        row = await reader.fetch_one(f"SELECT subject FROM {COMMAND_KEYS.name} WHERE sequence = $1", sequence)  # noqa: S608 - a fixed name
        return None if row is None else str(row["subject"])

    return Witness(sequence=end.sequence, digest=end.digest, subject_at=subject_at)


async def _sources(stack: AsyncExitStack, log: JetStreamLog, model: ReadModel, backups: Sequence[Path]) -> Sequence[RepairSource]:
    from eventlog.admin.diagnosis import Replicas, backup_source
    from eventlog.jetstream.api import MessageReader

    incarnation = (await log.head()).incarnation
    copies = [
        await stack.enter_async_context(backup_source(directory, log.connection, model.stream, incarnation))
        for directory in backups
    ]
    return (Replicas(MessageReader(log.connection, model.stream)), *copies)


def _show(output: Output, outcome: Repair, *, applied: bool) -> int:
    if output.json:
        output.document(
            {
                "stream": outcome.stream,
                "until": outcome.end,
                "applied": applied and bool(outcome.remedies),
                "rebuild": not outcome.same,
                "damaged": [
                    {
                        "sequence": remedy.fault.sequence,
                        "subject": remedy.fault.subject,
                        "problem": remedy.fault.problem,
                        "remedy": remedy.source,
                    }
                    for remedy in outcome.remedies
                ],
            }
        )
    else:
        for remedy in outcome.remedies:
            output.row(["repaired" if applied else "damaged", str(remedy)])
    if not outcome.remedies:
        output.note(f"{outcome.stream} is whole up to sequence {outcome.end}")
    elif not applied:
        output.note(
            f"{len(outcome.remedies)} damaged places; {len(outcome.without_remedy)} without a remedy. The stream is unchanged"
        )
    else:
        output.note(f"{outcome.stream} is repaired up to sequence {outcome.end}")
    if outcome.frozen and not applied:
        output.note("an earlier repair did not end, and the stream takes no writes: run it again with --apply")
    if not outcome.same:
        output.note("commits are lost: stop the services, run `projections rebuild`, and start them again")
    return ExitCode.CONFLICT if not applied and (outcome.remedies or outcome.frozen) else ExitCode.OK
