"""`gctd repo`: repositories, from registration to scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click

from gctd.cli.completion import repo_urls
from gctd.cli.failure import Failure
from gctd.cli.follow import follow_repo
from gctd.cli.options import examples
from gctd.cli.progress import progress, repo_item
from gctd.cli.report import show_analyses, show_projects, show_repo, show_results, show_tasks
from gctd.cli.session import Session, client_command
from gctd.cli.text import commit, count
from gctd.cli.watching import require_completed, watch
from gctd.client.errors import ExitCode
from gctd.client.resources import Analysis, Repo, Task

TOP = 20
"""How many of the worst functions are shown, unless the user says otherwise."""


@click.group()
def repo() -> None:
    """Register repositories, show them, have them analysed."""


@repo.command(
    "add",
    epilog=examples(
        "gctd repo add https://github.com/owner/name",
        "gctd repo add https://github.com/owner/name --json",
        "gctd repo add https://github.com/owner/name --refresh",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@click.option("--refresh", is_flag=True, help="Find the projects of a known repository again.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the projects are found.")
@client_command()
async def add(session: Session, *, url: str, refresh: bool, no_wait: bool) -> int:
    """Register the repository at URL and wait until its Go projects are found.

    For a known repository they are found again where they could not be found before, or with --refresh.
    """
    began = datetime.now(UTC)
    known = await session.client.add_repo(url, refresh=refresh)
    session.leaves_behind("the registration goes on", f"gctd repo show {known.url}")
    if not no_wait:
        known = await _found(session, known, began)
    if known.status == "error":
        hint = f"once it is mended, register it again: gctd repo add {known.url}"
        raise Failure(session.invocation.what, f"{known.url}: {known.reason or 'no reason is known'}", hint=hint)
    if session.output.json:
        session.output.document(known.document)
    elif known.registering:
        show_repo(session.output, known)
    else:
        session.output.note(f"{known.url} is ready at {commit(known.commit_sha)}: {count(len(known.projects), 'project')}")
        show_projects(session.output, known)
    return ExitCode.OK


@repo.command(
    "show",
    epilog=examples(
        "gctd repo show https://github.com/owner/name",
        "gctd repo show https://github.com/owner/name --json",
        "gctd repo show https://github.com/owner/name --json | jq -r '.Profile.projects[].name'",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@client_command(not_found="gctd repo add {url}")
async def show(session: Session, *, url: str) -> int:
    """Show the repository at URL: its state and its projects."""
    known = await session.client.repo(url)
    if session.output.json:
        session.output.document(known.document)
    else:
        show_repo(session.output, known)
    return ExitCode.OK


@repo.command(
    "list",
    epilog=examples(
        "gctd repo list",
        "gctd repo list --json",
        "gctd repo list --json | jq -r '.[] | [.repo_info.url, .project, .summary.average] | @tsv'",
    ),
)
@client_command()
async def list_repos(session: Session) -> int:
    """List the latest analysis of each project of each repository."""
    analyses = await session.client.analyses()
    if session.output.json:
        session.output.document([analysis.document for analysis in analyses])
        return ExitCode.OK
    show_analyses(session.output, analyses)
    if not analyses:
        session.output.note("nothing is analysed yet; begin with: gctd repo add URL")
    return ExitCode.OK


@repo.command(
    "analyze",
    epilog=examples(
        "gctd repo analyze https://github.com/owner/name",
        "gctd repo analyze https://github.com/owner/name --project cmd/tool --top 50",
        "gctd repo analyze https://github.com/owner/name --ref v1.2.0 --json | jq '.analyses[].summary'",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@click.option("--project", help="Analyse this project only: its path in the repository, `.` for the root.")
@click.option("--ref", help="Branch, tag or commit to analyse, now and later.")
@click.option("--engine", help="Analysis engine.  [default: the server's]")
@click.option(
    "--top", type=click.IntRange(min=0), default=TOP, show_default=True, help="How many of the worst functions to show."
)
@click.option("--no-wait", is_flag=True, help="Schedule the tasks and do not wait for them.")
@client_command(not_found="gctd repo show {url}")
async def analyze(
    session: Session, *, url: str, project: str | None, ref: str | None, engine: str | None, top: int, no_wait: bool
) -> int:
    """Analyse the repository at URL: run its tests and score every function.

    Progress is shown while the tasks run, then the worst functions of all projects together and the figures of each. The exit
    code is 1 where a task did not complete. Interrupted, the tasks go on.
    """
    tasks = await session.client.analyze(url, project=project, ref=ref, engine=engine)
    names = " ".join(task.id for task in tasks)
    session.leaves_behind(
        f"{count(len(tasks), 'task')} go on" if len(tasks) > 1 else f"{names} goes on", f"gctd task watch {names}"
    )
    if no_wait:
        if session.output.json:
            session.output.document(_result(url, tasks, []))
        else:
            show_tasks(session.output, tasks)
        return ExitCode.OK
    tasks = await watch(session, tasks)
    entries = None if session.output.json else top
    analyses = [await session.client.result(task.id, entries=entries) for task in tasks if task.completed]
    if session.output.json:
        session.output.document(_result(url, tasks, analyses))
    elif analyses:
        show_results(session.output, analyses, top)
    require_completed(session, tasks)
    return ExitCode.OK


async def _found(session: Session, known: Repo, began: datetime) -> Repo:
    """The repository once its projects are found, or could not be; progress meanwhile."""
    last = known
    async with (
        progress(session.output) as display,
        session.missing_worker_told(lambda: last.registering),
        aclosing(follow_repo(session.client, known)) as states,
    ):
        async for state in states:
            last = state
            display.show(repo_item(state, began))
    return last


def _result(url: str, tasks: Sequence[Task], analyses: Sequence[Analysis]) -> dict[str, Any]:
    """The document of `repo analyze --json`."""
    return {
        "repo_url": tasks[0].repo_url if tasks else url,
        "tasks": [task.document for task in tasks],
        "analyses": [analysis.document for analysis in analyses],
    }
