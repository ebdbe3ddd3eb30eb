"""`projections streams plan | apply`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from projections.cli.options import connected, examples, nats_option, output_options, run
from projections.cli.output import Output
from projections.cli.root import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.streams import Drift

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
    """Compare streams, consumers and buckets with their declarations; bring them there."""


@streams.command(epilog=examples("projections streams plan", "projections streams plan --replicas 3 --json"))
@nats_option
@file_option
@replicas_option
@output_options
def plan(output: Output, nats_url: str, file: Path | None, replicas: int) -> int:
    """Show what differs on the server, without changing it. Exit code 5 where anything does."""
    return run(output, _plan(output, nats_url, file, replicas))


@streams.command(epilog=examples("projections streams apply", "projections streams apply --replicas 3"))
@nats_option
@file_option
@replicas_option
@output_options
def apply(output: Output, nats_url: str, file: Path | None, replicas: int) -> int:
    """Create what is missing, update what can be; never delete. Exit code 5 where something is left for a person to do."""
    return run(output, _apply(output, nats_url, file, replicas))


async def _plan(output: Output, nats_url: str, file: Path | None, replicas: int) -> int:
    from eventlog import declarations  # noqa: PLC0415 - slow
    from eventlog import streams as server  # noqa: PLC0415 - slow

    wanted = declarations.load(file, replicas=replicas)
    async with connected(nats_url) as connection:
        return _show(output, await server.plan(connection, wanted))


async def _apply(output: Output, nats_url: str, file: Path | None, replicas: int) -> int:
    from eventlog import declarations  # noqa: PLC0415 - slow
    from eventlog import streams as server  # noqa: PLC0415 - slow

    wanted = declarations.load(file, replicas=replicas)
    async with connected(nats_url) as connection:
        return _show(output, await server.apply(connection, wanted))


def _show(output: Output, drifts: Sequence[Drift]) -> int:
    if output.json:
        output.document([attrs.asdict(drift) for drift in drifts])
    elif drifts:
        rows = [(d.kind, d.name, d.field or "(all)", str(d.wanted), str(d.found), d.action) for d in drifts]
        output.table(("KIND", "NAME", "FIELD", "DECLARED", "FOUND", "ACTION"), rows)
    else:
        output.note("everything is as declared")
    return ExitCode.CONFLICT if drifts else ExitCode.OK
