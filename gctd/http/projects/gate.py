"""Routes of the quality gate: the verdict on an analysis, as a resource and as a comment for a pull request."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from gctd.control.comparing.baselines import Baseline
from gctd.control.comparing.comments import comment_on
from gctd.control.comparing.judging import AnalysisJudgement
from gctd.control.comparing.pairs import AnalysisPair, compared
from gctd.domain.errors import BadInput
from gctd.domain.options import threshold_of
from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import Change, Exclusion
from gctd.engines.changes.gate import CheckName, Offender, Unmeasured, Worse
from gctd.exports.markdown import MEDIA_TYPE, says
from gctd.http import formats
from gctd.http.bodies import body_of
from gctd.http.projects.comparisons import AnalysisPoint, BreakBody, ValuesBody
from gctd.http.projects.points import BASE, POINT, TIME_LIMIT, point, read_with_base
from gctd.http.services import Services
from gctd.http.tasks.routes import PAGE
from gctd.readmodel.views import AnalysisView
from httpkit import Answer, Call, Route, file_answer, member, message, path, query

_MOST = 1e9
_FROM = f"what it is compared with: {POINT}, of another commit; such a verdict is not kept"
_USUAL = f"{BASE}; the last commit that was analysed before on the same ref"
_TO = f"what is judged: {POINT}; the latest"
_THRESHOLD = "above it a function is risky; the project's own"
_WORSE = "functions that count for `max_worse`: the ones that are risky now, or any"
_EXCLUDED = "most functions that leave the measured set; any number"
_MEASURED = "whether functions whose coverage is not known fail the gate"


@message
class Judge:
    """Names a project's analyses, which of them to judge, and by what."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    from_: str | None = query(default=None, name="from", schema=formats.REF, description=_FROM)
    base: str | None = query(default=None, schema=formats.REF, min_length=1, description=_USUAL)
    to: str | None = query(default=None, schema=formats.REF, description=_TO)
    threshold: float | None = query(default=None, ge=0, le=_MOST, description=_THRESHOLD)
    max_crap: float | None = query(default=None, ge=0, le=_MOST, description="most that the value of any function may be")
    max_exceeded: int | None = query(default=None, ge=0, le=1_000_000, description="most risky functions")
    max_average: float | None = query(default=None, ge=0, le=_MOST, description="most that the average may be")
    min_coverage: float | None = query(default=None, ge=0, le=100, description="least share of covered statements, per cent")
    max_uncovered: int | None = query(default=None, ge=0, le=1_000_000, description="most packages without coverage")
    max_new: int = query(default=0, ge=0, le=1_000_000, description="most new risky functions")
    max_worse: int = query(default=0, ge=0, le=1_000_000, description="most functions whose value rose")
    worse: Worse = query(default="risky", description=_WORSE)
    max_excluded: int | None = query(default=None, ge=0, le=1_000_000, description=_EXCLUDED)
    new_risk: bool = query(default=True, description="whether `max_new` and `max_worse` are checked")
    require_measured: bool = query(default=False, description=_MEASURED)
    limit: int = query(default=PAGE, ge=0, le=1_000_000, description="limit of the functions, the highest value first")


@message
class AskForVerdict:
    """Names a project's analyses, which of them to judge, and by what; the verdict is kept."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    base: str | None = member(default=None, schema=formats.REF, min_length=1, description=_USUAL)
    to: str | None = member(default=None, schema=formats.REF, description=_TO)
    threshold: float | None = member(default=None, ge=0, le=_MOST, description=_THRESHOLD)
    max_crap: float | None = member(default=None, ge=0, le=_MOST, description="most that the value of any function may be")
    max_exceeded: int | None = member(default=None, ge=0, le=1_000_000, description="most risky functions", example=5)
    max_average: float | None = member(default=None, ge=0, le=_MOST, description="most that the average may be")
    min_coverage: float | None = member(default=None, ge=0, le=100, description="least share of covered statements, per cent")
    max_uncovered: int | None = member(default=None, ge=0, le=1_000_000, description="most packages without coverage")
    max_new: int = member(default=0, ge=0, le=1_000_000, description="most new risky functions")
    max_worse: int = member(default=0, ge=0, le=1_000_000, description="most functions whose value rose")
    worse: Worse = member(default="risky", description=_WORSE)
    max_excluded: int | None = member(default=None, ge=0, le=1_000_000, description=_EXCLUDED)
    new_risk: bool = member(default=True, description="whether `max_new` and `max_worse` are checked")
    require_measured: bool = member(default=False, description=_MEASURED)
    limit: int = query(default=PAGE, ge=0, le=1_000_000, description="limit of the functions, the highest value first")


@message
class CheckBody:
    """One limit and the value found."""

    name: CheckName = member()
    passed: bool | None = member(description="null if unknown")
    limit: float = member()
    value: float | None = member(description="null if no value exists")
    text: str = member(description="its subject, in words")


@message
class OffenderBody:
    """A function for which checks failed, or whose value rose."""

    checks: tuple[CheckName, ...] = member(description="checks that failed for it")
    function: str = member(description="receiver and name")
    package: str = member()
    before: ValuesBody | None = member(description="null for a new function, or without a comparison")
    after: ValuesBody = member()

    @classmethod
    def of(cls, one: Offender) -> OffenderBody:
        """Return the body of a function."""
        return cls(
            checks=one.checks,
            function=one.after.function,
            package=one.after.package,
            before=body_of(ValuesBody, one.before) if one.before else None,
            after=body_of(ValuesBody, one.after),
        )


@message
class ComparedBody:
    """A function at the base and now."""

    function: str = member(description="receiver and name")
    package: str = member()
    before: ValuesBody = member(description="the values at the base")
    after: ValuesBody = member(description="the values now")

    @classmethod
    def of(cls, change: Change) -> ComparedBody:
        """Return the body of a change."""
        assert change.before is not None, "it was measured before"
        assert change.after is not None, "it is still there"
        return cls(
            function=change.entry.function,
            package=change.entry.package,
            before=body_of(ValuesBody, change.before),
            after=body_of(ValuesBody, change.after),
        )


@message
class UnmeasuredBody:
    """A function whose coverage is not known, here or at the base."""

    checks: tuple[CheckName, ...] = member(description="checks that are unknown because of it")
    function: str = member(description="receiver and name")
    package: str = member()
    before: ValuesBody | None = member(description="null for a new function, or without a comparison")
    after: ValuesBody = member()
    reason: str = member(description="state of the measurement, and its cause")

    @classmethod
    def of(cls, one: Unmeasured) -> UnmeasuredBody:
        """Return the body of a function."""
        return cls(
            checks=one.checks,
            function=one.after.function,
            package=one.after.package,
            before=body_of(ValuesBody, one.before) if one.before else None,
            after=body_of(ValuesBody, one.after),
            reason=one.reason,
        )


@message
class ExcludedBody:
    """A function that the change takes out of the measured set: a comment, the header of a generated file, a build constraint."""

    function: str = member(description="receiver and name")
    package: str = member()
    file: str = member()
    line: int = member()
    before: ValuesBody | None = member(description="null for a new function")
    reason: str = member(description="what takes it out")

    @classmethod
    def of(cls, one: Exclusion) -> ExcludedBody:
        """Return the body of a function."""
        before, entry = one.before, one.entry
        return cls(
            function=entry.function,
            package=entry.package,
            file=entry.file,
            line=entry.line,
            before=body_of(ValuesBody, before) if before is not None else None,
            reason=one.reason,
        )


@message
class BaseBody:
    """Base of the comparison."""

    kind: str = member(description="merge base, first parent, commit, tag, previous commit of the ref; empty: none, or named")
    commit_sha: str = member(description="empty without a base")
    task_id: str | None = member(description="the task that analyses it, or failed to; null if it has been analysed")


@message
class GateBody:
    """The gate's judgement of an analysis."""

    result: Result = member(description="unknown: a fact that the gate needs is missing, see `reason`")
    passed: bool = member(description="whether the result is `passed`")
    reason: str = member(description="why the result is unknown; else empty")
    verdict: str | None = member(description="id of the stored verdict; null if it is not stored")
    id: str = member(description="id of all analyses of the project")
    repo_url: str = member()
    project: str = member()
    base: BaseBody = member()
    before: AnalysisPoint | None = member(name="from", description="null without a comparison")
    after: AnalysisPoint = member(name="to")
    breaks: tuple[BreakBody, ...] = member(name="break", description="differences in the way of measuring")
    threshold: float = member(description="above it a function is risky")
    partial: bool = member(description="a report was shortened (--min, --top): not all functions were judged")
    checks: tuple[CheckBody, ...] = member()
    offending: int = member(description="how many functions are behind the checks that failed, whatever the limit")
    functions: tuple[OffenderBody, ...] = member(description="the highest value first")
    no_longer_risky: int = member(description="how many functions were risky at the base and are not now, whatever the limit")
    fixed: tuple[ComparedBody, ...] = member(description="those functions, the largest change first")
    rising: int = member(description="how many other functions have a higher value than at the base, whatever the limit")
    worsened: tuple[OffenderBody, ...] = member(description="those functions; no check fails for them")
    lacking: int = member(description="how many new, changed or no longer measured functions have no known coverage")
    unmeasured: tuple[UnmeasuredBody, ...] = member(description="those functions, the ones that leave a check unknown first")
    leaving: int = member(description="how many functions leave the measured set, whatever the limit")
    excluded: tuple[ExcludedBody, ...] = member(description="those functions; only `max_excluded` fails for them")


async def judge_analysis(request: Judge, call: Call[Services]) -> Answer[GateBody]:
    """Judge an analysis by limits for all its functions and for its changes. A stored verdict is returned, if one exists."""
    judged, sequence = await _looked(request, call)
    return Answer(_body(judged, request.limit), sequence=sequence)


async def ask_for_verdict(request: AskForVerdict, call: Call[Services]) -> Answer[GateBody]:
    """The verdict on a commit, kept from now on: the same question has the same answer.

    A base that was not analysed in the same way is analysed now; until then the result is unknown.
    """
    after = await point(request.id, "to", request.to, call)
    judged = await call.services.judging.ask(after, request.base or "", _rules(request, after), call.context)
    return Answer(_body(judged, request.limit), sequence=judged.sequence or None)


async def comment_on_analysis(request: Judge, call: Call[Services]) -> web.Response:
    """Return the verdict and the changes, as a comment for a pull request in Markdown. `limit` has no effect."""
    judged, _ = await _looked(request, call)

    def use(pair: AnalysisPair) -> bytes:
        return comment_on(pair, call.services.links, call.services.dashboard, judged, request.base or "").encode()

    body = await compared(call.services.blobs, judged.after, judged.baseline.analysis, use, judged.rules.threshold)
    return file_answer(call.http, body, f"{MEDIA_TYPE}; charset=utf-8")


async def _looked(request: Judge, call: Call[Services]) -> tuple[AnalysisJudgement, int]:
    if request.base is not None and request.from_ is not None:
        raise BadInput("base", "only one of from and base can be given")

    async def read(chosen: Mapping[str, Baseline]) -> tuple[AnalysisView, AnalysisJudgement | None]:
        after = await point(request.id, "to", request.to, call)
        rules, judging = _rules(request, after), call.services.judging
        if request.from_ is None:
            return after, await judging.read(after, request.base or "", rules, chosen.get(after.commit_sha))
        older = await point(request.id, "from", request.from_, call)
        if older.commit_sha == after.commit_sha:
            raise BadInput("from", "it is of the commit that is judged: nothing can be new or worse in it")
        return after, await judging.against(after, older, rules)

    return await read_with_base(read, request.base, call)


def _rules(request: Judge | AskForVerdict, after: AnalysisView) -> Rules:
    return Rules(
        threshold=threshold_of(after.flags) if request.threshold is None else request.threshold,
        max_crap=request.max_crap,
        max_exceeded=request.max_exceeded,
        max_average=request.max_average,
        min_coverage=request.min_coverage,
        max_uncovered=request.max_uncovered,
        max_new=request.max_new if request.new_risk else None,
        max_worse=request.max_worse if request.new_risk else None,
        worse=request.worse,
        max_excluded=request.max_excluded,
        require_measured=request.require_measured,
    )


def _body(judged: AnalysisJudgement, limit: int) -> GateBody:
    after, older, verdict = judged.after, judged.baseline.analysis, judged.verdict
    return GateBody(
        result=judged.result,
        passed=judged.result is Result.PASSED,
        reason=judged.reason,
        verdict=judged.id,
        id=after.analysis_id,
        repo_url=after.repo_url,
        project=after.project,
        base=BaseBody(
            kind=judged.baseline.kind.value,
            commit_sha=judged.baseline.commit,
            task_id=judged.base_task.id if judged.base_task else None,
        ),
        before=AnalysisPoint.of(older) if older else None,
        after=AnalysisPoint.of(after),
        breaks=BreakBody.between(older, after) if older else (),
        threshold=judged.rules.threshold,
        partial=judged.partial,
        checks=tuple(
            CheckBody(name=one.name, passed=one.passed, limit=one.limit, value=one.value, text=says(one, judged.rules))
            for one in verdict.checks
        ),
        offending=len(verdict.offenders),
        functions=tuple(map(OffenderBody.of, verdict.offenders[:limit])),
        rising=len(verdict.worsened),
        worsened=tuple(map(OffenderBody.of, verdict.worsened[:limit])),
        lacking=len(verdict.unmeasured),
        unmeasured=tuple(map(UnmeasuredBody.of, verdict.unmeasured[:limit])),
        leaving=len(verdict.excluded),
        excluded=tuple(map(ExcludedBody.of, verdict.excluded[:limit])),
        no_longer_risky=len(verdict.fixed),
        fixed=tuple(map(ComparedBody.of, verdict.fixed[:limit])),
    )


ROUTES = (
    Route(
        "GET",
        "/api/repos/{id}/gate",
        judge_analysis,
        summary="Quality gate of a project",
        tags=("repos",),
        errors=(404,),
        time_limit=TIME_LIMIT,
    ),
    Route(
        "POST",
        "/api/repos/{id}/gate",
        ask_for_verdict,
        summary="Ask for a verdict",
        tags=("repos",),
        errors=(404, 409),
        time_limit=TIME_LIMIT,
    ),
    Route(
        "GET",
        "/api/repos/{id}/gate.md",
        comment_on_analysis,
        summary="Quality gate as a comment",
        tags=("repos",),
        errors=(404,),
        produces=(MEDIA_TYPE,),
        time_limit=TIME_LIMIT,
    ),
)
