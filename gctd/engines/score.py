"""The CRAP score and its derived values.

Source: A. Savoia and B. Evans, crap4j (2007): CRAP(m) = comp(m)^2 * (1 - cov(m)/100)^3 + comp(m).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import attrs

from gctd.domain.options import CrapOptions, Missing
from gctd.engines.report import FunctionEntry, Report, ReportSummary
from gctd.engines.state import State


def crap(cyclomatic: int, coverage: float) -> float:
    """The CRAP value of a function; `coverage` in percent. Rounded at each step as go-crap does, from left to right."""
    comp = float(cyclomatic)
    uncovered = 1 - coverage / 100.0
    return comp * comp * uncovered * uncovered * uncovered + comp


@functools.lru_cache(maxsize=4096)
def crap_of(cyclomatic: int, coverage: float | None, missing: Missing) -> float:
    """Return the score as `crap` does. `missing` replaces an unknown coverage: as 0 %, as 100 %, or the complexity alone."""
    if coverage is None and missing == "skip":
        return float(cyclomatic)
    return crap(cyclomatic, shown_coverage(coverage, missing))


def shown_coverage(coverage: float | None, missing: Missing) -> float:
    """The percentage that go-crap prints for a coverage that it may not have found."""
    if coverage is None:
        return 100.0 if missing == "optimistic" else 0.0
    return coverage


def coverage_needed(cyclomatic: int, threshold: float = 30.0) -> float | None:
    """Return the least coverage (percent) at which the CRAP value is not above `threshold`; None if no coverage is enough."""
    if cyclomatic > threshold:
        return None
    share = 1.0 - math.cbrt((threshold - cyclomatic) / (cyclomatic * cyclomatic))
    percent = min(max(share * 100.0, 0.0), 100.0)
    while crap(cyclomatic, percent) > threshold:
        percent = math.nextafter(percent, math.inf)
    return percent


def summarize(scores: Iterable[float], threshold: float) -> ReportSummary:
    """Return sum, mean and count of scores, and the number above the threshold.

    They are added one by one in the given order, without compensation, as go-crap adds in the order of its walk.
    """
    combined = 0.0
    total = exceeded = 0
    for score in scores:
        combined += score
        total += 1
        exceeded += score > threshold
    return ReportSummary(average=combined / total if total else 0.0, combined=combined, exceeded=exceeded, total_funcs=total)


def measured_summary(entries: Iterable[FunctionEntry], threshold: float) -> ReportSummary:
    """The summary of the functions whose coverage is known."""
    return summarize((entry.crap for entry in entries if entry.state.known), threshold)


def states_of(entries: Sequence[FunctionEntry], excluded: int) -> Mapping[str, int]:
    """Return the number of functions in each state. `excluded` is the number of functions that a rule leaves out."""
    counted = Counter(entry.state for entry in entries)
    counted[State.EXCLUDED] += excluded
    return {state.value: counted[state] for state in State if counted[state]}


def worst_first(entries: Iterable[FunctionEntry]) -> tuple[FunctionEntry, ...]:
    """Entries by falling CRAP value, then by file and line, so that equal scores have a fixed order.

    Functions that were not measured come after all others: their value is not known to be bad.
    """
    ordered = sorted(entries, key=attrgetter("file", "line", "function"))
    ordered.sort(key=lambda entry: (entry.state.known, entry.crap), reverse=True)  # it keeps the order of equals
    return tuple(ordered)


def shown(entries: Iterable[FunctionEntry], options: CrapOptions) -> tuple[FunctionEntry, ...]:
    """Return the entries that a report shows, the worst first."""
    found = worst_first(entry for entry in entries if entry.crap >= options.least)
    return found[: options.top] if options.top else found


def shortened(report: Report, options: CrapOptions) -> Report:
    """Return a report of all functions with the shown ones only. Its counts stay the counts of all functions."""
    return attrs.evolve(report, entries=shown(report.entries, options))
