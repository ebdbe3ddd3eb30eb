"""How much slower a busy machine is than one at rest, and time bounds that follow it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_SPENT = 0.02
"""Seconds of processor time that a measurement takes."""


def slowness() -> float:
    """How many times longer work takes now than on a machine at rest, at least 1: wall-clock time per processor time."""
    began, spent = time.monotonic(), time.thread_time()
    while time.thread_time() - spent < _SPENT:
        pass
    return max(1.0, (time.monotonic() - began) / _SPENT)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block keeps a promised time: `seconds` on a machine at rest, multiplied by the slowness of a busy one.

    The machine is measured before the block, and after one that took longer than `seconds`. Raises AssertionError.
    """
    before, began = slowness(), time.monotonic()
    yield
    took = time.monotonic() - began
    if took >= seconds:
        bound = seconds * max(before, slowness())
        assert took < bound, f"it took {took:.2f} s; the bound is {seconds:g} s at rest, {bound:.2f} s on this busy machine"
