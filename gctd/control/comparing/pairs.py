"""Two analyses of a project with their reports, compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import attrs

from gctd.broker.blobs import Blobs
from gctd.domain.options import threshold_of
from gctd.engines import report as report_format
from gctd.engines.changes.comparison import Comparison, compare
from gctd.engines.report import Report
from gctd.readmodel.breaks import Break, breaks
from gctd.readmodel.views import AnalysisView

T = TypeVar("T")


@attrs.frozen
class AnalysisPair:
    """An analysis with its report, and its changes since another analysis, if one is given."""

    after: AnalysisView
    report: Report
    before: AnalysisView | None = None
    changes: Comparison | None = None
    partial: bool = False
    """A report was shortened (--min, --top): new or gone functions may merely be hidden."""

    @classmethod
    def of(cls, after: AnalysisView, report: Report, older: tuple[AnalysisView, Report] | None, threshold: float) -> Self:
        """Compare an analysis with an older one, each with its report. A function is risky over `threshold`."""
        if older is None:
            return cls(after, report, partial=report.is_shortened)
        before, old = older
        changes = compare(old, report, threshold=threshold)
        return cls(after, report, before, changes, old.is_shortened or report.is_shortened)

    @property
    def breaks(self) -> Sequence[Break]:
        """The differences in the way of measuring; none without an analysis before."""
        return () if self.before is None else breaks(self.before, self.after)


async def compared(
    blobs: Blobs,
    after: AnalysisView,
    older: AnalysisView | None,
    use: Callable[[AnalysisPair], T],
    threshold: float | None = None,
) -> T:
    """Return the result of `use` for two analyses, or for one if `older` is None.

    `threshold`: the project's threshold at `after`. Raises BlobMissing, Unavailable.
    """
    digests = [one.report_digest for one in (after, older) if one is not None]
    stored = await asyncio.gather(*map(blobs.get, digests))
    # Two reports of 50,000 functions take some tenths of a second: not in the event loop.
    return await asyncio.to_thread(lambda: use(_pair(after, older, stored, threshold)))


def _pair(after: AnalysisView, older: AnalysisView | None, stored: list[bytes], threshold: float | None) -> AnalysisPair:
    report, *old = (report_format.keyed(report_format.decode(one)) for one in stored)
    limit = threshold_of(after.flags) if threshold is None else threshold
    return AnalysisPair.of(after, report, None if older is None else (older, old[0]), limit)
