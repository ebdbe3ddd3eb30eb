"""Analyses and their worst functions as tables."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.cli.tables.text import commit, score
from gctd.client.projects import Point
from gctd.client.resources import Analysis, Entry, LeftOut, PackageProblem
from terminalkit.display import Cell, Column, Output, Painted, duration, percent

THRESHOLD = 30.0
"""The CRAP value above which a function is shown as risky."""
SUMMARY = (
    Column("FUNCTIONS", "number"),
    Column("AVERAGE", "number"),
    Column("TOTAL", "number", drop=1),
    Column("RISKY", "number"),
)


def show_results(output: Output, analyses: Sequence[Analysis], top: int) -> None:
    """The `top` worst functions of all these analyses together, then the figures of each project."""
    worst = sorted(
        ((analysis, entry) for analysis in analyses for entry in analysis.entries if entry.known),
        key=lambda pair: (-pair[1].crap, pair[0].project, pair[1].file, pair[1].line),
    )[:top]
    several = len(analyses) > 1
    if worst:
        columns = [
            Column("CRAP", "number"),
            Column("COMPLEXITY", "number"),
            Column("COVERAGE", "number"),
            Column("FUNCTION"),
            *([Column("PROJECT", "id", drop=1)] if several else []),
            Column("LOCATION", "id"),
        ]
        output.table(columns, [_function(entry, analysis.project if several else None) for analysis, entry in worst])
        output.line("")
    output.table(
        [
            Column("PROJECT", "id"),
            *SUMMARY,
            Column("NOT MEASURED", "number"),
            Column("COMMIT", "number", drop=3),
            Column("ENGINE", drop=1),
            Column("TOOK", "number", drop=2),
        ],
        [
            [
                analysis.project,
                *figures(analysis),
                str(analysis.unmeasured),
                commit(analysis.repo_info.commit_sha),
                analysis.engine,
                duration(analysis.duration_ms / 1000),
            ]
            for analysis in analyses
        ],
    )
    unmeasured = [
        [*([analysis.project] if several else []), str(count), state.replace("_", " ")]
        for analysis in analyses
        for state, count in sorted(analysis.unmeasured_states.items(), key=lambda item: -item[1])
    ]
    _show_gaps(output, (Column("FUNCTIONS", "number"), Column("NOT MEASURED")), unmeasured, several=several)
    uncovered = [_gap(analysis, package, several=several) for analysis in analyses for package in analysis.uncovered]
    _show_gaps(output, (Column("PACKAGE"), Column("WITHOUT COVERAGE")), uncovered, several=several)
    left_out = [_gap(analysis, warning, several=several) for analysis in analyses for warning in analysis.warnings]
    _show_gaps(output, (Column("PATH"), Column("NOT IN THE NUMBERS")), left_out, several=several)


def _gap(analysis: Analysis, gap: PackageProblem | LeftOut, *, several: bool) -> list[str]:
    return [*([analysis.project] if several else []), gap.path, gap.reason]


def _show_gaps(output: Output, columns: Sequence[Column], gaps: Sequence[list[str]], *, several: bool) -> None:
    """Print the gaps of the figures, so that no reader takes the figures for complete."""
    if gaps:
        output.line("")
        output.table([*([Column("PROJECT")] if several else []), *columns], gaps)


def figures(analysis: Analysis | Point) -> list[Cell]:
    """The figures of the functions that were measured, in the columns of SUMMARY."""
    summary = analysis.measured
    exceeded = str(summary.exceeded)
    return [
        str(summary.total_funcs),
        score(summary.average),
        score(summary.combined),
        Painted(exceeded, "red") if summary.exceeded else exceeded,
    ]


def _function(entry: Entry, project: str | None) -> list[Cell]:
    crap = score(entry.crap)
    return [
        Painted(crap, "red") if entry.crap > THRESHOLD else crap,
        str(entry.cyclomatic),
        percent(entry.coverage),
        entry.function,
        *([] if project is None else [project]),
        f"{entry.file}:{entry.line}",
    ]
