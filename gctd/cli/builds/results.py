"""The results of the gate: as a word, as tables, and as the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from gctd.cli.tables.text import score
from terminalkit import ExitCode, Failure
from terminalkit.display import Cell, Column, Output, Painted

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


class Measured(Protocol):
    """The place and the values of a function at one commit; `coverage` is in per cent, None if unknown. `known`: it is known."""

    @property
    def known(self) -> bool: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def crap(self) -> float: ...
    @property
    def cyclomatic(self) -> int: ...
    @property
    def coverage(self) -> float | None: ...


@attrs.frozen
class JudgedFunction:
    """A function behind a verdict, with its result and the reason. `before` is None for a new one, `now` for one that is gone."""

    name: str
    place: str
    before: Measured | None
    now: Measured | None
    result: Cell
    reason: str = ""

    @property
    def why(self) -> str:
        """The reason, else the values behind the CRAP value that changed; for a new function, or without a base, all of them."""
        if self.reason or self.now is None:
            return self.reason
        coverage = _percent(self.now.coverage)
        if self.before is None:
            return f"complexity {self.now.cyclomatic}, coverage {coverage}"
        changes = []
        if self.before.cyclomatic != self.now.cyclomatic:
            changes.append(f"complexity {self.before.cyclomatic} to {self.now.cyclomatic}")
        if _percent(self.before.coverage) != coverage:
            changes.append(f"coverage {_percent(self.before.coverage)} to {coverage}")
        return ", ".join(changes)


def failed(checks: Iterable[str]) -> Cell:
    """Return the result of a function that failed checks."""
    return Painted(" ".join(checks), "red")


WORSE, NOT_MEASURED, EXCLUDED = (Painted(text, "yellow") for text in ("worse", "not measured", "excluded"))
FIXED = Painted("fixed", "green")


def show_functions(output: Output, functions: Sequence[JudgedFunction], more: int, see: str) -> None:
    """Print functions: values, place, result and cause. `more` are left out, and `see` names the option that shows them."""
    if functions:
        output.line("")
        rows: list[list[Cell]] = [
            [
                score(one.before.crap) if one.before is not None and one.before.known else "",
                score(one.now.crap) if one.now is not None and one.now.known else "",
                one.name,
                one.place,
                one.result,
                one.why,
            ]
            for one in functions
        ]
        columns = [Column("BEFORE", "number"), Column("NOW", "number"), Column("FUNCTION"), Column("LOCATION", "id")]
        output.table([*columns, Column("RESULT"), Column("WHY")], rows)
    if more > 0:
        output.note(f"{more} more: see {see}")


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


def _percent(coverage: float | None) -> str:
    return "unknown" if coverage is None else f"{coverage:.1f}%"


def _value(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
