"""Two reports on one project, function by function: the new, fixed, worse, better and gone functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from posixpath import dirname

import attrs

from gctd.engines.changes.matching import Match, match
from gctd.engines.report import FunctionEntry, Report, ReportWarning
from gctd.engines.score import crap
from gctd.engines.state import State

TOLERANCE = 0.01
"""A CRAP value that moved by less has not changed: go-crap's own bound for a regression."""


class Status(StrEnum):
    """Change of a function between two reports.

    - `fixed`: its value was over the threshold, and is not any more.
    - `worse`, `better`: its value rose, fell.
    - `unmeasured`: its coverage was known, and is not any more, so its values cannot be compared.
    - `measured`: its coverage is known now, and was not.
    """

    NEW = "new"
    FIXED = "fixed"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"
    UNMEASURED = "unmeasured"
    MEASURED = "measured"


class ChangedProperty(StrEnum):
    """Properties that differ in a function found again: its place, its name or its signature."""

    MOVED = "moved"
    RENAMED = "renamed"
    SIGNATURE = "signature changed"


@attrs.frozen(kw_only=True)
class Change:
    """Change of a function: its entries before and after, None if it is not in that report.

    `kept` has the properties that differ in a function found again. `similarity` is the share of equal content (0 to 1; None: the
    match is certain). `body_changed` False: parameters, results and body are the same.
    """

    status: Status
    before: FunctionEntry | None
    after: FunctionEntry | None
    kept: tuple[ChangedProperty, ...] = ()
    similarity: float | None = None
    body_changed: bool = True

    @property
    def entry(self) -> FunctionEntry:
        """Return the entry after the change, or the entry before it if the function is gone."""
        entry = self.after or self.before
        assert entry is not None, "a change is of a function"
        return entry

    @property
    def delta(self) -> float:
        """The change of the sum of all values."""
        return (self.after.crap if self.after else 0.0) - (self.before.crap if self.before else 0.0)


@attrs.frozen(kw_only=True)
class Exclusion:
    """A function that the change takes out of the measured set, with the reason.

    `before` is None if it is new, `after` is None if its file is not read any more.
    """

    before: FunctionEntry | None
    after: FunctionEntry | None
    reason: str

    @property
    def entry(self) -> FunctionEntry:
        """Return the entry after the change, or the entry before it."""
        entry = self.after or self.before
        assert entry is not None, "it is of a function"
        return entry


@attrs.frozen(kw_only=True)
class Comparison:
    """All changes, the largest first, and the number of functions without a change.

    `kept` are the functions that moved, were renamed or have another signature, even if their values are equal. `pairs` are all
    functions of the two reports. `excluded` are the functions that left the measured set. Functions of files that could not be
    read are not known: `unread` are such files after the change that were read before, `unread_before` the other way round.
    """

    changes: tuple[Change, ...]
    unchanged: int
    kept: tuple[Match, ...] = ()
    pairs: tuple[Match, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    unread: tuple[ReportWarning, ...] = ()
    unread_before: frozenset[str] = frozenset()

    def counts(self) -> Mapping[str, int]:
        """Return the number of functions with each status, and `unchanged`."""
        found = Counter(change.status for change in self.changes)
        return {**{status.value: found[status] for status in Status}, "unchanged": self.unchanged}


def compare(before: Report, after: Report, *, threshold: float) -> Comparison:
    """Compare the functions of two reports. `threshold` is the value above which a function needs a fix."""
    changes: list[Change] = []
    kept: list[Match] = []
    unchanged = 0
    matches = match((*before.entries, *before.excluded), (*after.entries, *after.excluded))
    pairs = list(_in_reports(matches))
    for pair in pairs:
        how = kept_as(pair)
        if how:
            kept.append(pair)
        status = _status(pair.before, pair.after, threshold)
        if status is None:
            unchanged += 1
        else:
            changes.append(
                Change(
                    status=status,
                    before=pair.before,
                    after=pair.after,
                    kept=how,
                    similarity=pair.similarity,
                    body_changed=pair.body_changed,
                )
            )
    changes.sort(key=lambda change: (-abs(change.delta), change.entry.file, change.entry.line, change.entry.function))
    kept.sort(key=_place_after)
    unread, unread_before = ({one.path: one for one in report.warnings if one.unread} for report in (after, before))
    return Comparison(
        changes=tuple(changes),
        unchanged=unchanged,
        kept=tuple(kept),
        pairs=tuple(pairs),
        excluded=tuple(_exclusions(matches, _left_out(after), threshold)),
        unread=tuple(one for path, one in unread.items() if path not in unread_before),
        unread_before=frozenset(unread_before.keys() - unread.keys()),
    )


def _in_reports(matches: Sequence[Match]) -> Iterator[Match]:
    """The pairs without the functions that a rule leaves out: these are in no report."""
    for pair in matches:
        before, after = (None if one is None or one.state is State.EXCLUDED else one for one in (pair.before, pair.after))
        if before is pair.before and after is pair.after:
            yield pair
        elif before is not None or after is not None:
            yield Match(before=before, after=after)


def _left_out(report: Report) -> Mapping[str, str]:
    """The reasons for which files, and all files of directories, are not part of a module, by their paths."""
    warnings = ((one.path, one.reason) for one in report.warnings if one.kind in ("link", "nested-module", "ignored"))
    return {**dict(warnings), **{one.file: one.rule for one in report.excluded_files}}


def _exclusions(matches: Sequence[Match], left_out: Mapping[str, str], threshold: float) -> Iterator[Exclusion]:
    """A new function counts if its value could be over the threshold."""
    for pair in sorted(matches, key=_place_after):
        before, after = pair.before, pair.after
        inside = before is not None and not before.state.outside
        if after is None:
            reason = _reason_at(before.file, left_out) if before is not None and inside else None
            if reason is not None:
                yield Exclusion(before=before, after=None, reason=reason)
        elif after.state.outside and (inside or (before is None and crap(after.cyclomatic, 0.0) > threshold)):
            yield Exclusion(before=before, after=after, reason=f"{after.state.value}: {after.reason}")


def _reason_at(path: str, reasons: Mapping[str, str]) -> str | None:
    """Return the reason of a path, or of the innermost directory around it; None without one."""
    while path and path not in reasons:
        path = dirname(path)
    return reasons.get(path)


def kept_as(pair: Match) -> tuple[ChangedProperty, ...]:
    """Return the properties that differ in a function found again; empty if none differs."""
    said = (
        (ChangedProperty.MOVED, pair.moved),
        (ChangedProperty.RENAMED, pair.renamed),
        (ChangedProperty.SIGNATURE, pair.signature_changed),
    )
    return tuple(name for name, holds in said if holds)


def _place_after(pair: Match) -> tuple[str, int, str]:
    entry = pair.after or pair.before
    assert entry is not None, "a match has a function"
    return entry.file, entry.line, entry.function


def _status(before: FunctionEntry | None, after: FunctionEntry | None, threshold: float) -> Status | None:
    if before is None:
        return Status.NEW
    if after is None:
        return Status.GONE
    if not (before.state.known and after.state.known):
        if before.state.known == after.state.known:
            return None
        return Status.UNMEASURED if before.state.known else Status.MEASURED
    if before.crap > threshold >= after.crap:
        return Status.FIXED
    if after.crap > threshold >= before.crap:
        return Status.WORSE
    if abs(after.crap - before.crap) < TOLERANCE:
        return None
    return Status.WORSE if after.crap > before.crap else Status.BETTER
