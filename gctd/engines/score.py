"""The CRAP score, and what follows from it.

Source: A. Savoia and B. Evans, crap4j (2007): CRAP(m) = comp(m)^2 * (1 - cov(m)/100)^3 + comp(m).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from operator import attrgetter

from gctd.domain.options import CrapOptions, Missing
from gctd.engines.report import FunctionEntry, ReportSummary


def crap(cyclomatic: int, coverage: float) -> float:
    """The CRAP value of a function; `coverage` in percent. Rounded at each step as go-crap does, from left to right."""
    comp = float(cyclomatic)
    uncovered = 1 - coverage / 100.0
    return comp * comp * uncovered * uncovered * uncovered + comp


@functools.lru_cache(maxsize=4096)
def crap_of(cyclomatic: int, coverage: float | None, missing: Missing) -> float:
    """As `crap`, for a coverage that may not be known: then by `missing` as with 0 %, with 100 %, or the complexity alone."""
    if coverage is None and missing == "skip":
        return float(cyclomatic)
    return crap(cyclomatic, shown_coverage(coverage, missing))


def shown_coverage(coverage: float | None, missing: Missing) -> float:
    """The percentage that go-crap prints for a coverage that it may not have found."""
    if coverage is None:
        return 100.0 if missing == "optimistic" else 0.0
    return coverage


def coverage_needed(cyclomatic: int, threshold: float = 30.0) -> float | None:
    """The least coverage (percent) at which the CRAP value is not above `threshold`; None where no coverage is enough."""
    if cyclomatic > threshold:
        return None
    share = 1.0 - math.cbrt((threshold - cyclomatic) / (cyclomatic * cyclomatic))
    percent = min(max(share * 100.0, 0.0), 100.0)
    while crap(cyclomatic, percent) > threshold:
        percent = math.nextafter(percent, math.inf)
    return percent


def summarize(scores: Iterable[float], threshold: float) -> ReportSummary:
    """Sum, mean and count of scores, and how many are above the threshold.

    Added one by one in the order given, without compensation, as go-crap adds in the order of its walk.
    """
    combined = 0.0
    total = exceeded = 0
    for score in scores:
        combined += score
        total += 1
        exceeded += score > threshold
    return ReportSummary(average=combined / total if total else 0.0, combined=combined, exceeded=exceeded, total_funcs=total)


def worst_first(entries: Iterable[FunctionEntry]) -> tuple[FunctionEntry, ...]:
    """Entries by falling CRAP value, then by file and line, so that equal scores have a fixed order."""
    ordered = sorted(entries, key=attrgetter("file", "line", "function"))
    ordered.sort(key=attrgetter("crap"), reverse=True)  # it keeps the order of equals
    return tuple(ordered)


def shown(entries: Iterable[FunctionEntry], options: CrapOptions) -> tuple[FunctionEntry, ...]:
    """Those entries that a report shows, the worst first."""
    found = worst_first(entry for entry in entries if entry.crap >= options.least)
    return found[: options.top] if options.top else found
