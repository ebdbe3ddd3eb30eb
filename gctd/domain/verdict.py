"""The aggregate of a verdict: what the gate says of a commit by rules, against a base that was chosen once.

Its id follows from project, commit, base as it was asked for, and rules. So the same question has the same answer however often
it is asked, and whatever was analysed meanwhile.
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
"""How functions are matched and judged; another version may give another verdict on the same analyses."""


class Result(StrEnum):
    """What the gate says. `unknown`: what it needs for an answer is not there."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class Rules:
    """What an analysis has to keep to; None: that is not checked.

    `threshold` is the value above which a function is risky. `max_crap` bounds the value of every function, `max_exceeded` the
    number of risky ones, `max_average` the mean of all values, `min_coverage` the covered statements (per cent), `max_uncovered`
    the packages without coverage. `max_new`: risky functions that were not there before; `max_worse`: functions whose value rose,
    `worse` says whether any or only those that are risky now. `require_measured`: no function may lose its measurement.
    """

    threshold: float
    max_crap: float | None = None
    max_exceeded: int | None = None
    max_average: float | None = None
    min_coverage: float | None = None
    max_uncovered: int | None = None
    max_new: int | None = 0
    max_worse: int | None = 0
    worse: str = "any"
    require_measured: bool = False

    @property
    def compares(self) -> bool:
        """Whether a base is needed."""
        return self.max_new is not None or self.max_worse is not None or self.require_measured


@attrs.frozen(kw_only=True)
class Finding:
    """One check of a verdict: its name, whether it passed (None: not known), the limit, and what was found."""

    name: str
    passed: bool | None
    limit: float
    value: float | None


def verdict_id(analysis_id: str, commit_sha: str, base: str, rules: Rules) -> str:
    """The id of the answer to a question: 32 hex digits. `base` is how the base was asked for, empty for the usual one."""
    question = (ALGORITHM, analysis_id, commit_sha, base, sorted(attrs.asdict(rules).items()))
    return sha256(repr(question).encode()).hexdigest()[:32]


# Events


@REGISTRY.event("VerdictAsked")
@attrs.frozen(kw_only=True)
class VerdictAsked:
    """A commit is to be judged against this base: `base` is how it was asked for, `base_commit` what that led to.

    `head_task` made the analysis that is judged. `kind`: how the base was chosen. Without rules that compare, both are empty.
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
    """What the gate says, and the task whose analysis was the base (empty where the rules compare nothing)."""

    result: Result
    base_task: str
    checks: tuple[Finding, ...]
    at: datetime


VerdictEvent = VerdictAsked | VerdictGiven


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Verdict:
    """A verdict; `result` is `unknown` until it is given."""

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
    return attrs.evolve(state, result=event.result, base_task=event.base_task, checks=event.checks, given_at=event.at)


# Commands


@attrs.frozen(kw_only=True)
class AskVerdict:
    """Ask for a verdict; one that was asked for stays as it is."""

    asked: VerdictAsked


@attrs.frozen(kw_only=True)
class GiveVerdict:
    """Say what the gate says; what was said before stays."""

    result: Result
    base_task: str
    checks: tuple[Finding, ...]
    at: datetime


VerdictCommand = AskVerdict | GiveVerdict


def decide(command: VerdictCommand, state: Verdict | None) -> Sequence[VerdictEvent]:
    """The events that a command leads to. Raises NotFound."""
    if isinstance(command, AskVerdict):
        return [command.asked] if state is None else []
    if state is None:
        raise NotFound("that verdict was never asked for")
    if state.result is not Result.UNKNOWN:
        return []
    return [VerdictGiven(result=command.result, base_task=command.base_task, checks=command.checks, at=command.at)]


VERDICT: Decider[Verdict, VerdictCommand, VerdictEvent] = Decider(CATEGORY, decide, evolve)
