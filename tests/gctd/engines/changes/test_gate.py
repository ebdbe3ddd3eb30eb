"""The gate: each limit, and the functions behind a failure."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import compare
from gctd.engines.changes.gate import CheckName, GateFacts, judge
from tests.support.tracker.analyses import BEFORE, REPORT, entry, report

CHANGES = compare(BEFORE, REPORT, threshold=30.0)


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        ({"max_new": 3, "max_worse": 1}, set()),
        ({}, {"max_new", "max_worse"}),
        ({"max_new": 2, "max_worse": 1}, {"max_new"}),
        ({"max_new": None, "max_worse": None, "max_crap": 90.0}, set()),
        ({"max_new": None, "max_worse": None, "max_crap": 89.9}, {"max_crap"}),
        ({"max_new": None, "max_worse": None, "max_exceeded": 5, "max_average": 50.0, "max_uncovered": 1}, set()),
        ({"max_new": None, "max_worse": None, "max_exceeded": 4}, {"max_exceeded"}),
        ({"max_new": None, "max_worse": None, "max_average": 49.9}, {"max_average"}),
        ({"max_new": None, "max_worse": None, "max_uncovered": 0}, {"max_uncovered"}),
        ({"max_new": None, "max_worse": None, "min_coverage": 61.0}, {"min_coverage"}),
        ({"max_new": None, "max_worse": None, "min_coverage": 60.0}, set()),
    ],
)
def test_each_limit_of_the_gate_is_kept_at_its_bound_and_broken_behind_it(limits: dict[str, Any], failed: set[str]) -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=60.0, uncovered=1, changes=CHANGES)
    verdict = judge(Rules(threshold=30.0, **limits), facts)
    assert {check.name for check in verdict.checks if not check.passed} == failed
    assert verdict.passed == (not failed)


def test_the_gate_names_the_functions_behind_a_failure_the_worst_first() -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=0, changes=CHANGES)
    verdict = judge(Rules(threshold=30.0, max_crap=80.0), facts)
    assert [(one.after.function, one.before is None, one.checks) for one in verdict.offenders] == [
        ("Unknown", True, (CheckName.MAX_CRAP, CheckName.MAX_NEW)),
        ("Store.Put", False, (CheckName.MAX_CRAP, CheckName.MAX_WORSE)),
        ("init", True, (CheckName.MAX_NEW,)),
        ("init", True, (CheckName.MAX_NEW,)),
    ]


def test_only_risky_functions_fail_as_worse_unless_any_is_asked_for_and_the_others_are_listed() -> None:
    old, new = report(entry("A", 3, 100.0), entry("B", 6, 100.0)), report(entry("A", 4, 100.0), entry("B", 6, 0.0))
    facts = GateFacts(
        entries=new.entries,
        exceeded=1,
        average=1,
        coverage=None,
        uncovered=0,
        changes=compare(old, new, threshold=30.0),
    )

    def worse(**limits: Any) -> tuple[list[str], list[str]]:
        found = judge(Rules(threshold=30.0, **limits), facts)
        return [one.after.function for one in found.offenders], [one.after.function for one in found.worsened]

    assert worse(worse="any") == (["B", "A"], [])
    assert worse() == (["B"], ["A"])
    assert worse(max_worse=1) == ([], ["B", "A"])


@pytest.mark.parametrize(
    ("coverage", "lower_bound", "incomplete", "passed"),
    [
        (60.0, False, False, True),
        (60.0, True, False, True),
        (59.9, False, False, False),
        (59.9, True, False, None),
        (60.0, True, True, None),
        (59.9, True, True, None),
        (None, False, False, None),
    ],
)
def test_a_share_without_packages_that_belong_to_it_passes_no_limit_and_fails_none(
    coverage: float | None, lower_bound: bool, incomplete: bool, passed: bool | None
) -> None:
    rules = Rules(threshold=30.0, max_new=None, max_worse=None, min_coverage=60.0)
    facts = GateFacts(entries=(), exceeded=0, average=0, coverage=coverage, uncovered=0, changes=None)
    facts = attrs.evolve(facts, lower_bound=lower_bound, incomplete=incomplete)
    (check,) = judge(rules, facts).checks
    assert (check.passed, check.value) == (passed, coverage)


def test_without_a_measured_function_no_limit_of_values_is_kept() -> None:
    rules = Rules(threshold=30.0, max_new=None, max_worse=None, max_crap=30.0, max_exceeded=0, max_average=5.0, max_uncovered=1)
    facts = GateFacts(entries=(), exceeded=0, average=0.0, coverage=None, uncovered=1, changes=None, measured=False)
    verdict = judge(rules, facts)
    assert [(check.name.value, check.passed, check.value) for check in verdict.checks] == [
        ("max_crap", None, None),
        ("max_exceeded", None, None),
        ("max_average", None, None),
        ("max_uncovered", True, 1),
    ]
    assert verdict.result is Result.UNKNOWN


def test_without_an_analysis_before_nothing_is_new() -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=0, changes=None)
    verdict = judge(Rules(threshold=30.0), facts)
    assert (verdict.result, [check.passed for check in verdict.checks]) == (Result.UNKNOWN, [None, None])
