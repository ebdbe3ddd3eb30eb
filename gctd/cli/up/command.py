"""`gctd up`: the whole system on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from gctd.cli.up.console import Console
from terminalkit import begin_invocation, examples

_HIGHEST = 65_000


def _port(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    if value and value < 1024:
        raise click.BadParameter("0, or from 1024 to 65000", ctx, param)
    return value


@click.command(
    "up",
    epilog=examples(
        "gctd up --demo                     # with a small Go repository, analysed",
        "gctd up --allow-local --workers 2",
        "gctd up --cluster",
        "gctd up --port-base 0 --ready-file /tmp/ready.json --data-dir /tmp/tracker",
    ),
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="One directory for all data, logs and caches.  [default: .data of a checkout, else the user's directories]",
)
@click.option(
    "--port-base",
    type=click.IntRange(0, _HIGHEST),
    callback=_port,
    metavar="PORT",
    help="First port on 127.0.0.1; 0: any free ports.  [default: 8080, or the next free ones]",
)
@click.option("--workers", type=click.IntRange(0, 64), help="Number of workers.  [default: 1, of a cluster 2]")
@click.option("--cluster", is_flag=True, help="Three nats-servers, a Postgres, two of each service.")
@click.option("--postgres", is_flag=True, help="Keep the tables in a private Postgres instead of SQLite files.")
@click.option("--allow-local", is_flag=True, help="Accept repositories on the local disk.")
@click.option("--demo", is_flag=True, help="Make a small Go repository, register and analyse it (implies --allow-local).")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write addresses, process ids and environment as JSON when all is ready.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every line that the services log.")
@click.pass_context
def up(
    ctx: click.Context,
    *,
    data_dir: Path | None,
    port_base: int | None,
    workers: int | None,
    cluster: bool,
    postgres: bool,
    allow_local: bool,
    demo: bool,
    ready_file: Path | None,
    verbose: bool,
) -> int:
    """Run the whole system on this machine: NATS, the tracker, a worker, the pantry, GraphQL.

    Commands in other terminals find it without GCTD_URL. The console shows warnings and errors of the services; their logs are
    files. Ctrl-C stops all in order: workers first, which finish or hand back their job, then the services, then nats-server. A
    second Ctrl-C stops all at once.

    In a cluster the second of each kind listens ten ports above the first, and no proxy is in front of them.
    """
    begin_invocation(ctx)
    console = Console(verbose=verbose)
    console.say("loading the programs")
    from gctd.cli.up.run import run_up  # noqa: PLC0415 - help and completion do without it
    from gctd.cli.up.system import Options  # noqa: PLC0415 - as above

    options = Options(
        cluster=cluster,
        data_dir=data_dir,
        port_base=port_base,
        workers=workers,
        postgres=postgres,
        allow_local=allow_local or demo,
    )
    return run_up(options, console, demo=demo, ready_file=ready_file, verbose=verbose)
