"""`gctd repo rescore`: stored coverage profiles scored again, without running tests."""

from __future__ import annotations

import click

from gctd.cli.completion import repo_urls
from gctd.cli.session import Session, client_command
from gctd.cli.tasks.scheduled import no_wait_option, see_through, top_option
from terminalkit import examples


@click.command(
    "rescore",
    epilog=examples(
        "gctd repo rescore https://github.com/owner/name",
        "gctd repo rescore https://github.com/owner/name --engine native-compat --project cmd/tool",
        "gctd repo rescore https://github.com/owner/name --all-history --no-wait",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@click.option("--project", help="Only this project: its path in the repository, `.` for the root.")
@click.option("--engine", help="Analysis engine.  [default: the server's]")
@click.option("--all-history", is_flag=True, help="Every stored profile, not only the latest of each project.")
@top_option
@no_wait_option
@client_command(not_found="gctd repo show {url}")
async def rescore(
    session: Session, *, url: str, project: str | None, engine: str | None, all_history: bool, top: int, no_wait: bool
) -> int:
    """Score the repository at URL again without running its tests.

    Another engine, or a newer one, scores the coverage profile of each project's latest analysis, at the commit of the profile.
    The result is a separate analysis, which names the task that ran the tests.
    """
    tasks = await session.client.rescore(url, project=project, engine=engine, all_history=all_history)
    return await see_through(session, url, tasks, top=top, no_wait=no_wait)
