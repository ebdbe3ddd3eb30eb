"""Advice for a risky function: the blocks that bring its CRAP value to the threshold if tests run them, or its division.

CRAP(c, v) = c^2 * (1 - v)^3 + c, with the complexity c and the covered share v of the blocks (Savoia and Evans, crap4j, 2007). A
value of at most T needs the share 1 - cbrt((T - c) / c^2). No coverage is enough if c > T.

A block runs only if its parents run. So the advice chooses whole chains of uncovered blocks: the chain with the most blocks, or
the shortest sufficient chain as soon as one chain is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import attrs

from gctd.engines import score
from gctd.engines.functions.blocks import CountedBlock

MOST_STEPS = 50
"""Steps that are computed one by one."""
Kind = Literal["none", "cover", "split"]


@attrs.frozen(kw_only=True)
class AdviceStep:
    """A test that runs the block `target`, and with it the uncovered `blocks` on the way. `crap` is the value after it."""

    target: int
    blocks: tuple[int, ...]
    crap: float


@attrs.frozen(kw_only=True)
class Advice:
    """The way to a value of at most the threshold.

    `none`: the value is not over it. `cover`: the steps are enough. `split`: the complexity alone is over it. `needed` is the
    least coverage (per cent), None if none is enough. `crap` is the value after all steps, or with full coverage for `split`.
    `parts`: divided into this number of functions of equal complexity, no part is over the threshold without any test; None if
    the threshold is too low for that. `more`: blocks that have to be covered after the steps, if there are over MOST_STEPS of
    them.
    """

    kind: Kind
    needed: float | None
    steps: tuple[AdviceStep, ...]
    crap: float
    parts: int | None
    more: int = 0

    @property
    def blocks(self) -> int:
        """The number of blocks that have to be covered."""
        return sum(len(step.blocks) for step in self.steps) + self.more


def advise(cyclomatic: int, blocks: Sequence[CountedBlock], parents: Sequence[int | None], threshold: float) -> Advice:
    """Return the advice for a function with these blocks, and the parent of each block (always an earlier block)."""
    covered = {index for index, block in enumerate(blocks) if block.covered}
    value = _value(cyclomatic, len(covered), len(blocks))
    needed = score.coverage_needed(cyclomatic, threshold)
    parts = parts_of(cyclomatic, threshold)
    if value <= threshold:
        return Advice(kind="none", needed=needed, steps=(), crap=value, parts=None)
    if needed is None:
        return Advice(kind="split", needed=None, steps=(), crap=float(cyclomatic), parts=parts)
    steps: list[AdviceStep] = []
    while value > threshold and len(steps) < MOST_STEPS:
        chain = _next_chain(cyclomatic, blocks, parents, covered, threshold)
        covered.update(chain)
        value = _value(cyclomatic, len(covered), len(blocks))
        steps.append(AdviceStep(target=chain[-1], blocks=tuple(chain), crap=value))
    more = _enough(cyclomatic, len(covered), len(blocks), threshold)
    return Advice(kind="cover", needed=needed, steps=tuple(steps), crap=value, parts=parts, more=more)


def parts_of(cyclomatic: int, threshold: float) -> int | None:
    """Return the number of parts into which a function is divided, so that no part is over the threshold without tests.

    A part of complexity p has the value p^2 + p without coverage. Each further part adds one to the sum of the complexities.
    """
    largest = math.floor((math.sqrt(1 + 4 * threshold) - 1) / 2)
    if largest < 2:  # parts without a branch cannot hold the branches
        return None
    return max(1, math.ceil((cyclomatic - 1) / (largest - 1)))


def _value(cyclomatic: int, covered: int, blocks: int) -> float:
    return score.crap(cyclomatic, covered / blocks * 100 if blocks else 0.0)


def _enough(cyclomatic: int, covered: int, blocks: int, threshold: float) -> int:
    """Return the least number of further blocks that bring the value to the threshold."""
    return next(more for more in range(blocks - covered + 1) if _value(cyclomatic, covered + more, blocks) <= threshold)


def _next_chain(
    cyclomatic: int, blocks: Sequence[CountedBlock], parents: Sequence[int | None], covered: set[int], threshold: float
) -> list[int]:
    """Return the uncovered blocks on the way to the best next block, the outermost first."""
    lengths = _lengths(parents, covered)
    enough = _enough(cyclomatic, len(covered), len(blocks), threshold)
    sufficient = [index for index, length in lengths.items() if length >= enough]
    if sufficient:
        target = min(sufficient, key=lambda index: (lengths[index], index))
    else:
        target = max(lengths, key=lambda index: (lengths[index], -index))
    chain = []
    at: int | None = target
    while at is not None:
        if at not in covered:
            chain.append(at)
        at = parents[at]
    return chain[::-1]


def _lengths(parents: Sequence[int | None], covered: set[int]) -> dict[int, int]:
    """Return for each uncovered block the number of uncovered blocks on the way to it, itself included."""
    lengths: list[int] = []
    for index, parent in enumerate(parents):
        before = 0 if parent is None else lengths[parent]
        lengths.append(before + (index not in covered))
    return {index: length for index, length in enumerate(lengths) if index not in covered}
