"""`gctd gate`: judge the analyses of a repository by limits, for a build that has to fail if they are exceeded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from gctd.cli.builds.limits import limit_options
from gctd.cli.builds.results import (
    EXCLUDED,
    FIXED,
    NOT_MEASURED,
    RESULTS,
    WORSE,
    JudgedFunction,
    failed,
    require_passed,
    show_checks,
    show_functions,
)
from gctd.cli.completion import repo_urls
from gctd.cli.repos.history import analyses_of, breaks_text, point_text, project_option
from gctd.cli.session import Session, client_command
from gctd.cli.tables.text import commit
from gctd.client.projects import Gate, Values
from terminalkit import DURATION, ExitCode, Failure, examples
from terminalkit.display import Cell, Output, Painted

LISTED = 20
"""Default limit of the shown functions."""

POLL = 1.0
"""Seconds between two polls of a pending verdict."""


@click.command(
    "gate",
    epilog=examples(
        "gctd gate https://github.com/owner/name",
        "gctd gate https://github.com/owner/name --base main --wait 10m",
        "gctd gate https://github.com/owner/name --base v1.2.0 --worse any --markdown > comment.md",
        "gctd gate https://github.com/owner/name --absolute --max-exceeded 10 --min-coverage 60 --json",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@project_option
@click.option("--base", help="Branch, tag or commit to compare with.  [default: the commit analysed before on the same ref]")
@click.option("--from", "from_", help="Task, commit or ref to compare with, analysed already; that verdict is not kept.")
@click.option("--to", help="Task, commit or ref to judge, analysed already.  [default: the latest analysis]")
@limit_options
@click.option("--wait", type=DURATION, help="Longest to wait for the analysis of the base, as 10m.  [default: do not wait]")
@click.option("--markdown", is_flag=True, help="Write a comment for a pull request.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Limit of the listed functions; 0 for all.  [default: {LISTED}; all with --json]"
)
@client_command(not_found="gctd repo history {url}")
async def gate(
    session: Session,
    *,
    url: str,
    project: str | None,
    absolute: bool,
    markdown: bool,
    limit: int | None,
    wait: float | None,
    from_: str | None,
    **limits: Any,
) -> int:
    """Judge the latest analyses of the repository at URL by limits, and by the changes since a base.

    With --base BRANCH the base is the commit at which this one left the branch. Without limits the gate fails if a function is
    new and over the threshold, crosses it, or is over it and worse than at the base. All projects are judged, or one. A verdict
    that is known is kept: the same commit, base and limits give the same one.

    The exit code is 1 if the gate is not passed, and 8 if the result is unknown: a function that is needed is not measured, the
    base is missing, or it has not been analysed yet. In the latter case its analysis is scheduled, and the verdict follows.
    """
    output = session.output
    if markdown and output.json:
        raise click.UsageError("--markdown and --json: only one of them can be written")
    ids = [await analyses_of(session, url, project)] if project else await _projects(session, url)
    if from_ is not None and limits["base"] is not None:
        raise click.UsageError("--from and --base: only one of them can be given")
    query = {name: value for name, value in limits.items() if value is not None and value is not False}
    query |= {"new_risk": False} if absolute else {}
    wanted = (0 if output.json else LISTED) if limit is None else limit
    judged = await asyncio.gather(*(_judged(session, id_, query, from_, wanted, wait) for id_ in ids))
    if markdown:
        for id_, one in zip(ids, judged, strict=True):
            # Another analysis, with another threshold, may be the latest one by now.
            same = {"to": one.after.task_id, "threshold": one.threshold} | ({"from": from_} if from_ else {})
            output.content(await session.client.gate_comment(id_, query | same))
    elif output.json:
        output.document([one.document for one in judged])
    else:
        for index, one in enumerate(judged):
            _show(output, one, apart=index > 0)
    require_passed(
        session.invocation.what,
        [(one.project, one.result, [check.name for check in one.checks if check.passed is False], one.reason) for one in judged],
    )
    return ExitCode.OK


async def _judged(session: Session, id_: str, query: dict[str, Any], from_: str | None, limit: int, wait: float | None) -> Gate:
    """The verdict on a project; of one that waits for its base after that long what is known then."""
    if from_ is not None:
        return await session.client.gate(id_, query | {"from": from_}, limit=limit)
    found = await session.client.ask_for_verdict(id_, query, limit=limit)
    until = time.monotonic() + (wait or 0.0)
    while found.result == "unknown" and found.base.task_id is not None and time.monotonic() < until:
        task = await session.client.task(found.base.task_id)
        await asyncio.sleep(POLL)
        # Another analysis, with another threshold, may be the latest one by now.
        same = {"to": found.after.task_id, "threshold": found.threshold}
        found = await session.client.ask_for_verdict(id_, query | same, limit=limit)
        if task.ended and not task.completed:
            break
    return found


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
            ("base", " ".join((commit(found.base.commit_sha), found.base.kind)) if found.base.commit_sha else ""),
            ("from", point_text(found.before) if found.before else ""),
            ("to", point_text(found.after)),
            ("threshold", f"{found.threshold:g}"),
            ("partial", "a report was shortened (--min, --top)" if found.partial else ""),
            ("measured differently", Painted(breaks_text(found.breaks), "yellow") if found.breaks else ""),
            ("gate", RESULTS[found.result]),
            ("reason", found.reason),
            ("verdict", found.verdict or ""),
        ]
    )
    show_checks(output, [(check.text, check.value, check.limit, check.passed) for check in found.checks])
    functions = list(_functions(found))
    every = found.offending + found.lacking + found.leaving + found.rising + found.no_longer_risky
    show_functions(output, functions, every - len(functions), "--limit")


def _functions(found: Gate) -> Iterator[JudgedFunction]:
    """The functions of a verdict in the order of `gctd check`."""

    def listed(name: str, before: Values | None, now: Values, result: Cell, reason: str = "") -> JudgedFunction:
        return JudgedFunction(name, f"{now.file}:{now.line}", before, now, result, reason)

    for one in found.functions:
        yield listed(one.function, one.before, one.after, failed(one.checks))
    for lacking in found.unmeasured:
        yield listed(lacking.function, lacking.before, lacking.after, NOT_MEASURED, lacking.reason)
    for left in found.excluded:
        yield JudgedFunction(left.function, f"{left.file}:{left.line}", left.before, None, EXCLUDED, left.reason)
    for worse in found.worsened:
        yield listed(worse.function, worse.before, worse.after, WORSE)
    for fixed in found.fixed:
        yield listed(fixed.function, fixed.before, fixed.after, FIXED)
