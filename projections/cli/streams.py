"""`projections streams plan | apply | backup | restore`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import connected, declared, nats_option, replicas_of
from terminalkit.commands.command import command, examples
from terminalkit.display.output import Output
from terminalkit.display.table import Column
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.admin.backup import StreamCopy
    from eventlog.admin.declarations import Stream
    from eventlog.admin.reconcile import Drift

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
    from eventlog.admin import reconcile as server  # noqa: PLC0415 - slow

    wanted = declared(file, replicas)
    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.plan(connection, wanted))


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
    from eventlog.admin import reconcile as server  # noqa: PLC0415 - slow

    wanted = declared(file, replicas)
    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.apply(connection, wanted, new_keys=new_keys))


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
    from eventlog.admin import declarations  # noqa: PLC0415 - slow
    from eventlog.admin.backup import StreamNotThere, back_up  # noqa: PLC0415 - slow
    from eventlog.admin.copy_check import check_copy  # noqa: PLC0415 - slow

    if verify:
        return await _verify(invocation, directory)
    found = declarations.load(file)
    chosen = found.only(*names).streams if names else found.lasting
    await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True, exist_ok=True)
    copied, absent = [], []
    async with connected(nats_url) as connection:
        for stream in chosen:
            try:
                copied.append(await back_up(connection, stream.name, directory, check=None if unverified else check_copy))
            except StreamNotThere:
                if names:
                    raise
                invocation.output.note(f"{stream.name} is not there")
                absent.append(stream)
                _check_some(absent, chosen)
            except FileExistsError as error:
                raise click.UsageError(str(error), click.get_current_context()) from error
    return _show_copies(invocation.output, copied)


def _check_some(absent: Sequence[Stream], wanted: Sequence[Stream]) -> None:
    """Refuse a copy without an event stream, before the rest is copied. Raises StreamNotThere."""
    from eventlog.admin.backup import StreamNotThere  # noqa: PLC0415 - slow

    logs = [stream.name for stream in wanted if stream.incarnation] or [stream.name for stream in wanted]
    if {stream.name for stream in absent}.issuperset(logs):
        raise StreamNotThere(
            f"the server has no stream {' or '.join(logs)}, and no copy was made: check the address of the server, or give the "
            "file that declares its streams (--file)"
        )


async def _verify(invocation: Invocation, directory: Path) -> int:
    from eventlog.admin import backup as of  # noqa: PLC0415 - slow
    from eventlog.admin.copy_check import CopyDamaged, check_copy  # noqa: PLC0415 - slow

    files = of.copies(directory)
    if not files:
        raise of.BackupInvalid(f"there is no copy of a stream in {directory}")
    sound, damaged = [], []
    for one in files:
        try:
            digest = await check_copy(one)
        except (of.BackupInvalid, CopyDamaged) as error:
            damaged.append(str(error))
        else:
            sound.append(attrs.evolve(of.described(one), verified=True, digest=digest))
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
    from eventlog.admin import backup as of  # noqa: PLC0415 - slow

    files = of.copies(directory)
    if not files:
        raise of.BackupInvalid(f"there is no copy of a stream in {directory}")
    described = [of.described(file) for file in files]
    async with connected(nats_url) as connection:
        await of.check_free(connection, described)
        return _show_copies(invocation.output, [await of.restore(connection, one, replicas=replicas) for one in files])


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
