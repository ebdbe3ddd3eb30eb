"""Simulated runs: whatever fails, an answer is true or it is refused (docs/explanation/event-log.md, The simulator)."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import chain

import pytest

from tests.simulator.faults import DAMAGING, PASSING
from tests.simulator.mutants import MUTANTS
from tests.simulator.simulation import first_failing, run
from tests.support import ROOT

SEEDS = range(1, 61)
FOUND = (84, 188, 399, 500, 586, 1283, 2041, 8125, 9124, 10300, 10335, 12231, 12856)
"""Seeds that once found a hole, in the system or in the model of it."""
FRESH, PARTS = 200, 4
"""Runs with new seeds, and the tests that share them."""
report_of = cache(run)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_in_the_fixed_seeds(part: int) -> None:
    assert [report for number in SEEDS[part::PARTS] if (report := report_of(number)).violations] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_in_fresh_seeds(part: int, seed: int) -> None:
    report = first_failing(range(seed + part, seed + FRESH, PARTS))
    assert report is None, report


@pytest.mark.parametrize("number", FOUND)
def test_a_seed_that_once_found_a_hole_finds_none(number: int) -> None:
    report = run(number)
    assert not report.violations, report


def test_the_fixed_seeds_inject_every_fault_and_most_requests_take_effect() -> None:
    """A simulator in which nothing happens finds nothing."""
    reports = [report_of(number) for number in SEEDS]
    injected = set(chain.from_iterable(report.faults for report in reports))
    assert injected == {fault.__name__ for fault in (*PASSING, *DAMAGING)}
    sound = [report for report in reports if report.damaged is None]
    assert len(sound) > len(reports) / 3
    assert sum(report.done for report in sound) > 10 * len(sound)


def test_a_seed_replays_exactly_and_another_one_does_not() -> None:
    first, again, other = run(7), run(7), run(8)
    assert first == again
    assert first.digest != other.digest


@pytest.mark.real
def test_a_seed_replays_exactly_in_another_process() -> None:
    """Neither the hashes of texts nor the addresses of objects may matter."""
    program = "from tests.simulator.simulation import run; print(run(11).digest)"
    environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "3"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == run(11).digest


KNOWN = {
    "skipped-guard": (1, "its state has"),
    "reversed-events": (1, "are the fold of no log"),
    "forgotten-fence": (91, "the newest is"),
    "early-acknowledgement": (2, "is not in the log"),
    "checkpoint-outside": (1, "are the fold of no log"),
    "dropped-incarnation": (9, "which knew the stream before"),
}
"""Of each bug a seed that finds it, and a part of the violation. If it does not after a change of the code, others are tried."""


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_that_is_put_in_on_purpose_is_found_within_1000_runs(name: str) -> None:
    seed, words = KNOWN[name]
    with MUTANTS[name]():
        report = first_failing(chain([seed], range(1, 1000)))
    assert report is not None, f"{name} is not found"
    assert any(words in violation for violation in report.violations), report
    assert not run(report.seed).violations, "without the bug the same seed breaks nothing"
