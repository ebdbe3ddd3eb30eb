"""The quality gate: whether an analysis keeps to limits, on what there is and on what a change added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal

import attrs

from gctd.engines.comparison import TOLERANCE, Comparison
from gctd.engines.report import FunctionEntry

Worse = Literal["any", "risky"]


class CheckName(StrEnum):
    """What can be checked: the first five look at the analysis alone, the others at what changed since another one."""

    MAX_CRAP = "max_crap"
    MAX_EXCEEDED = "max_exceeded"
    MAX_AVERAGE = "max_average"
    MIN_COVERAGE = "min_coverage"
    MAX_UNCOVERED = "max_uncovered"
    MAX_NEW = "max_new"
    MAX_WORSE = "max_worse"


@attrs.frozen(kw_only=True)
class GateLimits:
    """What an analysis has to keep to; None: that is not checked.

    `threshold` is the value above which a function is risky. `max_crap` bounds the value of every function, `max_exceeded` the
    number of risky ones, `max_average` the mean of all values, `min_coverage` the covered statements (per cent), `max_uncovered`
    the packages without coverage. `max_new`: risky functions that were not there before; `max_worse`: functions whose value rose,
    `worse` says whether any or only those that are risky now.
    """

    threshold: float
    max_crap: float | None = None
    max_exceeded: int | None = None
    max_average: float | None = None
    min_coverage: float | None = None
    max_uncovered: int | None = None
    max_new: int | None = 0
    max_worse: int | None = 0
    worse: Worse = "any"


@attrs.frozen(kw_only=True)
class GateFacts:
    """What is judged.

    `exceeded` at the limits' threshold; `coverage` None where it is not known; `changes` None where there is no analysis before.
    """

    entries: Sequence[FunctionEntry]
    exceeded: int
    average: float
    coverage: float | None
    uncovered: int
    changes: Comparison | None


@attrs.frozen(kw_only=True)
class Check:
    """One limit, and what was found. `passed` is None where there is nothing to compare with; `value` None: it is not known."""

    name: CheckName
    passed: bool | None
    limit: float
    value: float | None


@attrs.frozen(kw_only=True)
class Offender:
    """A function for which checks failed; `before` None where it was not there, or where nothing is compared."""

    checks: tuple[CheckName, ...]
    before: FunctionEntry | None
    after: FunctionEntry


@attrs.frozen(kw_only=True)
class Verdict:
    """Whether no check failed; each check; the functions behind those that did, the highest value first."""

    passed: bool
    checks: tuple[Check, ...]
    offenders: tuple[Offender, ...]


def judge(limits: GateLimits, facts: GateFacts) -> Verdict:
    """What the gate says."""
    checks = tuple(_checks(limits, facts))
    failed = {check.name for check in checks if check.passed is False}
    return Verdict(passed=not failed, checks=checks, offenders=_offenders(limits, facts, failed))


def _checks(limits: GateLimits, facts: GateFacts) -> Iterable[Check]:
    highest = max((entry.crap for entry in facts.entries), default=0.0)
    at_most = (
        (CheckName.MAX_CRAP, limits.max_crap, highest),
        (CheckName.MAX_EXCEEDED, limits.max_exceeded, facts.exceeded),
        (CheckName.MAX_AVERAGE, limits.max_average, facts.average),
        (CheckName.MAX_UNCOVERED, limits.max_uncovered, facts.uncovered),
    )
    for name, limit, value in at_most:
        if limit is not None:
            yield Check(name=name, passed=value <= limit, limit=limit, value=value)
    if limits.min_coverage is not None:
        passed = facts.coverage is not None and facts.coverage >= limits.min_coverage
        yield Check(name=CheckName.MIN_COVERAGE, passed=passed, limit=limits.min_coverage, value=facts.coverage)
    for name, limit, found in (
        (CheckName.MAX_NEW, limits.max_new, _new(limits, facts.changes)),
        (CheckName.MAX_WORSE, limits.max_worse, _worse(limits, facts.changes)),
    ):
        if limit is not None:
            count = None if found is None else len(found)
            yield Check(name=name, passed=None if count is None else count <= limit, limit=limit, value=count)


_Pair = tuple[FunctionEntry | None, FunctionEntry]


def _new(limits: GateLimits, changes: Comparison | None) -> Sequence[_Pair] | None:
    if changes is None:
        return None
    return [
        (None, change.after)
        for change in changes.changes
        if change.after is not None and change.before is None and change.after.crap > limits.threshold
    ]


def _worse(limits: GateLimits, changes: Comparison | None) -> Sequence[_Pair] | None:
    if changes is None:
        return None
    least = limits.threshold if limits.worse == "risky" else 0.0
    return [
        (change.before, change.after)
        for change in changes.changes
        if change.before is not None
        and change.after is not None
        and _rose(change.before, change.after, limits.threshold)
        and change.after.crap > least
    ]


def _rose(before: FunctionEntry, after: FunctionEntry, threshold: float) -> bool:
    return after.crap - before.crap >= TOLERANCE or before.crap <= threshold < after.crap


def _offenders(limits: GateLimits, facts: GateFacts, failed: set[CheckName]) -> tuple[Offender, ...]:
    over = limits.threshold
    absolute: list[tuple[CheckName, float | None]] = [(CheckName.MAX_CRAP, limits.max_crap), (CheckName.MAX_EXCEEDED, over)]
    behind: dict[CheckName, Sequence[_Pair]] = {
        name: [(None, entry) for entry in facts.entries if entry.crap > bound]
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
