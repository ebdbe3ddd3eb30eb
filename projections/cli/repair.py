"""`projections repair`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from projections.cli.options import database_option, model_option, nats_option, opened_log
from terminalkit.commands.command import command, examples
from terminalkit.display.output import Output
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.admin.repair.diagnosis import Witness
    from eventlog.admin.repair.repair import Repair
    from eventlog.admin.repair.sources import RepairSource
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel
    from projections.store import Reader

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
    from eventlog.admin.repair.repair import StreamRepair  # noqa: PLC0415 - slow
    from eventlog.admin.repair.rewriting import Operator  # noqa: PLC0415 - slow

    if tombstone and not (operator and reason):
        raise click.UsageError("--tombstone needs --operator NAME and --reason TEXT", click.get_current_context())
    if apply and keep is None:
        raise click.UsageError("--apply needs --keep DIRECTORY", click.get_current_context())
    by = Operator(name=operator, reason=reason) if tombstone and operator and reason else None
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(opened_log(nats_url, model))
        witness = await _witness(stack, database, log, model)
        sources = await _sources(stack, log, model, backups)
        work = StreamRepair(log.connection, model.stream, model.registry, sources=sources, witness=witness, operator=by)
        done = await (work.plan() if keep is None or not apply else work.apply(keep))
    return _show(invocation.output, done, applied=apply)


async def _witness(stack: AsyncExitStack, database: str, log: JetStreamLog, model: ReadModel) -> Witness:
    """The knowledge of the tables, if they are of this incarnation."""
    from eventlog.admin.repair.diagnosis import Witness  # noqa: PLC0415 - slow
    from projections.store import KEYS  # noqa: PLC0415 - slow
    from projections.stores.databases import reader_at  # noqa: PLC0415 - slow

    reader: Reader = await stack.enter_async_context(reader_at(database))
    incarnation = (await log.head()).incarnation
    ours = [one for name, one in (await reader.checkpoints()).items() if name in {p.name for p in model.projections}]
    ours = [one for one in ours if one.incarnation == incarnation]
    if not ours:
        return Witness()
    end = max(ours, key=lambda one: (one.sequence, one.digest is not None))

    async def subject_at(sequence: int) -> str | None:
        row = await reader.fetch_one(f"SELECT subject FROM {KEYS.name} WHERE sequence = $1", sequence)  # noqa: S608 - a fixed name
        return None if row is None else str(row["subject"])

    return Witness(sequence=end.sequence, digest=end.digest, subject_at=subject_at)


async def _sources(stack: AsyncExitStack, log: JetStreamLog, model: ReadModel, backups: Sequence[Path]) -> Sequence[RepairSource]:
    from eventlog.admin.repair.sources import Replicas, backup_source  # noqa: PLC0415 - slow
    from eventlog.jetstream.message_reader import MessageReader  # noqa: PLC0415 - slow

    incarnation = (await log.head()).incarnation
    found = [
        await stack.enter_async_context(backup_source(directory, log.connection, model.stream, incarnation))
        for directory in backups
    ]
    return (Replicas(MessageReader(log.connection, model.stream)), *found)


def _show(output: Output, done: Repair, *, applied: bool) -> int:
    if output.json:
        output.document(
            {
                "stream": done.stream,
                "until": done.end,
                "applied": applied and bool(done.remedies),
                "rebuild": not done.same,
                "damaged": [
                    {
                        "sequence": one.fault.sequence,
                        "subject": one.fault.subject,
                        "problem": one.fault.problem,
                        "remedy": one.source,
                    }
                    for one in done.remedies
                ],
            }
        )
    else:
        for one in done.remedies:
            output.row(["repaired" if applied else "damaged", str(one)])
    if not done.remedies:
        output.note(f"{done.stream} is whole up to sequence {done.end}")
    elif not applied:
        output.note(f"{len(done.remedies)} damaged places; {len(done.left)} without a remedy. The stream is unchanged")
    else:
        output.note(f"{done.stream} is repaired up to sequence {done.end}")
    if done.frozen and not applied:
        output.note("an earlier repair did not end, and the stream takes no writes: run it again with --apply")
    if not done.same:
        output.note("commits are lost: stop the services, run `projections rebuild`, and start them again")
    return ExitCode.CONFLICT if not applied and (done.remedies or done.frozen) else ExitCode.OK
