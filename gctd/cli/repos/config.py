"""`gctd repo config`: the settings of repositories and of their projects."""

from __future__ import annotations

import shlex
from typing import Any

import click

from gctd.cli.completion import repo_urls
from gctd.cli.session import Session, client_command
from gctd.client.projects import RepoConfig
from gctd.domain.repo.config import FIELDS, STORE_SOURCE
from terminalkit import Choice, ExitCode, examples
from terminalkit.display import Column, Output

NOT_FOUND = "gctd repo show {url}"

_subdir = click.option("--subdir", help="A project: its path in the repository.  [default: the repository's root]")


@click.group()
def config() -> None:
    """Set, show and remove the settings of a repository or of one of its projects.

    A project inherits missing settings from the root, and the root from the server.
    """


@config.command(
    "set",
    epilog=examples(
        "gctd repo config set https://github.com/owner/name --ref develop --timeout 20m",
        "gctd repo config set https://github.com/owner/name --subdir cmd/tool --test-args '-short -race'",
        "gctd repo config set https://github.com/owner/name --crap-arg=--threshold=20 --unset ref",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@_subdir
@click.option("--ref", help="Branch, tag or commit to analyse.")
@click.option("--test-args", help="Flags for `go test`.")
@click.option("--crap-arg", "crap_args", multiple=True, help="A flag of `go-crap scan`; once for each.")
@click.option("--submodules/--no-submodules", default=None, help="Check out submodules as well.")
@click.option("--timeout", metavar="DURATION", help="Longest that an attempt may take.")
@click.option("--git-timeout", metavar="DURATION", help="Longest that one command of git may take.")
@click.option("--go-flags", help="Flags for every `go` command.")
@click.option("--coverpkg/--no-coverpkg", default=None, help="Count the tests of each package for all packages (engine native).")
@click.option("--store-source", type=Choice(STORE_SOURCE), help="Keep the source of functions, for their pages.")
@click.option("--unset", multiple=True, type=Choice(FIELDS), help="Remove this setting; once for each.")
@client_command(not_found=NOT_FOUND, time_limit="--give-up-after")
async def set_config(session: Session, *, url: str, subdir: str | None, unset: tuple[str, ...], **given: Any) -> int:
    """Change the given settings of the repository at URL.

    They hold for analyses that are scheduled from now on.
    """
    changes = {name: value for name, value in given.items() if value not in (None, ())}
    if both := sorted(set(unset) & set(changes)):
        raise click.UsageError(f"{both[0]} is set and removed at once")
    if not changes and not unset:
        raise click.UsageError("nothing to set: give a setting, or --unset one")
    return session.show(await session.client.set_config(url, subdir, changes | dict.fromkeys(unset)), _show)


@config.command(
    "get",
    epilog=examples(
        "gctd repo config get https://github.com/owner/name",
        "gctd repo config get https://github.com/owner/name --subdir cmd/tool",
        "gctd repo config get https://github.com/owner/name --json | jq -r .effective.ref",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@_subdir
@client_command(not_found=NOT_FOUND)
async def get_config(session: Session, *, url: str, subdir: str | None) -> int:
    """Show the effective settings of the repository at URL, or of a project of it, and the origin of each."""
    return session.show(await session.client.config(url, subdir), _show)


@config.command(
    "rm",
    epilog=examples(
        "gctd repo config rm https://github.com/owner/name",
        "gctd repo config rm https://github.com/owner/name --subdir cmd/tool",
        "gctd repo config rm https://github.com/owner/name --quiet",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@_subdir
@client_command(not_found=NOT_FOUND)
async def remove_config(session: Session, *, url: str, subdir: str | None) -> int:
    """Remove all settings of the repository at URL, or of a project of it."""
    await session.client.remove_config(url, subdir)
    session.output.note(f"removed the settings of {subdir or 'the root'}")
    return ExitCode.OK


def _show(output: Output, settings: RepoConfig) -> None:
    columns = [Column("SETTING", "id"), Column("VALUE"), Column("ORIGIN")]
    rows = [[name, _text(settings.effective.get(name)), settings.origin.get(name, "")] for name in FIELDS]
    output.table(columns, rows)


def _text(value: object) -> str:
    """Format a value as in the command line."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list():
            return shlex.join(map(str, value))
        case _:
            return str(value)
