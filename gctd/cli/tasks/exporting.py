"""`gctd task export` and `gctd repo export`: an analysis as a file for other programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gctd.cli.completion import repo_urls, task_ids
from gctd.cli.repos.history import analyses_of, project_option
from gctd.cli.session import Session, client_command
from terminalkit import Choice, ExitCode, examples

FORMATS = ("json", "go-crap", "csv", "sarif", "markdown", "profile")

_format_option = click.option(
    "--format",
    "form",
    type=Choice(FORMATS),
    default="json",
    show_default=True,
    help="go-crap (its own report), sarif (2.1.0), markdown (comment for a pull request) or profile (of the test run).",
)
_output_option = click.option(
    "--output", "-o", "file", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: standard output]"
)
_from_option = click.option("--from", "from_", help="Task, commit or ref that markdown compares with.  [default: the one before]")


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    return _format_option(_output_option(_from_option(function)))


@click.command(
    "export",
    epilog=examples(
        "gctd task export task-17 --format sarif --output crap.sarif",
        "gctd task export task-17 --format csv | sort -t, -k6 -rn | head",
        "gctd task export task-17 --format markdown --from 02856df > comment.md",
    ),
)
@click.argument("task_id", metavar="TASK", shell_complete=task_ids)
@_options
@client_command(not_found="gctd task show {task_id}")
async def export_task(session: Session, *, task_id: str, form: str, file: Path | None, from_: str | None) -> int:
    """Write the analysis of a completed task in a form that other programs take."""
    return await _export(session, task_id, form, file, from_)


@click.command(
    "export",
    epilog=examples(
        "gctd repo export https://github.com/owner/name --format sarif --output crap.sarif",
        "gctd repo export https://github.com/owner/name --project cmd/tool --format csv",
        "gctd repo export https://github.com/owner/name --format profile --output cover.out",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@project_option
@_options
@client_command(not_found="gctd repo history {url}")
async def export_repo(session: Session, *, url: str, project: str | None, form: str, file: Path | None, from_: str | None) -> int:
    """Write the latest analysis of a project of the repository at URL in a form that other programs take."""
    latest = await session.client.analysis(await analyses_of(session, url, project), entries=0)
    return await _export(session, latest.task_id, form, file, from_)


async def _export(session: Session, task_id: str, form: str, file: Path | None, from_: str | None) -> int:
    output = session.output
    if from_ is not None and form != "markdown":
        raise click.UsageError("--from is for --format markdown: the other forms are of one analysis")
    if form == "profile":
        content = await session.client.profile(task_id)
    else:
        content = await session.client.export(task_id, form, from_=from_)
    if file is None:
        output.content(content)
        return ExitCode.OK
    await asyncio.to_thread(file.write_bytes, content)
    if output.json:
        output.document({"task": task_id, "format": form, "file": str(file), "size": len(content)})
    else:
        output.note(f"{file}: {len(content)} bytes, of {task_id}")
    return ExitCode.OK
