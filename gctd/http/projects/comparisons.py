"""What the API answers with where analyses of one project are set beside each other."""

from __future__ import annotations

from typing import Any, Self

from gctd.domain.analysis import Summary
from gctd.domain.options import threshold_of
from gctd.engines.comparison import Change, Status
from gctd.engines.report import FunctionEntry
from gctd.http.projects.points import Pair
from gctd.readmodel.views import AnalysisView
from httpkit.messages.fields import member, message


@message
class BreakBody:
    """A part of the measuring that differs, so that a difference of the numbers need not be the code's."""

    what: str = member(description="go_version, engine, engine_version, flags or sandbox")
    before: str = member()
    after: str = member()


def breaks(before: AnalysisView, after: AnalysisView) -> tuple[BreakBody, ...]:
    """What of the measuring differs between two analyses. A sandbox that is not known is taken for the same."""
    sides = [
        {
            "go_version": one.go_version,
            "engine": one.engine,
            "engine_version": one.engine_version,
            "flags": " ".join(one.flags),
            "sandbox": one.sandbox,
        }
        for one in (before, after)
    ]
    old, new = sides
    if not (before.sandbox and after.sandbox):
        new["sandbox"] = old["sandbox"]
    return tuple(BreakBody(what=what, before=old[what], after=new[what]) for what in old if old[what] != new[what])


@message
class AnalysisPoint:
    """One analysis of a project in its history: the figures, and what made them."""

    task_id: str = member()
    commit_sha: str = member()
    ref: str = member()
    summary: Summary = member()
    engine: str = member()
    engine_version: str = member()
    crap_version: str = member()
    go_version: str = member()
    flags: tuple[str, ...] = member(description="flags of the test run")
    sandbox: str = member(description="what confined the tests; empty where that is not known")
    rescored_from: str | None = member(description="the task that ran the tests, where they were not run for this analysis")
    analyzed_at: str = member(description="RFC 3339, UTC")
    duration_ms: int = member()

    @classmethod
    def of(cls, analysis: AnalysisView, **more: Any) -> Self:
        """The point of a row."""
        return cls(
            task_id=analysis.task_id,
            commit_sha=analysis.commit_sha,
            ref=analysis.ref,
            summary=analysis.summary,
            engine=analysis.engine,
            engine_version=analysis.engine_version,
            crap_version=analysis.crap_version,
            go_version=analysis.go_version,
            flags=analysis.flags,
            sandbox=analysis.sandbox,
            rescored_from=analysis.rescored_from,
            analyzed_at=analysis.analyzed_at,
            duration_ms=analysis.duration_ms,
            **more,
        )


@message
class HistoryBody(AnalysisPoint):
    """An analysis in the history of its project."""

    breaks: tuple[BreakBody, ...] = member(name="break", description="what of the measuring differs from the analysis before it")

    @classmethod
    def after(cls, analysis: AnalysisView, before: AnalysisView | None) -> HistoryBody:
        """The analysis of a row, with the one before it where there is one."""
        return cls.of(analysis, breaks=breaks(before, analysis) if before else ())


@message
class ValuesBody:
    """Where a function stands and what was measured of it; `coverage` in per cent, null where it is not known."""

    file: str = member()
    line: int = member()
    crap: float = member()
    cyclomatic: int = member()
    coverage: float | None = member()

    @classmethod
    def of(cls, entry: FunctionEntry) -> ValuesBody:
        """Those of an entry."""
        return cls(file=entry.file, line=entry.line, crap=entry.crap, cyclomatic=entry.cyclomatic, coverage=entry.coverage)


@message
class ChangeBody:
    """What became of a function."""

    status: Status = member(description="fixed: was over the threshold and is no more; worse, better: the value rose, fell")
    function: str = member(description="receiver and name")
    package: str = member()
    file: str = member(description="where it is, or was")
    line: int = member()
    delta: float = member(description="what it added to the sum of all values")
    before: ValuesBody | None = member()
    after: ValuesBody | None = member()

    @classmethod
    def of(cls, change: Change) -> ChangeBody:
        """A change."""
        entry = change.entry
        return cls(
            status=change.status,
            function=entry.function,
            package=entry.package,
            file=entry.file,
            line=entry.line,
            delta=change.delta,
            before=ValuesBody.of(change.before) if change.before else None,
            after=ValuesBody.of(change.after) if change.after else None,
        )


@message
class CountsBody:
    """How many functions have each status."""

    new: int = member()
    fixed: int = member()
    worse: int = member()
    better: int = member()
    gone: int = member()
    unchanged: int = member()


@message
class DiffBody:
    """What changed from one analysis of a project to another."""

    id: str = member(description="that of all analyses of the project")
    repo_url: str = member()
    project: str = member()
    before: AnalysisPoint = member(name="from")
    after: AnalysisPoint = member(name="to")
    breaks: tuple[BreakBody, ...] = member(name="break", description="what of the measuring differs")
    threshold: float = member(description="the value above which a function is to be fixed: that of `to`")
    partial: bool = member(description="a report was shortened (--min, --top): what is new or gone may only be not shown")
    counts: CountsBody = member(description="of all functions, whatever the limit")
    functions: tuple[ChangeBody, ...] = member(description="those that changed, the largest change first")

    @classmethod
    def of(cls, pair: Pair, *, limit: int) -> DiffBody:
        """What became of all functions; at most `limit` of them one by one."""
        before, after, changes = pair.before, pair.after, pair.changes
        assert before is not None, "a difference is of two analyses"
        assert changes is not None, "two analyses were compared"
        return cls(
            id=after.analysis_id,
            repo_url=after.repo_url,
            project=after.project,
            before=AnalysisPoint.of(before),
            after=AnalysisPoint.of(after),
            breaks=breaks(before, after),
            threshold=threshold_of(after.flags),
            partial=pair.partial,
            counts=CountsBody(**changes.counts()),
            functions=tuple(map(ChangeBody.of, changes.changes[:limit])),
        )
