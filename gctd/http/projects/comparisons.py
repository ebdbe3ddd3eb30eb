"""Bodies of the API's answers that compare analyses of one project."""

from __future__ import annotations

from typing import Any, Self

from gctd.control.comparing.pairs import AnalysisPair
from gctd.domain.analysis import Summary
from gctd.domain.options import threshold_of
from gctd.engines.changes.comparison import Change, ChangedProperty, Status, kept_as
from gctd.engines.changes.matching import Match
from gctd.engines.state import State
from gctd.http.bodies import body_of
from gctd.readmodel.breaks import breaks
from gctd.readmodel.views import AnalysisView
from httpkit import member, message

_KEY = "names the function in this analysis, as in `/api/repos/{id}/functions/{key}`"


@message
class BreakBody:
    """A part of the measuring that differs, so that a difference of the numbers need not be the code's."""

    what: str = member(description="go_version, engine, engine_version, flags, platform or sandbox")
    before: str = member()
    after: str = member()

    @classmethod
    def between(cls, before: AnalysisView, after: AnalysisView) -> tuple[Self, ...]:
        """Return the differences in the way of measuring between two analyses."""
        return tuple(body_of(cls, one) for one in breaks(before, after))


@message
class AnalysisPoint:
    """One analysis of a project in its history: the figures, and their origin."""

    task_id: str = member()
    commit_sha: str = member()
    ref: str = member()
    summary: Summary = member(description="of all functions")
    measured: Summary = member(description="of the functions with known coverage")
    states: dict[str, int] = member(description="number of functions by state")
    engine: str = member()
    engine_version: str = member()
    crap_version: str = member()
    go_version: str = member()
    flags: tuple[str, ...] = member(description="flags of the test run")
    sandbox: str = member(description="confinement of the tests; empty if unknown")
    rescored_from: str | None = member(description="the task that ran the tests, if they were not run for this analysis")
    analyzed_at: str = member(description="RFC 3339, UTC")
    duration_ms: int = member()

    @classmethod
    def of(cls, analysis: AnalysisView, **more: Any) -> Self:
        """The point of a row."""
        return body_of(
            cls,
            analysis,
            measured=analysis.known,
            **more,
        )


@message
class HistoryBody(AnalysisPoint):
    """An analysis in the history of its project."""

    breaks: tuple[BreakBody, ...] = member(name="break", description="differences in measuring from the analysis before it")

    @classmethod
    def after(cls, analysis: AnalysisView, before: AnalysisView | None) -> HistoryBody:
        """Return the analysis of a row, compared with the analysis before it, if one exists."""
        return cls.of(analysis, breaks=BreakBody.between(before, analysis) if before else ())


@message
class ValuesBody:
    """The place of a function and its measured values. `coverage` is in per cent, null if unknown."""

    key: str = member(description=_KEY)
    file: str = member()
    line: int = member()
    crap: float = member()
    cyclomatic: int = member()
    coverage: float | None = member()
    state: State = member(description="state of the measurement")
    reason: str = member(description="cause of the state; empty if it is measured")


@message
class ChangeBody:
    """Change of a function."""

    status: Status = member(
        description="fixed: it was over the threshold, and is not any more. worse, better: the value rose, fell."
        " unmeasured, measured: its coverage is no longer known, or is known now"
    )
    function: str = member(description="receiver and name")
    package: str = member()
    file: str = member(description="where it is, or was")
    line: int = member()
    delta: float = member(description="its change of the sum of all values")
    before: ValuesBody | None = member()
    after: ValuesBody | None = member()
    kept: tuple[ChangedProperty, ...] = member(description="properties that differ in a function found again")
    similarity: float | None = member(description="the share of equal content, if the function was found by it")
    body_changed: bool = member(description="false: parameters, results and body are the same")

    @classmethod
    def of(cls, change: Change) -> ChangeBody:
        """A change."""
        entry = change.entry
        return body_of(
            cls,
            change,
            function=entry.function,
            package=entry.package,
            file=entry.file,
            line=entry.line,
            before=body_of(ValuesBody, change.before) if change.before else None,
            after=body_of(ValuesBody, change.after) if change.after else None,
        )


@message
class PlaceBody:
    """The place and the name of a function."""

    key: str = member(description=_KEY)
    file: str = member()
    line: int = member()
    function: str = member(description="receiver and name")


@message
class KeptBody:
    """A function that moved, has another name or another signature."""

    kept: tuple[ChangedProperty, ...] = member()
    before: PlaceBody = member(name="from")
    after: PlaceBody = member(name="to")
    similarity: float | None = member(description="the share of equal content; null if the match is certain")

    @classmethod
    def of(cls, pair: Match) -> KeptBody:
        """Return the body of a pair."""
        assert pair.before is not None, "only a function of both reports is kept"
        assert pair.after is not None, "only a function of both reports is kept"
        return cls(
            kept=kept_as(pair),
            before=body_of(PlaceBody, pair.before),
            after=body_of(PlaceBody, pair.after),
            similarity=pair.similarity,
        )


@message
class CountsBody:
    """Number of functions with each status."""

    new: int = member()
    fixed: int = member()
    worse: int = member()
    better: int = member()
    gone: int = member()
    unmeasured: int = member()
    measured: int = member()
    unchanged: int = member()


@message
class DiffBody:
    """The changes from one analysis of a project to another."""

    id: str = member(description="id of all analyses of the project")
    repo_url: str = member()
    project: str = member()
    before: AnalysisPoint = member(name="from")
    after: AnalysisPoint = member(name="to")
    breaks: tuple[BreakBody, ...] = member(name="break", description="differences in the way of measuring")
    threshold: float = member(description="the value above which a function needs a fix, from `to`")
    partial: bool = member(description="a report was shortened (--min, --top): new or gone functions may merely be hidden")
    counts: CountsBody = member(description="of all functions, whatever the limit")
    functions: tuple[ChangeBody, ...] = member(description="changed functions, the largest change first")
    kept: tuple[KeptBody, ...] = member(description="moved and renamed functions, and functions with another signature, by place")

    @classmethod
    def of(cls, pair: AnalysisPair, *, limit: int) -> DiffBody:
        """Return the changes of all functions as counts, and at most `limit` of them one by one."""
        before, after, changes = pair.before, pair.after, pair.changes
        assert before is not None, "a difference is of two analyses"
        assert changes is not None, "two analyses were compared"
        return cls(
            id=after.analysis_id,
            repo_url=after.repo_url,
            project=after.project,
            before=AnalysisPoint.of(before),
            after=AnalysisPoint.of(after),
            breaks=BreakBody.between(before, after),
            threshold=threshold_of(after.flags),
            partial=pair.partial,
            counts=CountsBody(**changes.counts()),
            functions=tuple(map(ChangeBody.of, changes.changes[:limit])),
            kept=tuple(map(KeptBody.of, changes.kept[:limit])),
        )
