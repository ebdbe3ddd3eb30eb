"""`gctd repo`: repositories, from registration to scores."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime

import click

from gctd.cli.completion import repo_urls
from gctd.cli.repos.config import config
from gctd.cli.repos.history import diff, history
from gctd.cli.repos.rescoring import rescore
from gctd.cli.repos.updates import check_updates
from gctd.cli.session import REPOSITORIES, Session, client_command
from gctd.cli.tables.repos import show_projects, show_repo, show_repos
from gctd.cli.tables.text import commit
from gctd.cli.tasks.exporting import export_repo
from gctd.cli.tasks.follow import follow_repo
from gctd.cli.tasks.progress import progress, repo_item
from gctd.cli.tasks.scheduled import no_wait_option, see_through, top_option
from gctd.client.resources import Repo
from terminalkit import ExitCode, Failure, examples
from terminalkit.display import count


@click.group()
def repo() -> None:
    """Register repositories, show them, have them analysed."""


repo.add_command(check_updates)
repo.add_command(config)
repo.add_command(rescore)
repo.add_command(history)
repo.add_command(diff)
repo.add_command(export_repo)


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

    For a known repository the search is repeated if it failed before, or with --refresh.
    """
    began = datetime.now(UTC)
    known = await session.client.add_repo(url, refresh=refresh)
    session.leaves_behind("the registration continues", f"gctd repo show {known.url}")
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
    return session.show(await session.client.repo(url), show_repo)


@repo.command(
    "rm",
    epilog=examples(
        "gctd repo rm https://github.com/owner/name",
        "gctd repo rm https://github.com/owner/name --quiet",
        "gctd repo rm https://github.com/owner/name --json",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@client_command(not_found=REPOSITORIES)
async def remove(session: Session, *, url: str) -> int:
    """Remove the repository at URL with its settings, tasks and analyses.

    Unfinished tasks are cancelled first. The event log keeps the history. The repository can be registered again.
    """
    await session.client.remove_repo(url)
    session.output.note(f"removed {url}")
    return ExitCode.OK


@repo.command(
    "list",
    epilog=examples(
        "gctd repo list",
        "gctd repo list --json",
        "gctd repo list --json | jq -r '.[] | [.repository.URL, .repository.Status] | @tsv'",
    ),
)
@client_command()
async def list_repos(session: Session) -> int:
    """List all registered repositories: their state, and the latest analysis of each project."""
    repos, analyses = await session.client.repos(), await session.client.analyses()
    of_repos = [(repo, [one for one in analyses if one.repo_info.url == repo.url]) for repo in repos]
    if session.output.json:
        documents = [{"repository": repo.document, "analyses": [one.document for one in latest]} for repo, latest in of_repos]
        session.output.document(documents)
    elif repos:
        show_repos(session.output, of_repos)
    else:
        session.output.note("no repository yet; start with: gctd repo add URL")
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
@click.option("--ref", help="Branch, tag or commit to analyse now; `gctd repo config set` sets it for later.")
@click.option("--engine", help="Analysis engine.  [default: the server's]")
@click.option("--again", is_flag=True, help="Run the tests also if the commit was analysed before.")
@top_option
@no_wait_option
@client_command(not_found="gctd repo show {url}")
async def analyze(
    session: Session,
    *,
    url: str,
    project: str | None,
    ref: str | None,
    engine: str | None,
    again: bool,
    top: int,
    no_wait: bool,
) -> int:
    """Analyse the repository at URL: run its tests and score every function.

    Progress is shown while the tasks run, then the worst functions of all projects together and the figures of each. The exit
    code is 1 if a task did not complete. After an interrupt, the tasks continue. A commit that was analysed before with the same
    settings and engine has its earlier analysis as the result, unless --again is given.
    """
    tasks = await session.client.analyze(url, project=project, ref=ref, engine=engine, again=again)
    return await see_through(session, url, tasks, top=top, no_wait=no_wait)


async def _found(session: Session, known: Repo, began: datetime) -> Repo:
    """Return the repository after the search for its projects has ended. Progress is shown during the search."""
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
