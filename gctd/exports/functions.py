"""The functions of an analysis as lines, for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.engines.report import FunctionEntry
from gctd.engines.score import coverage_needed
from httpkit import encode_csv, member, message


@message
class FunctionRow:
    """A function. Coverages are in per cent, empty if unknown."""

    file: str = member(description="relative to the project")
    line: int = member()
    end_line: int = member()
    package: str = member()
    function: str = member(description="receiver and name")
    crap: float = member()
    cyclomatic: int = member()
    coverage: float | None = member(description="of blocks")
    stmt_coverage: float | None = member(description="of statements, as `go tool cover -func` counts")
    exceeded: bool | None = member(description="whether the value is over the project's threshold; empty: not measured")
    coverage_needed: float | None = member(description="least coverage within the threshold; empty if none is enough")
    state: str = member(description="state of the measurement")
    reason: str = member(description="cause of the state")


def functions_csv(entries: Sequence[FunctionEntry], threshold: float) -> bytes:
    """The functions as CSV (RFC 4180), one on a line, the worst first."""
    return encode_csv(FunctionRow, [_row(entry, threshold) for entry in entries])


def _row(entry: FunctionEntry, threshold: float) -> FunctionRow:
    return FunctionRow(
        # A spreadsheet would take a path that begins so for a formula.
        file=f"./{entry.file}" if entry.file.startswith(("=", "+", "-", "@")) else entry.file,
        line=entry.line,
        end_line=entry.end_line,
        package=entry.package,
        function=entry.function,
        crap=entry.crap,
        cyclomatic=entry.cyclomatic,
        coverage=entry.coverage,
        stmt_coverage=entry.stmt_coverage,
        exceeded=entry.crap > threshold if entry.state.known else None,
        coverage_needed=coverage_needed(entry.cyclomatic, threshold),
        state=entry.state.value,
        reason=entry.reason,
    )
