"""`gctd repo history` and `gctd repo diff`: how the scores of a project changed, and of which functions."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gctd.cli.completion import repo_urls
from gctd.cli.session import Session, client_command
from gctd.cli.tables.analyses import SUMMARY, figures
from gctd.cli.tables.text import commit, score
from gctd.client.projects import Break, Change, Diff, Kept, Point
from gctd.domain.analysis import analysis_id
from terminalkit import examples
from terminalkit.client import one_more
from terminalkit.display import Cell, Column, Output, Painted, moment

LISTED = 50
"""Default limit of the shown analyses or functions."""

STATUSES = ("new", "fixed", "worse", "better", "gone", "unchanged")

_COLOURS = {"fixed": "green", "better": "green", "worse": "red", "new": "yellow"}

project_option = click.option("--project", help="The project: its path in the repository.  [default: the only one]")


@click.command(
    "history",
    epilog=examples(
        "gctd repo history https://github.com/owner/name",
        "gctd repo history https://github.com/owner/name --project cmd/tool --ref main --limit 10",
        "gctd repo history https://github.com/owner/name --json | jq -r '.[] | [.commit_sha, .summary.combined] | @tsv'",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@project_option
@click.option("--ref", help="Only the analyses of this branch or tag, but no bases of comparisons and no pull requests.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=LISTED, show_default=True, help="Limit of the list, newest first; 0 for all."
)
@client_command(not_found="gctd repo show {url}")
async def history(session: Session, *, url: str, project: str | None, ref: str | None, limit: int) -> int:
    """Show the analyses of a project of the repository at URL, the newest first.

    A note marks each change of the Go version, the engine or the flags, because it may change the figures.
    """
    id_ = await analyses_of(session, url, project)
    return session.show_first(limit, await session.client.history(id_, ref=ref, limit=one_more(limit)), _show_history)


@click.command(
    "diff",
    epilog=examples(
        "gctd repo diff https://github.com/owner/name",
        "gctd repo diff https://github.com/owner/name --project cmd/tool --from 02856df --to task-1795177444650946824",
        "gctd repo diff https://github.com/owner/name --json | jq '.functions[] | select(.status == \"worse\")'",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@project_option
@click.option("--base", help="Branch, tag or commit to begin with: with a branch the commit at which the other left it.")
@click.option("--from", "from_", help="Task, commit or ref to begin with.  [default: the commit analysed before on the same ref]")
@click.option("--to", help="Task, commit or ref to end with.  [default: the latest analysis]")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Limit of the listed functions; 0 for all.  [default: {LISTED}; all with --json]"
)
@client_command(not_found="gctd repo history {url}")
async def diff(
    session: Session,
    *,
    url: str,
    project: str | None,
    base: str | None,
    from_: str | None,
    to: str | None,
    limit: int | None,
) -> int:
    """Show which functions of a project changed between two analyses, the largest change first.

    A commit is named by at least 7 of its digits. `fixed`: the function was risky and is not any more.
    """
    id_ = await analyses_of(session, url, project)
    json = session.output.json
    wanted = (0 if json else LISTED) if limit is None else limit
    asked = wanted if json else one_more(wanted) or 0
    found = await session.client.diff(id_, base=base, from_=from_, to=to, limit=asked)
    return session.show(found, lambda output, one: _show_diff(output, one, wanted or None))


async def analyses_of(session: Session, url: str, project: str | None) -> str:
    """The id that all analyses of a project have: of the one that is named, or of the only one."""
    repo = await session.client.repo(url)
    if project is not None:
        return analysis_id(repo.id, project.removeprefix("./").removesuffix("/") or ".")
    names = [one.name for one in repo.projects]
    if len(names) > 1:
        raise click.UsageError(f"there are {len(names)} projects: name one with --project: {', '.join(names[:20])}")
    return analysis_id(repo.id, names[0] if names else ".")


def _show_history(output: Output, points: Sequence[Point]) -> None:
    columns = [
        *(Column("ANALYZED", "number"), Column("COMMIT", "number"), Column("REF", "id", drop=2), *SUMMARY),
        *(Column("ENGINE", drop=4), Column("GO", drop=5), Column("MEASURED OTHERWISE", drop=1), Column("TASK", "id", drop=3)),
    ]
    rows = [
        [
            *(moment(point.analyzed_at), commit(point.commit_sha), point.ref, *figures(point)),
            *(f"{point.engine} {point.engine_version}", point.go_version, breaks_text(point.breaks), point.task_id),
        ]
        for point in points
    ]
    output.table(columns, rows)


def _show_diff(output: Output, found: Diff, limit: int | None) -> None:
    """Show a difference, with at most `limit` functions of each list, of which `found` may have more."""
    functions, kept = found.functions[:limit], found.kept[:limit]
    old, new = found.before.measured, found.after.measured
    output.fields(
        [
            ("project", found.project),
            ("from", point_text(found.before)),
            ("to", point_text(found.after)),
            ("functions", f"{old.total_funcs} -> {new.total_funcs}"),
            ("average", f"{score(old.average)} -> {score(new.average)}"),
            ("total", f"{score(old.combined)} -> {score(new.combined)}"),
            ("risky", f"{old.exceeded} -> {new.exceeded}"),
            ("changes", ", ".join(f"{found.counts.get(status, 0)} {status}" for status in STATUSES)),
            ("measurement", _measurement(found)),
            ("partial", "a report was shortened (--min, --top)" if found.partial else ""),
            ("measured differently", Painted(breaks_text(found.breaks), "yellow") if found.breaks else ""),
        ]
    )
    if functions:
        output.line("")
        columns = [
            *(Column("STATUS"), Column("BEFORE", "number"), Column("AFTER", "number"), Column("CHANGE", "number")),
            *(Column("FUNCTION"), Column("LOCATION", "id")),
        ]
        output.table(columns, [_row(change) for change in functions])
    if kept:
        output.line("")
        columns = [Column("KNOWN AGAIN"), Column("FROM", "id"), Column("TO", "id"), Column("ALIKE", "number")]
        output.table(columns, [_moved(one) for one in kept])
    more = sum(found.counts.values()) - found.counts["unchanged"] - len(functions)
    if more:
        output.note(f"{more} more: see --limit")
    if len(found.kept) > len(kept):
        output.note("more functions are known again: see --limit")


def _row(change: Change) -> list[Cell]:
    colour = _COLOURS.get(change.status)
    return [
        Painted(change.status, colour) if colour else change.status,
        score(change.before.crap) if change.before else "",
        score(change.after.crap) if change.after else "",
        f"{change.delta:+.2f}",
        change.function,
        f"{change.file}:{change.line}",
    ]


def _measurement(found: Diff) -> str:
    """Return the numbers of functions that lost their measurement, and that gained one; empty if both are zero."""
    names = {"unmeasured": "not measured any more", "measured": "measured now"}
    return ", ".join(f"{count} {name}" for status, name in names.items() if (count := found.counts.get(status, 0)))


def _moved(one: Kept) -> list[Cell]:
    before, after = one.before, one.after
    return [
        ", ".join(one.kept),
        f"{before.function} {before.file}:{before.line}",
        f"{after.function} {after.file}:{after.line}",
        "" if one.similarity is None else f"{100 * one.similarity:.0f}%",
    ]


def point_text(point: Point) -> str:
    """Format an analysis as a line."""
    return f"{commit(point.commit_sha)} {point.ref} {moment(point.analyzed_at)} {point.task_id}"


def breaks_text(breaks: Sequence[Break]) -> str:
    """Format the differences in the way of measuring as a line."""
    return ", ".join(f"{one.what} {one.before or 'none'} -> {one.after or 'none'}" for one in breaks)
