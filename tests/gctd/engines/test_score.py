"""The CRAP formula and its consequences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.engines.report import FunctionEntry
from gctd.engines.score import coverage_needed, crap, crap_of, summarize, worst_first
from gctd.engines.state import State

complexities = st.integers(1, 2_000)
percents = st.floats(0, 100)


@pytest.mark.parametrize(
    ("cyclomatic", "coverage", "expected"),
    [
        (1, 0.0, 2.0),
        (1, 100.0, 1.0),
        (2, 66.66666666666666, 2.1481481481481484),
        (3, 33.33333333333333, 5.666666666666668),
        (5, 28.57142857142857, 14.110787172011662),
        (5, 0.0, 30.0),
        (30, 100.0, 30.0),
    ],
)
def test_the_formula_to_the_last_bit(cyclomatic: int, coverage: float, expected: float) -> None:
    assert crap(cyclomatic, coverage) == expected


@given(complexities, percents, percents)
def test_more_coverage_never_makes_it_worse(cyclomatic: int, one: float, other: float) -> None:
    assert crap(cyclomatic, max(one, other)) <= crap(cyclomatic, min(one, other))
    assert cyclomatic <= crap(cyclomatic, one) <= cyclomatic**2 + cyclomatic


@given(complexities, percents)
def test_more_complexity_is_always_worse(cyclomatic: int, coverage: float) -> None:
    assert crap(cyclomatic, coverage) < crap(cyclomatic + 1, coverage)


@pytest.mark.parametrize(("cyclomatic", "percent"), [(1, 0.0), (5, 0.0), (6, 12.64), (10, 41.52), (20, 70.76), (30, 100.0)])
def test_the_coverage_that_is_enough(cyclomatic: int, percent: float) -> None:
    needed = coverage_needed(cyclomatic)
    assert needed == pytest.approx(percent, abs=0.005)


def test_no_coverage_is_enough_above_the_threshold() -> None:
    assert coverage_needed(31) is None
    assert coverage_needed(31, threshold=31) == 100.0


@given(st.integers(1, 300), st.floats(1, 400))
def test_the_coverage_needed_is_enough_and_hardly_more_than_enough(cyclomatic: int, threshold: float) -> None:
    needed = coverage_needed(cyclomatic, threshold)
    if needed is None:
        assert crap(cyclomatic, 100.0) > threshold
    else:
        assert crap(cyclomatic, needed) <= threshold
        assert needed <= 0.001 or crap(cyclomatic, needed - 0.001) > threshold - 1e-9


def test_missing_coverage_counts_as_the_policy_says() -> None:
    assert [crap_of(3, None, policy) for policy in ("pessimistic", "optimistic", "skip")] == [12.0, 3.0, 3.0]
    assert crap_of(3, 0.0, "skip") == 12.0


def test_the_summary_counts_strictly_above_the_threshold_and_adds_from_left_to_right() -> None:
    scores = [0.1] * 10 + [30.0, 30.000000000000004]
    summary = summarize(scores, 30.0)
    combined = 0.0
    for score in scores:
        combined += score
    assert (summary.exceeded, summary.total_funcs, summary.combined, summary.average) == (1, 12, combined, combined / 12)


def test_nothing_sums_to_zero() -> None:
    summary = summarize([], 30.0)
    assert (summary.average, summary.combined, summary.exceeded, summary.total_funcs) == (0.0, 0.0, 0, 0)


@given(
    st.permutations(
        [("b.go", 1, 2.0), ("a.go", 9, 2.0), ("a.go", 3, 2.0), ("z.go", 1, 7.5), ("a.go", 1, 1.0), ("a.pb.go", 7, 900.0)],
    )
)
def test_worst_first_then_file_then_line_and_functions_that_are_not_measured_at_the_end(
    order: list[tuple[str, int, float]],
) -> None:
    entries = [
        FunctionEntry(
            file=file,
            package="p",
            function="F",
            name="F",
            receiver="",
            line=line,
            end_line=line,
            cyclomatic=1,
            coverage=None,
            stmt_coverage=None,
            crap=score,
            state=State.GENERATED if score > 100 else State.MEASURED,
        )
        for file, line, score in order
    ]
    places = [(entry.file, entry.line) for entry in worst_first(entries)]
    assert places == [("z.go", 1), ("a.go", 3), ("a.go", 9), ("b.go", 1), ("a.go", 1), ("a.pb.go", 7)]
