"""The quality gate: limits for an analysis, and for the functions that a change added.

A function without a known coverage has a value between its complexity and its value without any coverage. A check holds or
fails only if it does so for each of these values, and is unknown otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Literal, Self

import attrs

from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import TOLERANCE, Change, Comparison, Exclusion, Status
from gctd.engines.changes.matching import Match
from gctd.engines.report import FunctionEntry, ReportWarning
from gctd.engines.score import crap

Worse = Literal["any", "risky"]
"""Functions that count as worse: the ones that are risky now, or all whose value rose."""


class CheckName(StrEnum):
    """Names of the checks. `max_new`, `max_worse` and `max_excluded` judge the changes since another analysis."""

    MAX_CRAP = "max_crap"
    MAX_EXCEEDED = "max_exceeded"
    MAX_AVERAGE = "max_average"
    MIN_COVERAGE = "min_coverage"
    MAX_UNCOVERED = "max_uncovered"
    MAX_NEW = "max_new"
    MAX_WORSE = "max_worse"
    MAX_EXCLUDED = "max_excluded"
    MEASURED = "require_measured"


@attrs.frozen(kw_only=True)
class GateFacts:
    """Facts that the gate judges.

    `functions`, `average` and `exceeded` are the number of functions with known coverage, the mean of their values, and how many
    are over the limits' threshold. `coverage` is None if unknown. `lower_bound`: the coverage may be higher, since tests of some
    packages did not come to their end. `incomplete`: it may be lower or higher, since packages with tests are not part of it.
    `measured`: the coverage of at least one function is known. `changes` is None without a base. `shortened`: functions with
    lower values than `entries` are hidden. `at_least`: some of them may count for `exceeded`. `hidden`: the number of functions
    without known coverage among them. `partial`: this report or the one of the base is shortened. `unread` are the files whose
    functions are not known.
    """

    entries: Sequence[FunctionEntry]
    functions: int = 0
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
    hidden: int = 0
    partial: bool = False
    unread: Sequence[ReportWarning] = ()


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
class Unmeasured:
    """A function whose values cannot be compared, because its coverage is not known. `checks` are unknown because of it."""

    checks: tuple[CheckName, ...]
    before: FunctionEntry | None
    after: FunctionEntry

    @property
    def reason(self) -> str:
        """Return the state of the measurement and its cause, of the base if the function is measured now."""
        if not self.after.state.known:
            return f"{self.after.state.value}: {self.after.reason}"
        assert self.before is not None, "a new function has no other side"
        return f"at the base: {self.before.state.value}: {self.before.reason}"


@attrs.frozen(kw_only=True)
class GateVerdict:
    """Result of the gate with the reason if it is unknown, each check, and the functions behind it, the highest value first.

    `offenders` are behind the failed checks. `worsened` are the other functions whose value rose, `fixed` the ones that are not
    risky any more. `unmeasured` are new, changed or no longer measured, and their coverage is not known. `excluded` are the
    functions that left the measured set. `settled`: no later analysis of the same commits can change the result.
    """

    result: Result
    checks: tuple[Check, ...]
    offenders: tuple[Offender, ...]
    worsened: tuple[Offender, ...] = ()
    fixed: tuple[Change, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    reason: str = ""
    settled: bool = False

    @property
    def passed(self) -> bool:
        """Whether it is known that all checks hold."""
        return self.result is Result.PASSED

    def unknown(self, reason: str) -> Self:
        """Return the same facts without a result."""
        return attrs.evolve(self, result=Result.UNKNOWN, reason=reason, settled=False)


def judge(limits: Rules, facts: GateFacts) -> GateVerdict:
    """Judge the facts by the limits."""
    changed = None if facts.changes is None else _Changed.of(limits, facts.changes)
    checks = tuple(_checks(limits, facts, changed))
    failed = {check.name for check in checks if check.passed is False}
    open_ = [check.name for check in checks if check.passed is None]
    result = Result.FAILED if failed else Result.UNKNOWN if open_ else Result.PASSED
    offenders = _offenders(limits, facts, changed, failed)
    unmeasured = _unmeasured(limits, facts, changed, open_)
    return GateVerdict(
        result=result,
        checks=checks,
        offenders=offenders,
        worsened=() if changed is None else changed.also_worse(offenders),
        fixed=tuple(change for change in facts.changes.changes if change.status is Status.FIXED) if facts.changes else (),
        unmeasured=unmeasured,
        excluded=() if facts.changes is None else facts.changes.excluded,
        reason=_reason(facts, open_, unmeasured) if result is Result.UNKNOWN else "",
        settled=result is Result.PASSED or bool(failed - _of_this_run(facts)),
    )


def _of_this_run(facts: GateFacts) -> frozenset[CheckName]:
    """The checks that fail because of this run of the tests: another run may end otherwise."""
    return frozenset({CheckName.MEASURED, *((CheckName.MAX_UNCOVERED,) if facts.lower_bound else ())})


# Values


def _least(entry: FunctionEntry) -> float:
    """The least value that a function can have."""
    return entry.crap if entry.state.known else float(entry.cyclomatic)


def _most(entry: FunctionEntry) -> float:
    """The highest value that a function can have."""
    return entry.crap if entry.state.known else crap(entry.cyclomatic, 0.0)


def _lacking(entries: Iterable[FunctionEntry]) -> list[FunctionEntry]:
    """The functions of the measured set whose coverage is not known."""
    return [one for one in entries if not one.state.known and not one.state.outside]


# Changes

_Pair = tuple[FunctionEntry | None, FunctionEntry]
_Holds = Callable[[FunctionEntry, FunctionEntry], bool]


def _rose(least: float, most: float, threshold: float) -> bool:
    """Whether a value rose from `most` before to `least` now."""
    return least - most >= TOLERANCE or most <= threshold < least


@attrs.frozen(kw_only=True)
class _Changed:
    """The functions that fail a check of changes (`new`, `worse`), the ones that may (`maybe`), and all whose value rose."""

    new: Sequence[_Pair]
    worse: Sequence[_Pair]
    rose: Sequence[_Pair]
    maybe: Mapping[CheckName, Sequence[_Pair]]
    lacking: Sequence[_Pair]
    """Functions that are new, changed or no longer measured, and whose coverage is not known."""

    @classmethod
    def of(cls, limits: Rules, changes: Comparison) -> Self:
        """Sort the functions of a comparison. The ones outside of the measured set do not count."""
        over = limits.threshold
        new: list[_Pair] = []
        worse: list[_Pair] = []
        rose: list[_Pair] = []
        maybe: dict[CheckName, list[_Pair]] = {CheckName.MAX_NEW: [], CheckName.MAX_WORSE: []}
        lacking: list[_Pair] = []
        for before, after, changed in _sides(changes.pairs):
            pair = (before, after)
            if not after.state.known and (changed or before is None or before.state.known):
                lacking.append(pair)
            if before is None:
                # A function of a file that could not be read before may have been there.
                if _least(after) > over and after.file not in changes.unread_before:
                    new.append(pair)
                elif _most(after) > over:
                    maybe[CheckName.MAX_NEW].append(pair)
                continue
            if not before.state.known and not changed:
                continue
            least = over if limits.worse == "risky" else 0.0
            surely = _rose(_least(after), _most(before), over)
            if surely:
                rose.append(pair)
            if surely and _least(after) > least:
                worse.append(pair)
            elif _rose(_most(after), _least(before), over) and _most(after) > least:
                maybe[CheckName.MAX_WORSE].append(pair)
        return cls(new=new, worse=worse, rose=rose, maybe=maybe, lacking=lacking)

    def also_worse(self, offenders: Sequence[Offender]) -> tuple[Offender, ...]:
        """The functions whose value rose and that fail no check."""
        named = {id(one.after) for one in offenders}
        return _sorted(Offender(checks=(), before=before, after=after) for before, after in self.rose if id(after) not in named)


def _sides(pairs: Sequence[Match]) -> Iterator[tuple[FunctionEntry | None, FunctionEntry, bool]]:
    """Each function of the measured set before (None: it was not in it) and after, and whether its code is another."""
    for pair in pairs:
        before, after = pair.before, pair.after
        if after is None or after.state.outside:
            continue
        if before is None or before.state.outside:
            yield None, after, True
        else:
            yield before, after, pair.body_changed or before.cyclomatic != after.cyclomatic


# Checks


def _checks(limits: Rules, facts: GateFacts, changed: _Changed | None) -> Iterator[Check]:
    yield from _absolute_checks(limits, facts)
    for name, limit, pairs in (
        (CheckName.MAX_NEW, limits.max_new, None if changed is None else changed.new),
        (CheckName.MAX_WORSE, limits.max_worse, None if changed is None else changed.worse),
    ):
        if limit is None:
            continue
        if facts.changes is None or changed is None or pairs is None:
            yield Check(name=name, passed=None, limit=limit, value=None)
        else:
            most = math.inf if facts.changes.unread else len(pairs) + len(changed.maybe[name])
            yield Check(name=name, passed=_holds(len(pairs), most, limit), limit=limit, value=len(pairs))
    if limits.max_excluded is not None:
        count = None if facts.changes is None else len(facts.changes.excluded)
        passed = None if count is None else count <= limits.max_excluded
        yield Check(name=CheckName.MAX_EXCLUDED, passed=passed, limit=limits.max_excluded, value=count)
    if limits.require_measured:
        count = len(_lacking(facts.entries)) + facts.hidden
        yield Check(name=CheckName.MEASURED, passed=_holds(count, math.inf if facts.unread else count, 0), limit=0, value=count)


def _absolute_checks(limits: Rules, facts: GateFacts) -> Iterator[Check]:
    lacking = _lacking(facts.entries)
    for name, limit, (value, least, most) in (
        (CheckName.MAX_CRAP, limits.max_crap, _highest(facts, lacking)),
        (CheckName.MAX_EXCEEDED, limits.max_exceeded, _exceeded(facts, lacking, limits.threshold)),
        (CheckName.MAX_AVERAGE, limits.max_average, _average(facts, lacking)),
    ):
        if limit is not None:
            known = facts.measured and value is not None
            passed = _holds(least, math.inf if facts.hidden or facts.unread else most, limit) if known else None
            yield Check(name=name, passed=passed, limit=limit, value=value if known else None)
    if limits.max_uncovered is not None:
        passed = facts.uncovered <= limits.max_uncovered
        yield Check(name=CheckName.MAX_UNCOVERED, passed=passed, limit=limits.max_uncovered, value=facts.uncovered)
    if limits.min_coverage is not None:
        passed = _enough(facts, limits.min_coverage)
        yield Check(name=CheckName.MIN_COVERAGE, passed=passed, limit=limits.min_coverage, value=facts.coverage)


def _holds(least: float, most: float, limit: float) -> bool | None:
    """Whether a value between two bounds is within a limit; None if that is not known."""
    return False if least > limit else True if most <= limit else None


_Value = tuple[float | None, float, float]
"""A value that is shown, and the bounds of the true one."""


def _highest(facts: GateFacts, lacking: Sequence[FunctionEntry]) -> _Value:
    known = max((one.crap for one in facts.entries if one.state.known), default=None if facts.shortened else 0.0)
    if known is None:
        return None, 0.0, math.inf
    least = max(known, *(_least(one) for one in lacking), 0.0)
    return least, least, max(known, *(_most(one) for one in lacking), 0.0)


def _exceeded(facts: GateFacts, lacking: Sequence[FunctionEntry], threshold: float) -> _Value:
    least = facts.exceeded + sum(_least(one) > threshold for one in lacking)
    most = math.inf if facts.at_least else facts.exceeded + sum(_most(one) > threshold for one in lacking)
    return least, least, most


def _average(facts: GateFacts, lacking: Sequence[FunctionEntry]) -> _Value:
    if not lacking:
        return facts.average, facts.average, facts.average
    total, number = facts.average * facts.functions, facts.functions + len(lacking)
    least, most = (total + sum(map(bound, lacking)) for bound in (_least, _most))
    return facts.average, least / number, most / number


def _enough(facts: GateFacts, least: float) -> bool | None:
    if facts.coverage is None or facts.incomplete:
        return None
    return True if facts.coverage >= least else None if facts.lower_bound else False


# The functions behind the result


def _offenders(limits: Rules, facts: GateFacts, changed: _Changed | None, failed: set[CheckName]) -> tuple[Offender, ...]:
    behind: dict[CheckName, Sequence[_Pair]] = {}
    for name, bound in ((CheckName.MAX_CRAP, limits.max_crap), (CheckName.MAX_EXCEEDED, limits.threshold)):
        if bound is not None:
            behind[name] = [(None, one) for one in facts.entries if not one.state.outside and _least(one) > bound]
    if changed is not None:
        behind |= {CheckName.MAX_NEW: changed.new, CheckName.MAX_WORSE: changed.worse}
    found: dict[int, Offender] = {}
    for name in (name for name in behind if name in failed):
        for before, after in behind[name]:
            known = found.get(id(after), Offender(checks=(), before=None, after=after))
            found[id(after)] = attrs.evolve(known, checks=(*known.checks, name), before=before or known.before)
    return _sorted(found.values())


def _sorted(offenders: Iterable[Offender]) -> tuple[Offender, ...]:
    return tuple(sorted(offenders, key=lambda one: (-one.after.crap, one.after.file, one.after.line)))


def _unmeasured(limits: Rules, facts: GateFacts, changed: _Changed | None, open_: Sequence[CheckName]) -> tuple[Unmeasured, ...]:
    """The functions that are not measured, the ones that leave a check open first, then by their highest possible value."""
    found: dict[int, Unmeasured] = {}
    for before, after in () if changed is None else changed.lacking:
        found[id(after)] = Unmeasured(checks=(), before=before, after=after)
    for name, pairs in () if changed is None else changed.maybe.items():
        for before, after in pairs if name in open_ else ():
            known = found.get(id(after), Unmeasured(checks=(), before=before, after=after))
            if not after.state.known or (before is not None and not before.state.known):
                found[id(after)] = attrs.evolve(known, checks=(*known.checks, name))
    bounds = {CheckName.MAX_CRAP: limits.max_crap, CheckName.MAX_EXCEEDED: limits.threshold, CheckName.MAX_AVERAGE: 0.0}
    for after in _lacking(facts.entries):
        checks = [name for name, bound in bounds.items() if name in open_ and bound is not None and _most(after) > bound]
        if checks or limits.require_measured:
            known = found.get(id(after), Unmeasured(checks=(), before=None, after=after))
            found[id(after)] = attrs.evolve(known, checks=(*known.checks, *checks))
    return tuple(sorted(found.values(), key=lambda one: (not one.checks, -_most(one.after), one.after.file, one.after.line)))


def _reason(facts: GateFacts, open_: Sequence[CheckName], unmeasured: Sequence[Unmeasured]) -> str:
    """Return the unknown checks, and the first cause of each kind."""
    causes = ["a report was shortened (--min, --top)"] if facts.partial else []
    unread = facts.unread if facts.changes is None else facts.changes.unread
    causes += [f"{one.path} cannot be read ({one.reason})" for one in unread[:1]]
    if facts.changes is not None and facts.changes.unread_before:
        causes.append(f"{min(facts.changes.unread_before)} could not be read at the base")
    behind = [one for one in unmeasured if one.checks]
    if behind:
        more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
        causes.append(f"not measured: {behind[0].after.function} ({behind[0].reason}){more}")
    said = f"it is not known whether these hold: {', '.join(open_)}"
    return ": ".join(["; ".join(causes), said] if causes else [said])
