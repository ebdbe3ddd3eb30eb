"""`gctd gate`: whether the analyses of a repository keep to limits, for a build that is to fail where they do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from gctd.cli.completion import repo_urls
from gctd.cli.repos.history import analyses_of, breaks_text, point_text, project_option
from gctd.cli.session import Session, client_command
from gctd.cli.text import score
from gctd.client.projects import Check, Gate
from terminalkit.exits import ExitCode
from terminalkit.failure import Failure
from terminalkit.options import examples
from terminalkit.output import Cell, Column, Output, Painted

LISTED = 20
"""How many functions are shown, unless the user says otherwise."""

_WORDS: dict[bool | None, Cell] = {True: Painted("ok", "green"), False: Painted("failed", "red"), None: Painted("-", "yellow")}


@click.command(
    "gate",
    epilog=examples(
        "gctd gate https://github.com/owner/name",
        "gctd gate https://github.com/owner/name --from 02856df --worse risky --markdown > comment.md",
        "gctd gate https://github.com/owner/name --absolute --max-exceeded 10 --min-coverage 60 --json",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@project_option
@click.option("--from", "from_", help="Task or commit to compare with.  [default: the analysis before the other]")
@click.option("--to", help="Task or commit to judge.  [default: the latest analysis]")
@click.option(
    "--threshold", type=click.FloatRange(min=0), help="Value above which a function is risky.  [default: the project's]"
)
@click.option("--max-crap", type=click.FloatRange(min=0), help="Most that the value of any function may be.")
@click.option("--max-exceeded", type=click.IntRange(min=0), help="Most functions over the threshold.")
@click.option("--max-average", type=click.FloatRange(min=0), help="Most that the average may be.")
@click.option("--min-coverage", type=click.FloatRange(0, 100), help="Least share of covered statements, in per cent.")
@click.option("--max-uncovered", type=click.IntRange(min=0), help="Most packages without coverage.")
@click.option("--max-new", type=click.IntRange(min=0), default=0, show_default=True, help="Most new ones over the threshold.")
@click.option("--max-worse", type=click.IntRange(min=0), default=0, show_default=True, help="Most functions whose value rose.")
@click.option(
    "--worse",
    type=click.Choice(["any", "risky"]),
    default="any",
    show_default=True,
    help="Which count for --max-worse: any, or those that are over the threshold now.",
)
@click.option("--absolute", is_flag=True, help="Do not look at what is new or worse.")
@click.option("--markdown", is_flag=True, help="Write a comment for a pull request.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"At most so many functions; 0 for all.  [default: {LISTED}; all with --json]"
)
@client_command(not_found="gctd repo history {url}")
async def gate(
    session: Session, *, url: str, project: str | None, absolute: bool, markdown: bool, limit: int | None, **limits: Any
) -> int:
    """Judge the latest analyses of the repository at URL by limits, and by what was added since those before.

    Without limits no new function may be over the threshold, and none worse than in the analysis before. All projects are judged,
    or one. The exit code is 1 where the gate is not passed; where there is no analysis before, only limits on the analysis itself
    can fail.
    """
    output = session.output
    if markdown and output.json:
        raise click.UsageError("--markdown and --json: only one of them can be written")
    ids = [await analyses_of(session, url, project)] if project else await _projects(session, url)
    query = {("from" if name == "from_" else name): value for name, value in limits.items() if value is not None}
    query |= {"new_risk": "false"} if absolute else {}
    wanted = (0 if output.json else LISTED) if limit is None else limit
    judged = await asyncio.gather(*(session.client.gate(id_, query, limit=wanted) for id_ in ids))
    if markdown:
        for id_ in ids:
            output.content(await session.client.gate_comment(id_, query))
    elif output.json:
        output.document([one.document for one in judged])
    else:
        for index, one in enumerate(judged):
            _show(output, one, apart=index > 0)
    _require_passed(session, judged)
    return ExitCode.OK


async def _projects(session: Session, url: str) -> Sequence[str]:
    """The ids of the analyses of all projects of a repository."""
    repo = await session.client.repo(url)
    if not repo.projects:
        why = f"{url} has no projects" + (f": {repo.reason}" if repo.reason else "")
        raise Failure(session.invocation.what, why, exit_code=ExitCode.NOT_FOUND, hint=f"gctd repo show {url}")
    return [await analyses_of(session, url, one.name) for one in repo.projects]


def _show(output: Output, found: Gate, *, apart: bool) -> None:
    if apart:
        output.line("")
    output.fields(
        [
            ("project", found.project),
            ("from", point_text(found.before) if found.before else "there is no analysis before"),
            ("to", point_text(found.after)),
            ("threshold", f"{found.threshold:g}"),
            ("partial", "a report was shortened (--min, --top)" if found.partial else ""),
            ("measured otherwise", Painted(breaks_text(found.breaks), "yellow") if found.breaks else ""),
            ("gate", Painted("passed", "green") if found.passed else Painted("not passed", "red")),
        ]
    )
    if found.checks:
        output.line("")
        columns = [Column("CHECK"), Column("FOUND", "number"), Column("LIMIT", "number"), Column("RESULT")]
        output.table(columns, [[check.text, _found(check), f"{check.limit:g}", _WORDS[check.passed]] for check in found.checks])
    if found.functions:
        output.line("")
        columns = [Column("BEFORE", "number"), Column("NOW", "number"), Column("FUNCTION"), Column("LOCATION"), Column("FAILED")]
        rows: list[list[Cell]] = [
            [
                score(one.before.crap) if one.before else "",
                score(one.after.crap),
                one.function,
                f"{one.after.file}:{one.after.line}",
                " ".join(one.checks),
            ]
            for one in found.functions
        ]
        output.table(columns, rows)
    more = found.offending - len(found.functions)
    if more > 0:
        output.note(f"{more} more: see --limit")


def _found(check: Check) -> str:
    return "n/a" if check.value is None else f"{check.value:.2f}".rstrip("0").rstrip(".")


def _require_passed(session: Session, judged: Sequence[Gate]) -> None:
    missed = [one for one in judged if not one.passed]
    if missed:
        failed = [f"{one.project}: {', '.join(check.name for check in one.checks if check.passed is False)}" for one in missed]
        raise Failure(session.invocation.what, f"the gate is not passed: {'; '.join(failed)}")
