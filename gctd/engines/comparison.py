"""Two reports on one project, function by function: what is new, fixed, worse, better and gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from posixpath import dirname

import attrs

from gctd.engines.report import FunctionEntry

TOLERANCE = 0.01
"""A CRAP value that moved by less has not changed: go-crap's own bound for a regression."""


class Status(StrEnum):
    """What became of a function. `fixed`: its value was over the threshold and is no more; `worse`, `better`: rose, fell."""

    NEW = "new"
    FIXED = "fixed"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"


@attrs.frozen(kw_only=True)
class Change:
    """What became of a function: its entries before and after, None where it is not in that report."""

    status: Status
    before: FunctionEntry | None
    after: FunctionEntry | None

    @property
    def entry(self) -> FunctionEntry:
        """The function as it is, or as it was where it is gone."""
        entry = self.after or self.before
        assert entry is not None, "a change is of a function"
        return entry

    @property
    def delta(self) -> float:
        """How much was added to the sum of all values."""
        return (self.after.crap if self.after else 0.0) - (self.before.crap if self.before else 0.0)


@attrs.frozen(kw_only=True)
class Comparison:
    """All changes, the largest first, and how many functions did not change."""

    changes: tuple[Change, ...]
    unchanged: int

    def counts(self) -> Mapping[str, int]:
        """How many functions have each status, and `unchanged`."""
        found = Counter(change.status for change in self.changes)
        return {**{status.value: found[status] for status in Status}, "unchanged": self.unchanged}


def compare(before: Sequence[FunctionEntry], after: Sequence[FunctionEntry], *, threshold: float) -> Comparison:
    """What changed from one report's functions to another's; `threshold` is the value above which one is to be fixed."""
    changes: list[Change] = []
    unchanged = 0
    for old, new in matched(before, after):
        status = _status(old, new, threshold)
        if status is None:
            unchanged += 1
        else:
            changes.append(Change(status=status, before=old, after=new))
    changes.sort(key=lambda change: (-abs(change.delta), change.entry.file, change.entry.line, change.entry.function))
    return Comparison(changes=tuple(changes), unchanged=unchanged)


Pair = tuple[FunctionEntry | None, FunctionEntry | None]


def matched(before: Iterable[FunctionEntry], after: Iterable[FunctionEntry]) -> Sequence[Pair]:
    """Which function before is which after; None where it has no counterpart.

    A function is known by file, receiver and name. One whose file was renamed in its directory is found by its package, one that
    moved elsewhere where package, receiver and name leave no doubt. Functions of one name (`init`, `_`) go by their order.
    """
    pairs: list[Pair] = []
    old, new = sorted(before, key=_place), sorted(after, key=_place)
    for key, doubtful in _KEYS:
        old, new = _matched_by(key, old, new, pairs, doubtful=doubtful)
    pairs.extend((entry, None) for entry in old)
    pairs.extend((None, entry) for entry in new)
    return pairs


_Key = Callable[[FunctionEntry], Hashable]

_IN_MANY_PLACES = frozenset({"init", "main", "_"})
"""Functions that say nothing by their name."""


def _wherever(entry: FunctionEntry) -> Hashable:
    place = entry.file if entry.name in _IN_MANY_PLACES else None
    return entry.package, entry.receiver, entry.name, place


_KEYS: tuple[tuple[_Key, bool], ...] = (
    (lambda entry: (entry.file, entry.receiver, entry.name), True),
    (lambda entry: (dirname(entry.file), entry.package, entry.receiver, entry.name), True),
    (_wherever, False),
)
"""By what functions are matched, and whether several of the same key are matched in order or not at all."""


def _matched_by(
    key: _Key, old: Sequence[FunctionEntry], new: Sequence[FunctionEntry], pairs: list[Pair], *, doubtful: bool
) -> tuple[list[FunctionEntry], list[FunctionEntry]]:
    """Add the pairs of equal keys, in order; give what is left over."""
    groups: defaultdict[Hashable, tuple[list[FunctionEntry], list[FunctionEntry]]] = defaultdict(lambda: ([], []))
    for side, entries in enumerate((old, new)):
        for entry in entries:
            groups[key(entry)][side].append(entry)
    left: tuple[list[FunctionEntry], list[FunctionEntry]] = ([], [])
    for ours, theirs in groups.values():
        common = min(len(ours), len(theirs))
        if not doubtful and len(ours) + len(theirs) > 2:
            common = 0
        pairs.extend(zip(ours[:common], theirs[:common], strict=True))
        left[0].extend(ours[common:])
        left[1].extend(theirs[common:])
    return left


def _place(entry: FunctionEntry) -> tuple[str, int, str, float]:
    return entry.file, entry.line, entry.function, entry.crap


def _status(before: FunctionEntry | None, after: FunctionEntry | None, threshold: float) -> Status | None:
    if before is None:
        return Status.NEW
    if after is None:
        return Status.GONE
    if before.crap > threshold >= after.crap:
        return Status.FIXED
    if after.crap > threshold >= before.crap:
        return Status.WORSE
    if abs(after.crap - before.crap) < TOLERANCE:
        return None
    return Status.WORSE if after.crap > before.crap else Status.BETTER
