"""Durations are counted in the class that they belong to."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from eventlog.support.tracing import Timings


@given(st.lists(st.floats(0, 20)))
def test_each_end_of_a_class_counts_what_took_no_longer(seconds: list[float]) -> None:
    timings = Timings((0.1, 1.0, 10.0))
    for value in seconds:
        timings.observe(value)
    assert list(timings.cumulative()) == [
        (end, len([value for value in seconds if value <= end])) for end in (0.1, 1.0, 10.0, inf)
    ]
    assert timings.total == sum(seconds)
