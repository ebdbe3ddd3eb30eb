"""`gctd repo check-updates`: list the tracked refs that have moved, and analyse them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import click

from gctd.cli.completion import repo_urls
from gctd.cli.session import Session, client_command
from gctd.cli.tables.text import commit
from gctd.client.resources import Update
from terminalkit import ExitCode, examples
from terminalkit.display import Cell, Column, Output, Painted, count


@click.command(
    "check-updates",
    epilog=examples(
        "gctd repo check-updates",
        "gctd repo check-updates --schedule --quiet    # every hour, say, from cron",
        "gctd repo check-updates --json | jq -r '.[] | select(.moved) | [.repo_url, .project] | @tsv'",
    ),
)
@click.argument("url", required=False, shell_complete=repo_urls)
@click.option("--schedule", is_flag=True, help="Schedule an analysis for each project whose ref has moved.")
@client_command(not_found="gctd repo list")
async def check_updates(session: Session, *, url: str | None, schedule: bool) -> int:
    """Look up whether the refs that projects track have moved.

    The server asks the hosts of all registered repositories, or of the one at URL, for the commit of each project's ref. It does
    not clone. A ref has moved if its commit differs from the commit of the project's latest analysis. With --schedule exactly
    that commit is analysed, once, for any number of checks. The exit code is 7 if a ref could not be looked up.
    """
    updates: list[Update] = []
    async with aclosing(session.client.check_updates(url, schedule=schedule)) as parts:
        async for part in parts:
            updates += part
    session.show(updates, _show)
    return ExitCode.PARTIAL if any(update.error for update in updates) else ExitCode.OK


def _show(output: Output, updates: Sequence[Update]) -> None:
    columns = [
        Column("REPOSITORY", "id"),
        Column("PROJECT", "id", drop=1),
        Column("REF", "id", drop=2),
        Column("RECORDED", "number", drop=4),
        Column("REMOTE", "number", drop=3),
        Column("MOVED"),
        Column("WHAT"),
    ]
    output.table(
        columns,
        [
            [
                update.repo_url,
                update.project or "",
                update.ref or "",
                commit(update.recorded_sha),
                commit(update.remote_sha),
                Painted("yes", "yellow") if update.moved else "" if update.remote_sha is None else "no",
                _what(update),
            ]
            for update in updates
        ],
    )
    _sum_up(output, updates)


def _what(update: Update) -> Cell:
    if update.error:
        return Painted(update.error, "red")
    if update.scheduled:
        return Painted(f"scheduled {update.task_id}", "green")
    return update.note or ""


def _sum_up(output: Output, updates: Sequence[Update]) -> None:
    moved = sum(update.moved for update in updates)
    scheduled = sum(update.scheduled for update in updates)
    failed = sum(update.error is not None for update in updates)
    skipped = sum(update.error is None and update.remote_sha is None for update in updates)
    parts = [f"{moved} of {count(len(updates) - failed - skipped, 'project')} moved"]
    if scheduled:
        parts.append(f"{count(scheduled, 'task')} scheduled")
    if failed:
        parts.append(f"{failed} could not be looked up")
    if skipped:
        parts.append(f"{skipped} skipped")
    output.note(", ".join(parts))
