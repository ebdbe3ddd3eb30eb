"""Analyses of a project as requests name them, and two of them with their reports."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TypeVar

import attrs

from gctd.domain.errors import BadInput, NotFound
from gctd.domain.options import threshold_of
from gctd.engines import report as report_format
from gctd.engines.comparison import Comparison, compare
from gctd.engines.report import Report
from gctd.http.services import Services
from gctd.readmodel.views import AnalysisView
from httpkit.routes import Call

T = TypeVar("T")

POINT = "a task, or a commit by at least 7 of its hex digits"

_TASK = re.compile(r"task-[0-9]{1,30}")
_COMMIT = re.compile(r"[0-9A-Fa-f]{7,64}")


async def point(analysis_id: str, field: str, text: str | None, call: Call[Services]) -> AnalysisView:
    """The analysis that a task or a commit led to, the latest where neither is named. Raises BadInput, NotFound."""
    queries = call.services.queries
    if text is None:
        latest = await queries.analysis(analysis_id)
        if latest is None:
            raise NotFound(f"there is no analysis {analysis_id}")
        return latest
    if _TASK.fullmatch(text):
        analysis = await queries.analysis_of_task(text)
        if analysis is None or analysis.analysis_id != analysis_id:
            raise NotFound(f"{field}: no analysis of this project comes from {text}")
        return analysis
    if not _COMMIT.fullmatch(text):
        raise BadInput(field, f"must be {POINT}")
    found = await queries.analyses_of_commit(analysis_id, text.lower(), limit=2)
    if not found:
        raise NotFound(f"{field}: no analysis of this project is of a commit {text}")
    if len(found) > 1:
        raise BadInput(field, f"several commits begin with {text}: give more digits")
    return found[0]


async def before(after: AnalysisView, call: Call[Services]) -> AnalysisView | None:
    """The analysis of the project before another one, None where that is the first."""
    found = await call.services.queries.history(after.analysis_id, before=(after.measured, after.sequence), limit=1)
    return found[0] if found else None


@attrs.frozen
class Pair:
    """An analysis with its report, and what changed since the one before it, where there is one."""

    after: AnalysisView
    report: Report
    before: AnalysisView | None = None
    changes: Comparison | None = None
    partial: bool = False
    """A report was shortened (--min, --top): what is new or gone may only be not shown."""


async def with_reports(
    after: AnalysisView,
    older: AnalysisView | None,
    call: Call[Services],
    use: Callable[[Pair], T],
    threshold: float | None = None,
) -> T:
    """What `use` makes of two analyses, or of one where there is no `older`. `threshold`: that of the project at `after`."""
    blobs = call.services.blobs
    digests = [one.report_digest for one in (after, older) if one is not None]
    stored = await asyncio.gather(*map(blobs.get, digests))
    # Two reports of 50,000 functions take some tenths of a second: not in the event loop.
    return await asyncio.to_thread(lambda: use(_pair(after, older, stored, threshold)))


def _pair(after: AnalysisView, older: AnalysisView | None, stored: list[bytes], threshold: float | None) -> Pair:
    report = report_format.decode(stored[0])
    if older is None:
        return Pair(after, report, partial=_is_partial(report))
    old = report_format.decode(stored[1])
    limit = threshold_of(after.flags) if threshold is None else threshold
    changes = compare(old.entries, report.entries, threshold=limit)
    return Pair(after, report, older, changes, _is_partial(old) or _is_partial(report))


def _is_partial(report: Report) -> bool:
    return len(report.entries) < report.summary.total_funcs
