"""The quality gate: limits for an analysis, and for the functions that a change added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal

import attrs

from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import TOLERANCE, Change, Comparison, Status
from gctd.engines.report import FunctionEntry
from gctd.engines.state import State

Worse = Literal["any", "risky"]
"""Functions that count as worse: all whose value rose, or only the ones that are risky now."""


class CheckName(StrEnum):
    """Names of the checks. The first five judge the analysis alone, the others the changes since another analysis."""

    MAX_CRAP = "max_crap"
    MAX_EXCEEDED = "max_exceeded"
    MAX_AVERAGE = "max_average"
    MIN_COVERAGE = "min_coverage"
    MAX_UNCOVERED = "max_uncovered"
    MAX_NEW = "max_new"
    MAX_WORSE = "max_worse"
    MEASURED = "require_measured"


@attrs.frozen(kw_only=True)
class GateFacts:
    """Facts that the gate judges.

    `exceeded` is the number of functions over the limits' threshold. `coverage` is None if unknown. `lower_bound`: the coverage
    may be higher, since tests of some packages did not come to their end. `incomplete`: it may be lower or higher, since packages
    with tests are not part of it. `measured`: the coverage of at least one function is known. `changes` is None without a base.
    `shortened`: functions with lower values than `entries` are hidden. `at_least`: some of them may count for `exceeded`.
    """

    entries: Sequence[FunctionEntry]
    exceeded: int
    average: float
    coverage: float | None
    uncovered: int
    changes: Comparison | None
    lower_bound: bool = False
    incomplete: bool = False
    measured: bool = True
    shortened: bool = False
    at_least: bool = False


@attrs.frozen(kw_only=True)
class Check:
    """One limit and the value found. `passed` is None if the result is unknown, `value` is None if no value exists."""

    name: CheckName
    passed: bool | None
    limit: float
    value: float | None


@attrs.frozen(kw_only=True)
class Offender:
    """A function with failed checks. `before` is None for a new function, or without a comparison."""

    checks: tuple[CheckName, ...]
    before: FunctionEntry | None
    after: FunctionEntry


@attrs.frozen(kw_only=True)
class GateVerdict:
    """Result of the gate, each check, and the functions behind the failed checks, the highest value first.

    `fixed` are the functions that are not risky any more. `unmeasured` are the functions that lost their measurement, with the
    last value that was measured.
    """

    result: Result
    checks: tuple[Check, ...]
    offenders: tuple[Offender, ...]
    fixed: tuple[Change, ...] = ()
    unmeasured: tuple[Change, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it is known that all checks hold."""
        return self.result is Result.PASSED


def judge(limits: Rules, facts: GateFacts) -> GateVerdict:
    """Judge the facts by the limits."""
    checks = tuple(_checks(limits, facts))
    failed = {check.name for check in checks if check.passed is False}
    known = all(check.passed is not None for check in checks)
    result = Result.FAILED if failed else Result.PASSED if known else Result.UNKNOWN
    lost = _unmeasured(facts.changes)
    return GateVerdict(
        result=result,
        checks=checks,
        offenders=_offenders(limits, facts, failed),
        fixed=tuple(change for change in facts.changes.changes if change.status is Status.FIXED) if facts.changes else (),
        unmeasured=tuple(lost or ()),
    )


def _checks(limits: Rules, facts: GateFacts) -> Iterable[Check]:
    highest = max((entry.crap for entry in facts.entries if entry.state.known), default=None if facts.shortened else 0.0)
    at_most = (
        (CheckName.MAX_CRAP, limits.max_crap, highest if facts.measured else None),
        (CheckName.MAX_EXCEEDED, limits.max_exceeded, facts.exceeded if facts.measured else None),
        (CheckName.MAX_AVERAGE, limits.max_average, facts.average if facts.measured else None),
        (CheckName.MAX_UNCOVERED, limits.max_uncovered, facts.uncovered),
    )
    for name, limit, value in at_most:
        if limit is not None:
            passed = None if value is None else value <= limit
            if passed and name is CheckName.MAX_EXCEEDED and facts.at_least:
                passed = None
            yield Check(name=name, passed=passed, limit=limit, value=value)
    if limits.min_coverage is not None:
        passed = _enough(facts, limits.min_coverage)
        yield Check(name=CheckName.MIN_COVERAGE, passed=passed, limit=limits.min_coverage, value=facts.coverage)
    for name, limit, found in (
        (CheckName.MAX_NEW, limits.max_new, _new(limits, facts.changes)),
        (CheckName.MAX_WORSE, limits.max_worse, _worse(limits, facts.changes)),
        (CheckName.MEASURED, 0 if limits.require_measured else None, _unmeasured(facts.changes)),
    ):
        if limit is not None:
            count = None if found is None else len(found)
            yield Check(name=name, passed=None if count is None else count <= limit, limit=limit, value=count)


def _enough(facts: GateFacts, least: float) -> bool | None:
    if facts.coverage is None or facts.incomplete:
        return None
    return True if facts.coverage >= least else None if facts.lower_bound else False


_Pair = tuple[FunctionEntry | None, FunctionEntry]


def _new(limits: Rules, changes: Comparison | None) -> Sequence[_Pair] | None:
    if changes is None:
        return None
    return [
        (None, change.after)
        for change in changes.changes
        if change.after is not None and change.before is None and change.after.risky(limits.threshold)
    ]


def _worse(limits: Rules, changes: Comparison | None) -> Sequence[_Pair] | None:
    if changes is None:
        return None
    least = limits.threshold if limits.worse == "risky" else 0.0
    return [
        (change.before, change.after)
        for change in changes.changes
        if change.before is not None
        and change.after is not None
        and change.before.state.known
        and change.after.state.known
        and _rose(change.before, change.after, limits.threshold)
        and change.after.crap > least
    ]


def _unmeasured(changes: Comparison | None) -> Sequence[Change] | None:
    """Return the functions that lost their measurement. Files that are generated now are outside of the gate."""
    if changes is None:
        return None
    return [
        change
        for change in changes.changes
        if change.status is Status.UNMEASURED and change.after is not None and change.after.state is not State.GENERATED
    ]


def _rose(before: FunctionEntry, after: FunctionEntry, threshold: float) -> bool:
    return after.crap - before.crap >= TOLERANCE or before.crap <= threshold < after.crap


def _offenders(limits: Rules, facts: GateFacts, failed: set[CheckName]) -> tuple[Offender, ...]:
    over = limits.threshold
    absolute: list[tuple[CheckName, float | None]] = [(CheckName.MAX_CRAP, limits.max_crap), (CheckName.MAX_EXCEEDED, over)]
    behind: dict[CheckName, Sequence[_Pair]] = {
        name: [(None, entry) for entry in facts.entries if entry.risky(bound)]
        for name, bound in absolute
        if name in failed and bound is not None
    }
    behind[CheckName.MAX_NEW] = _new(limits, facts.changes) or ()
    behind[CheckName.MAX_WORSE] = _worse(limits, facts.changes) or ()
    found: dict[int, Offender] = {}
    for name in (name for name in behind if name in failed):
        for before, after in behind[name]:
            known = found.get(id(after), Offender(checks=(), before=None, after=after))
            found[id(after)] = attrs.evolve(known, checks=(*known.checks, name), before=before or known.before)
    return tuple(sorted(found.values(), key=lambda one: (-one.after.crap, one.after.file, one.after.line)))
