"""The changes between two analyses of a project, from their stored reports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs

from gctd.domain.options import threshold_of
from gctd.engines import report as report_format
from gctd.engines.changes.comparison import Change, compare
from gctd.readmodel.breaks import Break, breaks
from gctd.readmodel.reports import Reports
from gctd.readmodel.views import AnalysisView
from graphql_fn.core.errors import PublicError


@attrs.frozen
class Differences:
    """The changed functions, the largest change first, and the number of functions without a change.

    `partial`: a report was shortened (--min, --top), so new or gone functions may merely be hidden.
    """

    older: AnalysisView
    newer: AnalysisView
    changes: Sequence[Change]
    unchanged: int
    partial: bool

    @property
    def breaks(self) -> Sequence[Break]:
        """The differences in the way of measuring."""
        return breaks(self.older, self.newer)


async def diff(reports: Reports, older: AnalysisView, newer: AnalysisView, threshold: float | None) -> Differences:
    """Compare two analyses. `threshold`: None for the project's. Raises PublicError, ReportMissing, StoreUnavailable."""
    if older.analysis_id != newer.analysis_id:
        raise PublicError("the two analyses are of different projects")
    stored = await asyncio.gather(reports.body(older.report_digest), reports.body(newer.report_digest))
    limit = threshold_of(newer.flags) if threshold is None else threshold

    def compared() -> Differences:
        before, after = map(report_format.decode, stored)
        found = compare(before, after, threshold=limit)
        return Differences(older, newer, found.changes, found.unchanged, before.is_shortened or after.is_shortened)

    return await asyncio.to_thread(compared)  # two reports of 50,000 functions take some tenths of a second
