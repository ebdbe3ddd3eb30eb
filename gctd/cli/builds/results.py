"""The results of the gate: as a word, as tables, and as the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gctd.cli.tables.text import score
from terminalkit.display.output import Output
from terminalkit.display.table import Cell, Column, Painted
from terminalkit.exits import ExitCode
from terminalkit.failure import Failure

RESULTS: dict[str, Cell] = {
    "passed": Painted("passed", "green"),
    "failed": Painted("not passed", "red"),
    "unknown": Painted("not known", "yellow"),
}
_WORDS: dict[bool | None, Cell] = {True: Painted("ok", "green"), False: Painted("failed", "red"), None: Painted("-", "yellow")}


def show_checks(output: Output, checks: Sequence[tuple[str, float | None, float, bool | None]]) -> None:
    """Print the text, the value and the limit of each check, and whether it is passed."""
    if checks:
        output.line("")
        columns = [Column("CHECK"), Column("FOUND", "number"), Column("LIMIT", "number"), Column("RESULT")]
        output.table(columns, [[text, _value(value), f"{limit:g}", _WORDS[passed]] for text, value, limit, passed in checks])


def show_functions(output: Output, functions: Sequence[tuple[float | None, float, str, str, Iterable[str]]]) -> None:
    """Print the functions that failed a check: the value before and now, name, place, and the checks."""
    if functions:
        output.line("")
        numbers = [Column("BEFORE", "number"), Column("NOW", "number")]
        rows: list[list[Cell]] = [
            ["" if before is None else score(before), score(now), name, place, " ".join(checks)]
            for before, now, name, place, checks in functions
        ]
        output.table([*numbers, Column("FUNCTION"), Column("LOCATION", "id"), Column("FAILED")], rows)


def require_passed(what: str, judged: Iterable[tuple[str, str, Sequence[str], str]]) -> None:
    """Raise Failure unless each project passes the gate: its name, the result, the failed checks, and the reason."""
    failed, unknown = [], []
    for project, result, checks, reason in judged:
        if result == "failed":
            failed.append(f"{project}: {', '.join(checks)}")
        elif result != "passed":
            unknown.append(f"{project}: {reason}")
    if failed:
        raise Failure(what, f"the gate is not passed: {'; '.join(failed)}")
    if unknown:
        why = f"it is not known whether the gate is passed: {'; '.join(unknown)}"
        raise Failure(what, why, exit_code=ExitCode.UNDECIDED)


def _value(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
