"""The aggregate of a verdict: the gate's judgement of a commit by rules, against a base that is chosen once.

Its id follows from project, commit, base as given in the request, and rules. So each repetition of a request has the same answer,
independent of later analyses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

import attrs

from eventlog import Decider
from gctd.domain.errors import NotFound
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.verdict"
ALGORITHM = 1
"""Version of matching and judging. Another version may reach another verdict on the same analyses."""


class Result(StrEnum):
    """Result of the gate. `unknown`: a fact that the gate needs is missing."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class Rules:
    """Limits for an analysis; None: the check is off.

    `threshold` is the value above which a function is risky. `max_crap` bounds the value of every function, `max_exceeded` the
    number of risky ones, `max_average` the mean of all values, `min_coverage` the covered statements (per cent), `max_uncovered`
    the packages without coverage. `max_new`: new risky functions. `max_worse`: functions whose value rose; `worse` selects only
    the ones that are risky now, or any of them. `max_excluded`: functions that the change takes out of the measured set.
    `require_measured`: the coverage of every function must be known.
    """

    threshold: float
    max_crap: float | None = None
    max_exceeded: int | None = None
    max_average: float | None = None
    min_coverage: float | None = None
    max_uncovered: int | None = None
    max_new: int | None = 0
    max_worse: int | None = 0
    worse: str = "risky"
    max_excluded: int | None = None
    require_measured: bool = False

    @property
    def compares(self) -> bool:
        """Whether a base is needed."""
        return any(limit is not None for limit in (self.max_new, self.max_worse, self.max_excluded))


@attrs.frozen(kw_only=True)
class Finding:
    """One check of a verdict: its name, whether it passed (None: unknown), the limit, and the value found."""

    name: str
    passed: bool | None
    limit: float
    value: float | None


def verdict_id(analysis_id: str, commit_sha: str, base: str, rules: Rules) -> str:
    """Return the id of a verdict: 32 hex digits. `base` is the base in the request, empty for the usual one."""
    question = (ALGORITHM, analysis_id, commit_sha, base, sorted(attrs.asdict(rules).items()))
    return sha256(repr(question).encode()).hexdigest()[:32]


# Events


@REGISTRY.event("VerdictAsked")
@attrs.frozen(kw_only=True)
class VerdictAsked:
    """A verdict on a commit against this base is requested. `base` is the name in the request, `base_commit` its commit.

    `head_task` made the judged analysis. `kind`: the way of choosing the base. Both base fields are empty if no rule compares.
    """

    id: str
    repo_id: str
    analysis_id: str
    head_task: str
    commit_sha: str
    base: str
    kind: str
    base_commit: str
    rules: Rules
    at: datetime


@REGISTRY.event("VerdictGiven")
@attrs.frozen(kw_only=True)
class VerdictGiven:
    """The result of the gate, and the task whose analysis was the base (empty if no rule compares)."""

    result: Result
    base_task: str
    checks: tuple[Finding, ...]
    at: datetime


@REGISTRY.event("VerdictDropped")
@attrs.frozen(kw_only=True)
class VerdictDropped:
    """The repository of the verdict was removed: the verdict is not in the tables any more, and can be requested again."""

    at: datetime


VerdictEvent = VerdictAsked | VerdictGiven | VerdictDropped


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Verdict:
    """A verdict; `result` is `unknown` until it is given. `dropped`: its repository was removed."""

    id: str
    repo_id: str
    analysis_id: str
    head_task: str
    commit_sha: str
    base: str
    kind: str
    base_commit: str
    rules: Rules
    asked_at: datetime
    result: Result = Result.UNKNOWN
    base_task: str = ""
    checks: tuple[Finding, ...] = ()
    given_at: datetime | None = None
    dropped: bool = False


def evolve(state: Verdict | None, event: VerdictEvent) -> Verdict:
    """The verdict after an event."""
    if isinstance(event, VerdictAsked):
        return Verdict(
            id=event.id,
            repo_id=event.repo_id,
            analysis_id=event.analysis_id,
            head_task=event.head_task,
            commit_sha=event.commit_sha,
            base=event.base,
            kind=event.kind,
            base_commit=event.base_commit,
            rules=event.rules,
            asked_at=event.at,
        )
    assert state is not None, "a verdict begins with VerdictAsked"
    if isinstance(event, VerdictDropped):
        return attrs.evolve(state, dropped=True)
    return attrs.evolve(state, result=event.result, base_task=event.base_task, checks=event.checks, given_at=event.at)


# Commands


@attrs.frozen(kw_only=True)
class AskVerdict:
    """Request a verdict. A given one does not change; one without a result is then about the analysis of this request."""

    asked: VerdictAsked


@attrs.frozen(kw_only=True)
class GiveVerdict:
    """Store the result of the gate; earlier results stay."""

    result: Result
    base_task: str
    checks: tuple[Finding, ...]
    at: datetime


@attrs.frozen(kw_only=True)
class DropVerdict:
    """Remove the verdict with its repository."""

    at: datetime


VerdictCommand = AskVerdict | GiveVerdict | DropVerdict


def decide(command: VerdictCommand, state: Verdict | None) -> Sequence[VerdictEvent]:
    """Return the events that a command causes. Raises NotFound."""
    if isinstance(command, AskVerdict):
        if state is None or state.dropped:
            return [command.asked]
        other = state.result is Result.UNKNOWN and state.head_task != command.asked.head_task
        return [command.asked] if other else []
    if state is None:
        raise NotFound("that verdict was never asked for")
    if isinstance(command, DropVerdict):
        return [] if state.dropped else [VerdictDropped(at=command.at)]
    if state.dropped:
        raise NotFound("that verdict was removed with its repository")
    if state.result is not Result.UNKNOWN:
        return []
    return [VerdictGiven(result=command.result, base_task=command.base_task, checks=command.checks, at=command.at)]


VERDICT: Decider[Verdict, VerdictCommand, VerdictEvent] = Decider(CATEGORY, decide, evolve, initial=None)
