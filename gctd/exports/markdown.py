"""An analysis as a comment for a pull request (GitHub Flavored Markdown): the changes, the judgement, the risky functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from gctd.domain.options import threshold_of
from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import Comparison, Status
from gctd.engines.changes.gate import Check, CheckName, GateVerdict
from gctd.engines.report import FunctionEntry
from gctd.readmodel.breaks import Break
from gctd.readmodel.views import AnalysisView

MEDIA_TYPE = "text/markdown"
ROWS = 25
"""Functions that a table of a comment has at most."""

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ORDER = (Status.NEW, Status.WORSE, Status.FIXED, Status.BETTER, Status.GONE)

Link = Callable[[FunctionEntry], str | None]


@attrs.frozen(kw_only=True)
class Comment:
    """Content of a comment: an analysis with its functions, the worst first, and the analysis before it, if one exists.

    `breaks` are the differences in the way of measuring. `partial`: a report was shortened, so a new or gone function may only be
    hidden. `link` returns the address of a function's source, if it is known. `page` is the address of the dashboard's page,
    empty if unknown. `limits` and `verdict` are set after a judgement.
    """

    after: AnalysisView
    entries: Sequence[FunctionEntry]
    before: AnalysisView | None = None
    changes: Comparison | None = None
    breaks: Sequence[Break] = ()
    partial: bool = False
    link: Link = lambda _: None
    page: str = ""
    limits: Rules | None = None
    verdict: GateVerdict | None = None

    def markdown(self) -> str:
        """Return the text. Its first line identifies the project, so that a bot can replace its previous comment."""
        parts = [
            f"<!-- gctd {self.after.analysis_id} -->",
            f"### {self._heading()}",
            *self._page(),
            *self._gate(),
            *self._not_judged(),
            *self._figures(),
            *self._notes(),
            *self._changes(),
            *self._worst(),
            *self._gaps(),
            self._made_by(),
        ]
        return "\n\n".join(parts) + "\n"

    def _heading(self) -> str:
        project = "" if self.after.project == "." else f" of {code(self.after.project)}"
        mark = _SIGNS[self.verdict.result] if self.verdict else ""
        return f"{mark}CRAP{project} at {code(self.after.commit_sha[:12])}"

    def _page(self) -> Iterator[str]:
        if self.page:
            name = "Changes with the source of both sides" if self.before else "All functions and the gate"
            yield f"[{name}]({self.page})"

    def _gate(self) -> Iterator[str]:
        if self.verdict is None or self.limits is None:
            return
        if self.verdict.result is Result.UNKNOWN:
            yield f"**It is not known whether the gate is passed:** {plain(self.verdict.reason)}."
            return
        checks = self.verdict.checks
        failed = sum(check.passed is False for check in checks)
        said = f"**The gate is not passed: {failed} of {len(checks)} checks failed.**"
        yield "The gate is passed." if self.verdict.result is Result.PASSED else said
        if checks:
            alone = self.before is None
            rows = [
                (_MARKS[check.passed], says(check, self.limits), value_of(check, alone=alone), f"{check.limit:g}")
                for check in checks
            ]
            yield table(("", "Check", "Found", "Limit"), rows, numbers=(2, 3))

    def _not_judged(self) -> Iterator[str]:
        """The functions that are not measured, and the ones that left the measured set."""
        if self.verdict is None:
            return
        for title, listed in (
            ("Not measured", [(one.after, one.reason) for one in self.verdict.unmeasured]),
            ("Excluded by this change", [(one.entry, one.reason) for one in self.verdict.excluded]),
        ):
            rows = [(self._function(entry, linked=True), plain(reason)) for entry, reason in listed[:ROWS]]
            more = [(f"{len(listed) - ROWS} more", "")] if len(listed) > ROWS else []
            if rows:
                yield table((title, "Reason"), [*rows, *more])

    def _figures(self) -> Iterator[str]:
        new = self.after.known
        old = self.before.known if self.before else None
        over = f"Risky (CRAP over {threshold_of(self.after.flags):g})"
        if old is None:
            figures = [("Functions", f"{new.total_funcs}"), (over, f"{new.exceeded}"), ("Average", f"{new.average:.2f}")]
            yield table(("", "Now"), [*figures, ("Total", f"{new.combined:.2f}")], numbers=(1,))
            return
        rows = [
            _change("Functions", old.total_funcs, new.total_funcs, 0),
            self._risky(over, old.exceeded, new.exceeded),
            _change("Average", old.average, new.average, 2),
            _change("Total", old.combined, new.combined, 2),
        ]
        yield table(("", "Before", "Now", "Change"), rows, numbers=(1, 2, 3))

    def _risky(self, name: str, was: int, now: int) -> tuple[str, str, str, str]:
        """The row of the risky functions. Numbers that were counted by two thresholds have no difference."""
        assert self.before is not None, "a change has two sides"
        threshold = threshold_of(self.before.flags)
        if threshold == threshold_of(self.after.flags):
            return _change(name, was, now, 0)
        return name, f"{was} (over {threshold:g})", f"{now}", ""

    def _notes(self) -> Iterator[str]:
        if self.before is None:
            yield "There is no analysis of another commit to compare with."
        if self.breaks:
            listed = ", ".join(f"{one.what} {code(one.before or 'none')} → {code(one.after or 'none')}" for one in self.breaks)
            yield f"> Measured differently: {listed}. A difference of the values need not come from the code."

        if self.partial and self.changes is not None:
            yield "> A report was shortened (--min, --top): a function that is new or gone here may only be hidden."

    def _changes(self) -> Iterator[str]:
        if self.changes is None:
            return
        counts = self.changes.counts()
        said = ", ".join(f"{counts[status.value]} {status.value}" for status in _ORDER if counts[status.value])
        yield f"**Functions:** {said or 'none changed'}; {counts['unchanged']} unchanged."
        shown = self.changes.changes[:ROWS]
        if shown:
            rows = [
                (
                    change.status.value,
                    self._function(change.entry, linked=change.after is not None),
                    f"{change.before.crap:.2f}" if change.before else "",
                    f"{change.after.crap:.2f}" if change.after else "",
                    f"{change.delta:+.2f}",
                )
                for change in shown
            ]
            yield table(("", "Function", "Before", "Now", "Change"), rows, numbers=(2, 3, 4))
        if len(self.changes.changes) > len(shown):
            yield f"{len(self.changes.changes) - len(shown)} more changed."

    def _worst(self) -> Iterator[str]:
        threshold = threshold_of(self.after.flags)
        worst = [entry for entry in self.entries if entry.risky(threshold)][:ROWS]
        if worst:
            rows = [
                (
                    self._function(entry, linked=True),
                    f"{entry.crap:.2f}",
                    str(entry.cyclomatic),
                    "n/a" if entry.coverage is None else f"{entry.coverage:.1f}%",
                )
                for entry in worst
            ]
            text = table(("Function", "CRAP", "Complexity", "Coverage"), rows, numbers=(1, 2, 3))
            yield _folded(f"{self.after.risky} risky (CRAP over {threshold:g}), the worst first", text)

    def _gaps(self) -> Iterator[str]:
        unmeasured = self.after.summary.total_funcs - self.after.known.total_funcs
        if unmeasured:
            states = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self.after.states.items())
            yield f"{unmeasured} functions are not measured and not in these figures ({states})."
        if self.after.uncovered:
            rows = [(code(package.path), plain(package.reason)) for package in self.after.uncovered[:ROWS]]
            more = len(self.after.uncovered) - len(rows)
            text = table(("Package", "Without coverage"), [*rows, *([(f"{more} more", "")] if more > 0 else [])])
            yield _folded(f"{len(self.after.uncovered)} packages without coverage", text)

    def _made_by(self) -> str:
        one = self.after
        return f"<sub>gctd, engine {code(f'{one.engine} {one.engine_version}')}, {code(one.go_version)}, {one.task_id}</sub>"

    def _function(self, entry: FunctionEntry, *, linked: bool) -> str:
        place = f"{entry.file}:{entry.line}"
        address = self.link(entry) if linked else None
        where = code(place) if address is None else f"[{code(place)}]({address})"
        return f"{code(entry.function)} {where}"


def _change(name: str, was: float, now: float, places: int) -> tuple[str, str, str, str]:
    return name, f"{was:.{places}f}", f"{now:.{places}f}", f"{now - was:+.{places}f}" if now != was else ""


_SIGNS = {Result.PASSED: "✅ ", Result.FAILED: "❌ ", Result.UNKNOWN: "❔ "}
_MARKS = {True: "✅", False: "❌", None: "n/a"}


def says(check: Check, limits: Rules) -> str:
    """Describe the subject of a check in words."""
    over = f"CRAP over {limits.threshold:g}"
    return {
        CheckName.MAX_CRAP: "highest CRAP value of a function",
        CheckName.MAX_EXCEEDED: f"risky functions ({over})",
        CheckName.MAX_AVERAGE: "average CRAP value",
        CheckName.MIN_COVERAGE: "covered statements, at least",
        CheckName.MAX_UNCOVERED: "packages without coverage",
        CheckName.MAX_NEW: f"new risky functions ({over})",
        CheckName.MAX_EXCLUDED: "functions excluded by this change",
        CheckName.MEASURED: "functions that are not measured",
        CheckName.MAX_WORSE: f"functions that are worse{f' and risky ({over})' if limits.worse == 'risky' else ''}",
    }[check.name]


_COMPARING = frozenset({CheckName.MAX_NEW, CheckName.MAX_WORSE, CheckName.MAX_EXCLUDED})


def value_of(check: Check, *, alone: bool) -> str:
    """Return the value of a check as a text. `alone`: there is no analysis to compare with."""
    if check.value is None:
        return "nothing to compare with" if alone and check.name in _COMPARING else "not known"
    return f"{check.value:.2f}".rstrip("0").rstrip(".")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """A table; the columns `numbers` are set to the right."""
    lines = [titles, ["---:" if index in numbers else "---" for index in range(len(titles))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """Return a code span with the unchanged text, also for tables, and for any text."""
    shown = _UNSAFE.sub("\ufffd", text).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"


def plain(text: str) -> str:
    """Return text without markup, mentions and links."""
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~@&:.-])", lambda match: f"&#{ord(match[1])};", _UNSAFE.sub(" ", text))


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
