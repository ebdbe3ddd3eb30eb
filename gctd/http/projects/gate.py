"""Routes of the quality gate: the verdict on an analysis, as a resource and as a comment for a pull request."""

from __future__ import annotations

from aiohttp import web

from gctd.domain.options import threshold_of
from gctd.engines.gate import CheckName, GateFacts, GateLimits, Verdict, Worse, judge
from gctd.exports.markdown import MEDIA_TYPE, says
from gctd.http import formats
from gctd.http.projects.comparisons import AnalysisPoint, BreakBody, ValuesBody, breaks
from gctd.http.projects.exports import comment
from gctd.http.projects.points import POINT, Pair, before, point, with_reports
from gctd.http.services import Services
from gctd.http.tasks.routes import PAGE
from gctd.readmodel.views import AnalysisView
from httpkit.messages.fields import member, message, path, query
from httpkit.routes import Call, Route
from httpkit.static.files import file_answer

_MOST = 1e9


@message
class Judge:
    """Names a project's analyses, which of them to judge, and by what."""

    id: str = path(pattern="^[0-9a-f]{8,64}$", max_length=64)
    from_: str | None = query(
        default=None, name="from", schema=formats.POINT, description=f"what it is compared with: {POINT}; the one before `to`"
    )
    to: str | None = query(default=None, schema=formats.POINT, description=f"what is judged: {POINT}; the latest")
    threshold: float | None = query(default=None, ge=0, le=_MOST, description="above it a function is risky; the project's own")
    max_crap: float | None = query(default=None, ge=0, le=_MOST, description="most that the value of any function may be")
    max_exceeded: int | None = query(default=None, ge=0, le=1_000_000, description="most functions over the threshold")
    max_average: float | None = query(default=None, ge=0, le=_MOST, description="most that the average may be")
    min_coverage: float | None = query(default=None, ge=0, le=100, description="least share of covered statements, per cent")
    max_uncovered: int | None = query(default=None, ge=0, le=1_000_000, description="most packages without coverage")
    max_new: int = query(default=0, ge=0, le=1_000_000, description="most new functions over the threshold")
    max_worse: int = query(default=0, ge=0, le=1_000_000, description="most functions whose value rose")
    worse: Worse = query(default="any", description="which count for `max_worse`: any, or those over the threshold now")
    new_risk: bool = query(default=True, description="whether `max_new` and `max_worse` are checked")
    limit: int = query(default=PAGE, ge=0, le=1_000_000, description="at most so many functions, the highest value first")


@message
class CheckBody:
    """One limit, and what was found."""

    name: CheckName = member()
    passed: bool | None = member(description="null: there is no analysis before to compare with")
    limit: float = member()
    value: float | None = member(description="null: not known, or nothing to compare with")
    text: str = member(description="what it looks at, in words")


@message
class OffenderBody:
    """A function for which checks failed."""

    checks: tuple[CheckName, ...] = member(description="those that failed for it")
    function: str = member(description="receiver and name")
    package: str = member()
    before: ValuesBody | None = member(description="null: it was not there, or only the analysis itself is looked at")
    after: ValuesBody = member()


@message
class GateBody:
    """What the gate says of an analysis."""

    passed: bool = member(description="no check failed")
    id: str = member(description="that of all analyses of the project")
    repo_url: str = member()
    project: str = member()
    before: AnalysisPoint | None = member(name="from", description="null where there is no analysis before `to`")
    after: AnalysisPoint = member(name="to")
    breaks: tuple[BreakBody, ...] = member(name="break", description="what of the measuring differs")
    threshold: float = member(description="above it a function is risky")
    partial: bool = member(description="a report was shortened (--min, --top): not all functions were judged")
    checks: tuple[CheckBody, ...] = member()
    offending: int = member(description="how many functions are behind the checks that failed, whatever the limit")
    functions: tuple[OffenderBody, ...] = member(description="the highest value first")


async def judge_analysis(request: Judge, call: Call[Services]) -> GateBody:
    """Whether an analysis keeps to limits, on what there is and on what was added since another one."""
    after, older, coverage = await _given(request, call)
    limits = _limits(request, after)

    def use(pair: Pair) -> GateBody:
        return _gate_body(pair, limits, judge(limits, _facts(pair, limits, coverage)), request.limit)

    return await with_reports(after, older, call, use, threshold=limits.threshold)


async def comment_on_analysis(request: Judge, call: Call[Services]) -> web.Response:
    """The verdict and what changed, as a comment for a pull request in Markdown. `limit` has no effect."""
    after, older, coverage = await _given(request, call)
    limits = _limits(request, after)

    def use(pair: Pair) -> bytes:
        return comment(pair, call.services, limits, judge(limits, _facts(pair, limits, coverage))).encode()

    body = await with_reports(after, older, call, use, threshold=limits.threshold)
    return file_answer(call.http, body, f"{MEDIA_TYPE}; charset=utf-8")


async def _given(request: Judge, call: Call[Services]) -> tuple[AnalysisView, AnalysisView | None, float | None]:
    """What is judged, what it is compared with, and its coverage where that is asked for."""
    after = await point(request.id, "to", request.to, call)
    older = await before(after, call) if request.from_ is None else await point(request.id, "from", request.from_, call)
    coverage = None
    if request.min_coverage is not None and after.profile_digest is not None:
        coverage = await call.services.coverages.of(after.profile_digest)
    return after, older, coverage


def _limits(request: Judge, after: AnalysisView) -> GateLimits:
    return GateLimits(
        threshold=threshold_of(after.flags) if request.threshold is None else request.threshold,
        max_crap=request.max_crap,
        max_exceeded=request.max_exceeded,
        max_average=request.max_average,
        min_coverage=request.min_coverage,
        max_uncovered=request.max_uncovered,
        max_new=request.max_new if request.new_risk else None,
        max_worse=request.max_worse if request.new_risk else None,
        worse=request.worse,
    )


def _facts(pair: Pair, limits: GateLimits, coverage: float | None) -> GateFacts:
    summary = pair.after.summary
    own = limits.threshold == threshold_of(pair.after.flags)
    return GateFacts(
        entries=pair.report.entries,
        # A shortened report does not have all functions; their number at the project's own threshold is known all the same.
        exceeded=summary.exceeded if own else sum(entry.crap > limits.threshold for entry in pair.report.entries),
        average=summary.average,
        coverage=coverage,
        uncovered=len(pair.after.uncovered),
        changes=pair.changes,
    )


def _gate_body(pair: Pair, limits: GateLimits, verdict: Verdict, limit: int) -> GateBody:
    after, older = pair.after, pair.before
    return GateBody(
        passed=verdict.passed,
        id=after.analysis_id,
        repo_url=after.repo_url,
        project=after.project,
        before=AnalysisPoint.of(older) if older else None,
        after=AnalysisPoint.of(after),
        breaks=breaks(older, after) if older else (),
        threshold=limits.threshold,
        partial=pair.partial,
        checks=tuple(
            CheckBody(name=one.name, passed=one.passed, limit=one.limit, value=one.value, text=says(one, limits))
            for one in verdict.checks
        ),
        offending=len(verdict.offenders),
        functions=tuple(
            OffenderBody(
                checks=one.checks,
                function=one.after.function,
                package=one.after.package,
                before=ValuesBody.of(one.before) if one.before else None,
                after=ValuesBody.of(one.after),
            )
            for one in verdict.offenders[:limit]
        ),
    )


ROUTES = (
    Route("GET", "/api/repos/{id}/gate", judge_analysis, summary="Quality gate of a project", tags=("repos",), errors=(404,)),
    Route(
        "GET",
        "/api/repos/{id}/gate.md",
        comment_on_analysis,
        summary="Quality gate as a comment",
        tags=("repos",),
        errors=(404,),
        produces=(MEDIA_TYPE,),
    ),
)
