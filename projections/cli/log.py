"""`projections events`, and `projections streams plan | apply | backup | restore`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import connected, declared, model_option, nats_option, opened_log, replicas_of
from terminalkit.coroutine import command, examples
from terminalkit.display.output import Output
from terminalkit.display.table import Column
from terminalkit.failure import ExitCode
from terminalkit.invocation import Invocation

if TYPE_CHECKING:
    from eventlog import AggregateId, Commit
    from eventlog.admin.backup import StreamCopy
    from eventlog.admin.declarations import Stream
    from eventlog.admin.reconcile import Drift
    from projections.model import ReadModel


class _Aggregate(click.ParamType["AggregateId"]):
    """An aggregate by its subject."""

    name = "aggregate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AggregateId:
        from eventlog import AggregateId

        try:
            return AggregateId.parse(value)
        except ValueError:
            self.fail(f"{value!r} is not <service>.<aggregate>.<id>, as in bank.account.anna", param, ctx)


@click.command(
    epilog=examples(
        "projections events --from 1000 --to 2000",
        "projections events --aggregate bank.account.anna",
        "projections events --type MoneyMoved --json | jq .data.cents",
        "projections events --follow",
    )
)
@model_option
@nats_option
@click.option("--from", "first", type=click.IntRange(min=1), help="First sequence.  [default: the first; --follow: what is new]")
@click.option("--to", "last", type=click.IntRange(min=1), help="Last sequence.  [default: the last one there is]")
@click.option("--follow", is_flag=True, help="Continue with new events until interrupted.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only events of that type; may be given again.")
@click.option("--aggregate", type=_Aggregate(), metavar="SUBJECT", help="Only events of that aggregate: bank.account.anna.")
@command(logs=True)
async def events(
    invocation: Invocation,
    *,
    model: ReadModel,
    nats_url: str,
    first: int | None,
    last: int | None,
    types: tuple[str, ...],
    aggregate: AggregateId | None,
    follow: bool,
) -> int:
    """Print events in the order of the log, one per line; with --json one JSON object per line."""
    if follow and last is not None:
        raise click.UsageError("--follow has no end: leave --to out", click.get_current_context())
    async with opened_log(nats_url, model) as log:
        head = await log.head()
        after = (head.last if follow else head.first - 1) if first is None else first - 1
        until = None if follow else min(last or head.last, head.last)
        if until is not None and until <= after:
            return ExitCode.OK
        batches: Any = log.follow(after=after, until=until, aggregate=aggregate)
        async with aclosing(batches):
            async for commits in batches:
                for record in (record for commit in commits for record in _records(commit)):
                    if not types or record["type"] in types:
                        _print(invocation.output, record)
    return ExitCode.OK


def _print(output: Output, record: dict[str, Any]) -> None:
    if output.json:
        output.record(record)
        return
    data = json.dumps(record["data"], ensure_ascii=False)
    output.row([record["position"], record["at"] or "-", record["aggregate"], record["type"] or "(unreadable)", data])


def _records(commit: Commit) -> Iterator[dict[str, Any]]:
    from eventlog.history import event_records
    from projections.model import timestamp_text

    for record in event_records(commit):
        place = {"sequence": commit.sequence, "aggregate": record.aggregate, "position": str(record.position)}
        data = json.loads(bytes(record.data))
        if record.problem is not None or record.at is None:
            yield place | {"at": None, "type": None, "data": data, "problem": record.problem}
            continue
        names = ("key", "fingerprint", "correlation", "causation")
        context = {name: value for name in names if (value := getattr(record.context, name)) is not None}
        yield place | {
            "commit": record.commit,
            "at": timestamp_text(record.at),
            "type": record.type,
            "version": record.version,
            "data": data,
            **context,
        }


file_option = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The declarations, by default the streams.yaml that came along.",
)
replicas_option = click.option(
    "--replicas",
    type=click.IntRange(1, 5),
    envvar="NATS_REPLICAS",
    callback=replicas_of,
    help="Servers per stream; else NATS_REPLICAS, else as the service is configured: <SERVICE>_REPLICAS.  [default: 1]",
)


@click.group()
def streams() -> None:
    """Compare streams, consumers and buckets with their declarations, create and update them, copy and restore streams."""


@streams.command(epilog=examples("projections streams plan", "projections streams plan --replicas 3 --json"))
@nats_option
@file_option
@replicas_option
@command(logs=True)
async def plan(invocation: Invocation, *, nats_url: str, file: Path | None, replicas: int) -> int:
    """Show the differences on the server without changing it. Exit code 5: there is a difference.

    Settings of the services for sizes and times of streams replace the fields of the file, as when the services start.
    """
    from eventlog.admin import reconcile as server

    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.plan_changes(connection, declared(file, replicas)))


@streams.command(epilog=examples("projections streams apply", "projections streams apply --replicas 3"))
@nats_option
@file_option
@replicas_option
@click.option(
    "--new-keys", is_flag=True, help="Create a missing stream of keys, although the log has events sealed with lost ones."
)
@command(logs=True)
async def apply(invocation: Invocation, *, nats_url: str, file: Path | None, replicas: int, new_keys: bool) -> int:
    """Create the missing parts and update the others if possible, without deleting. Exit code 5: a person has to do the rest.

    Settings of the services for sizes and times of streams replace the fields of the file, as when the services start.
    """
    from eventlog.admin import reconcile as server

    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.apply_declarations(connection, declared(file, replicas), new_keys=new_keys))


directory_argument = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))


@streams.command(
    epilog=examples(
        "projections streams backup /backup/$(date +%F)",
        "projections streams backup /backup/bank --stream BANK",
        "projections streams backup /backup/now --json | jq '.[].last'",
        "projections streams backup --verify /backup/2026-11-22",
    )
)
@nats_option
@file_option
@click.option("--stream", "names", multiple=True, metavar="NAME", help="Only this one, or a key stream; may be given again.")
@click.option("--verify", is_flag=True, help="Check the copies in DIRECTORY, without a server, and make none.")
@click.option("--unverified", is_flag=True, help="Do not read the copy back; also for a stream that is damaged.")
@directory_argument
@command(logs=True)
async def backup(
    invocation: Invocation,
    *,
    nats_url: str,
    file: Path | None,
    names: tuple[str, ...],
    verify: bool,
    unverified: bool,
    directory: Path,
) -> int:
    """Copy the event streams and the blobs of a running server into DIRECTORY.

    A stream that is not there is named and left out. If the server has no declared event stream, this fails: exit code 3.


    Each copy is restored on a throw-away server and read. This needs the same disk space once more. A damaged copy is not kept:
    exit code 5.


    The keys of persons are left out: they are copied by their name, to another place, and kept for a short time. Queue, presence
    and tables are rebuilt from the rest.
    """
    from eventlog.admin import declarations
    from eventlog.admin.backup import StreamNotThere, back_up

    if verify:
        return await _verify(invocation, directory)
    declared_streams = declarations.load_declarations(file)
    chosen = declared_streams.only(*names).streams if names else declared_streams.lasting
    await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True, exist_ok=True)
    copied, absent = [], []
    async with connected(nats_url) as connection:
        for stream in chosen:
            try:
                copied.append(await back_up(connection, stream.name, directory, verify=not unverified))
            except StreamNotThere:
                if names:
                    raise
                invocation.output.note(f"{stream.name} is not there")
                absent.append(stream)
                _check_some(absent, chosen)
            except FileExistsError as error:
                raise click.UsageError(str(error), click.get_current_context()) from error
    return _show_copies(invocation.output, copied)


def _check_some(absent: Sequence[Stream], chosen: Sequence[Stream]) -> None:
    """Refuse a copy without an event stream, before the rest is copied. Raises StreamNotThere."""
    from eventlog.admin.backup import StreamNotThere

    logs = [stream.name for stream in chosen if stream.incarnation] or [stream.name for stream in chosen]
    if {stream.name for stream in absent}.issuperset(logs):
        raise StreamNotThere(
            f"the server has no stream {' or '.join(logs)}, and no copy was made: check the address of the server, or give the "
            "file that declares its streams (--file)"
        )


async def _verify(invocation: Invocation, directory: Path) -> int:
    from eventlog.admin import backup as of
    from eventlog.admin.backup import CopyDamaged, check_copy

    files = of.copies(directory)
    if not files:
        raise of.BackupInvalid(f"there is no copy of a stream in {directory}")
    sound, damaged = [], []
    for file in files:
        try:
            digest = await check_copy(file)
        except (of.BackupInvalid, CopyDamaged) as error:
            damaged.append(str(error))
        else:
            sound.append(attrs.evolve(of.described(file), verified=True, digest=digest))
    _show_copies(invocation.output, sound)
    if damaged:
        raise CopyDamaged("; ".join(damaged))
    return ExitCode.OK


@streams.command(
    epilog=examples("projections streams restore /backup/2026-11-22", "projections streams restore /backup/now --replicas 3")
)
@nats_option
@replicas_option
@directory_argument
@command(logs=True)
async def restore(invocation: Invocation, *, nats_url: str, replicas: int, directory: Path) -> int:
    """Make the streams again that were copied into DIRECTORY, before anything else is started.

    All copies are checked first. A stream that has had a record is never replaced: exit code 5. A stream takes no writes until
    all of its records are there. If the command was killed, the same command completes it.
    """
    from eventlog.admin import backup as of

    files = of.copies(directory)
    if not files:
        raise of.BackupInvalid(f"there is no copy of a stream in {directory}")
    described = [of.described(file) for file in files]
    async with connected(nats_url) as connection:
        await of.check_free(connection, described)
        return _show_copies(invocation.output, [await of.restore(connection, file, replicas=replicas) for file in files])


def _show_copies(output: Output, copied: Sequence[StreamCopy]) -> int:
    if output.json:
        output.document(
            [
                {"stream": c.stream, "last": c.last, "messages": c.messages, "bytes": c.bytes, "verified": c.verified}
                for c in copied
            ]
        )
    else:
        columns = [Column("STREAM", "id"), *map(Column, ("LAST", "MESSAGES", "BYTES", "VERIFIED"))]
        yes = {True: "yes", False: "no"}
        output.table(columns, [(c.stream, str(c.last), str(c.messages), str(c.bytes), yes[c.verified]) for c in copied])
    return ExitCode.OK


def _show(output: Output, drifts: Sequence[Drift]) -> int:
    if output.json:
        output.document([attrs.asdict(drift) for drift in drifts])
    elif drifts:
        rows = [(d.kind, d.name, d.field or "(all)", str(d.wanted), str(d.found), d.action) for d in drifts]
        columns = [Column("KIND"), Column("NAME", "id"), *map(Column, ("FIELD", "DECLARED", "FOUND", "ACTION"))]
        output.table(columns, rows)
    else:
        output.note("everything is as declared")
    return ExitCode.CONFLICT if drifts else ExitCode.OK
