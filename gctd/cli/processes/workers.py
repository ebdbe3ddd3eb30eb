"""`gctd worker`: run a worker, or ask the server about running ones."""

from __future__ import annotations

import click
from click.core import ParameterSource

from gctd.cli.completion import worker_ids
from gctd.cli.options import Sources, setting_options
from gctd.cli.processes.service import SHARED_SETTINGS
from gctd.cli.session import Session, client_command
from gctd.cli.tables.workers import show_workers
from terminalkit import ExitCode, begin_invocation, check_default_broker, command_name, examples, run_program, setting_for


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "gctd worker                      # run one here",
        "gctd worker --id build-7 --concurrency 4",
        "gctd worker list                 # ask the server about running workers",
    ),
)
@setting_options(
    *("worker_id", "concurrency", "fast_concurrency", "cache_directory"),
    *("task_timeout", "git_timeout", "retry_delay", "drain_timeout"),
    *("clones_max_bytes", "builds_max_bytes", "keep_free_bytes", "git_metadata", "git_hosts"),
    *("sandbox", "test_network", "cgo", "credentials_file", "ssh_key", "ssh_known_hosts", "ca_file"),
    *("allow_local", "allow_ssh", "private_hosts", *SHARED_SETTINGS),
)
@click.option("--once", is_flag=True, help="Take one job, see it through, and end.")
@click.pass_context
def worker(ctx: click.Context, *, sources: Sources, once: bool) -> int:
    """Run a worker; or list, pause and unpause the workers that run.

    Without a command: take jobs until SIGINT or SIGTERM, then finish what is under way, or hand it back after --drain-timeout.
    """
    if ctx.invoked_subcommand is not None:
        given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"{setting_for(given[0])} is for running a worker, not for `{ctx.invoked_subcommand}`")
        return ExitCode.OK
    begin_invocation(ctx)
    loaded = sources.load()
    settings = loaded.values
    check_default_broker(loaded, command_name(ctx), up="gctd up")
    from gctd.worker.main import work  # noqa: PLC0415 - help, completion and the other commands do without it

    return run_program(work(settings, once=once), settings)


@worker.command(
    "list", epilog=examples("gctd worker list", "gctd worker list --json", "gctd worker list --json | jq -r '.[].id'")
)
@client_command()
async def list_workers(session: Session) -> int:
    """List the workers that the server knows."""
    workers = await session.client.workers()
    session.show(workers, show_workers)
    if not workers and not session.output.json:
        session.output.note("no worker has ever run; start one with: gctd worker")
    return ExitCode.OK


@worker.command(
    "pause",
    epilog=examples("gctd worker pause worker-1", "gctd worker pause worker-1 worker-2", "gctd worker pause worker-1 --json"),
)
@click.argument("ids", metavar="WORKER...", nargs=-1, required=True, shell_complete=worker_ids)
@client_command(not_found="gctd worker list")
async def pause(session: Session, *, ids: tuple[str, ...]) -> int:
    """Let workers take no more jobs. Running jobs continue. The pause holds over restarts, until `unpause`."""
    for id_ in ids:
        await session.client.pause_worker(id_)
        session.output.note(f"{id_} is paused")
    return ExitCode.OK


@worker.command(
    "unpause",
    epilog=examples(
        "gctd worker unpause worker-1", "gctd worker unpause worker-1 worker-2", "gctd worker unpause worker-1 --json"
    ),
)
@click.argument("ids", metavar="WORKER...", nargs=-1, required=True, shell_complete=worker_ids)
@client_command(not_found="gctd worker list")
async def unpause(session: Session, *, ids: tuple[str, ...]) -> int:
    """Let paused workers take jobs again."""
    for id_ in ids:
        await session.client.unpause_worker(id_)
        session.output.note(f"{id_} takes jobs")
    return ExitCode.OK
