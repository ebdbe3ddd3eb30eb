"""Durations, counted in classes, for the histograms of a metrics library."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Timings:
    """Durations in seconds. `bounds` are the upper ends of the classes, in rising order. One more class has no end."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """Seconds, all together."""

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """For each class its upper end and how many took no longer; the last end is infinite."""
        return zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True)
