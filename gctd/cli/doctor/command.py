"""`gctd doctor`: the problems of a tracker, and their remedies."""

from __future__ import annotations

import click

from gctd.cli.options import Sources, setting_options
from terminalkit import Invocation, command, examples
from terminalkit.display import Cell, Column, Painted

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "magenta"}


_SETTINGS = ("url", "nats_url", "monitoring_url", "database_url", "cache_directory", "replicas")


@click.command(
    epilog=examples(
        "gctd doctor",
        "gctd doctor --nats-url nats://127.0.0.1:4222 --url http://127.0.0.1:8080",
        "gctd doctor --json | jq '.[] | select(.status != \"ok\")'",
    )
)
@setting_options(*_SETTINGS)
@command(logs=True)
async def doctor(invocation: Invocation, *, sources: Sources) -> int:
    """Check server, broker, tables, disks and the programs that workers run, and suggest remedies.

    Works while nothing runs. The exit code is 1 if something fails, and 0 for warnings and unknown findings.
    """
    from gctd.cli.doctor import diagnose, exit_code  # noqa: PLC0415 - slow

    found = await diagnose(sources.load(running=_SETTINGS).values)
    if invocation.output.json:
        invocation.output.document(
            [{"check": name, "status": one.verdict.value, "detail": one.detail, "fix": one.fix} for name, one in found]
        )
    else:
        columns = [Column("CHECK", "id"), Column("STATUS", "id"), Column("DETAIL"), Column("FIX")]
        rows: list[list[Cell]] = [
            [name, Painted(one.verdict.value, COLOURS[one.verdict]), one.detail, one.fix] for name, one in found
        ]
        invocation.output.table(columns, rows)
    return exit_code(found)
