"""`projections streams plan | apply | backup | restore`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import connected, nats_option
from terminalkit.command import command
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.output import Column, Output
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.admin.backup import Copied
    from eventlog.admin.reconcile import Drift

file_option = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The declarations, by default the streams.yaml that came along.",
)
replicas_option = click.option(
    "--replicas", type=click.IntRange(1, 5), default=1, show_default=True, envvar="GCTD_REPLICAS", help="Servers per stream."
)


@click.group()
def streams() -> None:
    """Compare streams, consumers and buckets with their declarations; bring them there; copy them and restore copies."""


@streams.command(epilog=examples("projections streams plan", "projections streams plan --replicas 3 --json"))
@nats_option
@file_option
@replicas_option
@command(logs=True)
async def plan(invocation: Invocation, *, nats_url: str, file: Path | None, replicas: int) -> int:
    """Show what differs on the server, without changing it. Exit code 5 where anything does."""
    from eventlog.admin import declarations  # noqa: PLC0415 - slow
    from eventlog.admin import reconcile as server  # noqa: PLC0415 - slow

    wanted = declarations.load(file, replicas=replicas)
    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.plan(connection, wanted))


@streams.command(epilog=examples("projections streams apply", "projections streams apply --replicas 3"))
@nats_option
@file_option
@replicas_option
@command(logs=True)
async def apply(invocation: Invocation, *, nats_url: str, file: Path | None, replicas: int) -> int:
    """Create what is missing, update what can be; never delete. Exit code 5 where something is left for a person to do."""
    from eventlog.admin import declarations  # noqa: PLC0415 - slow
    from eventlog.admin import reconcile as server  # noqa: PLC0415 - slow

    wanted = declarations.load(file, replicas=replicas)
    async with connected(nats_url) as connection:
        return _show(invocation.output, await server.apply(connection, wanted))


directory_argument = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))


@streams.command(
    epilog=examples(
        "projections streams backup /backup/$(date +%F)",
        "projections streams backup /keys/$(date +%F) --stream PANTRY_KEYS",
        "projections streams backup /backup/now --json | jq '.[].last'",
    )
)
@nats_option
@file_option
@click.option("--stream", "names", multiple=True, metavar="NAME", help="Only this one, or a key stream; may be given again.")
@directory_argument
@command(logs=True)
async def backup(invocation: Invocation, *, nats_url: str, file: Path | None, names: tuple[str, ...], directory: Path) -> int:
    """Copy the event streams and the blobs of a running server into DIRECTORY.

    The keys of persons are left out: they are copied by their name, to another place, and kept for a short time. Queue, presence
    and tables are made again from the rest.
    """
    from eventlog.admin import declarations  # noqa: PLC0415 - slow
    from eventlog.admin.backup import StreamNotThere, back_up  # noqa: PLC0415 - slow

    found = declarations.load(file)
    chosen = [stream.name for stream in (found.only(*names).streams if names else found.lasting)]
    await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True, exist_ok=True)
    copied = []
    async with connected(nats_url) as connection:
        for name in chosen:
            try:
                copied.append(await back_up(connection, name, directory))
            except StreamNotThere:
                if names:
                    raise
                invocation.output.note(f"{name} is not there")
            except FileExistsError as error:
                raise click.UsageError(str(error), click.get_current_context()) from error
    return _show_copies(invocation.output, copied)


@streams.command(
    epilog=examples("projections streams restore /backup/2026-11-22", "projections streams restore /backup/now --replicas 3")
)
@nats_option
@replicas_option
@directory_argument
@command(logs=True)
async def restore(invocation: Invocation, *, nats_url: str, replicas: int, directory: Path) -> int:
    """Make the streams again that were copied into DIRECTORY, before anything else is started.

    All copies are checked first. A stream that is there already is never replaced: exit code 5.
    """
    from eventlog.admin import backup as of  # noqa: PLC0415 - slow

    files = of.copies(directory)
    if not files:
        raise of.BackupInvalid(f"there is no copy of a stream in {directory}")
    names = [of.described(one).stream for one in files]
    async with connected(nats_url) as connection:
        await of.check_free(connection, names)
        return _show_copies(invocation.output, [await of.restore(connection, one, replicas=replicas) for one in files])


def _show_copies(output: Output, copied: Sequence[Copied]) -> int:
    if output.json:
        output.document([{"stream": c.stream, "last": c.last, "messages": c.messages, "bytes": c.bytes} for c in copied])
    else:
        columns = [Column("STREAM", "id"), *map(Column, ("LAST", "MESSAGES", "BYTES"))]
        output.table(columns, [(c.stream, str(c.last), str(c.messages), str(c.bytes)) for c in copied])
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
