"""Run the simulator: thousands of seeds, each with its own faults, until one breaks a promise or the time is over.

python -m tests.simulator [--runs 1000] [--seconds 60] [--seed 1] [--jobs 1] [--mutant NAME]
    [--trace]

Seeds count up from `--seed`. A seed that breaks a promise is printed with the command that replays it, and the exit code is 1.
`--trace` prints everything that happened. `--mutant` puts a bug in on purpose, which has to be found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from itertools import chain, count

import attrs

from tests.simulator.mutants import MUTANTS
from tests.simulator.simulation import Report, run

_TOGETHER = 25
_PROGRESS_EVERY = 30.0
"""Seconds between two lines of progress."""


@attrs.define
class Total:
    """The figures of all runs."""

    runs: int = 0
    steps: int = 0
    requests: int = 0
    damaged: int = 0
    virtual: float = 0.0
    cpu: float = 0.0

    def add(self, reports: list[Report], cpu: float) -> None:
        """Count some runs. `cpu`: their processor time in seconds."""
        self.runs += len(reports)
        self.steps += sum(report.steps for report in reports)
        self.requests += sum(report.requests for report in reports)
        self.damaged += sum(report.damaged is not None for report in reports)
        self.virtual += sum(report.virtual_seconds for report in reports)
        self.cpu += cpu

    def __str__(self) -> str:
        return (
            f"{self.runs:,} runs ({self.damaged:,} with lost or damaged records), {self.steps:,} steps, "
            f"{self.requests:,} requests, "
            f"{self.virtual / 3600:.1f} simulated hours, {self.cpu:.0f} s of processor time: {self.steps / self.cpu:,.0f} steps/s"
        )


def some(seeds: range, mutant: str | None) -> tuple[list[Report], float]:
    """Run some seeds, up to the first that breaks a promise: their reports, and the processor time."""
    began, reports = time.process_time(), []
    with MUTANTS[mutant]() if mutant else nullcontext():
        for seed in seeds:
            reports.append(run(seed))
            if reports[-1].violations:
                break
    return reports, time.process_time() - began


def parts(first: int, runs: int | None, end: float) -> Iterator[range]:
    """Seeds in parts, as many as there are to run, until `end` (monotonic time)."""
    for begin in count(first, _TOGETHER):
        left = _TOGETHER if runs is None else min(_TOGETHER, first + runs - begin)
        if left <= 0 or time.monotonic() >= end:
            return
        yield range(begin, begin + left)


def main(given: argparse.Namespace) -> int:
    """Run, print, and give the exit code."""
    if given.trace:
        with MUTANTS[given.mutant]() if given.mutant else nullcontext():
            report = run(given.seed, verbose=True)
        print("\n".join(report.lines))
        print(f"seed {report.seed}: {len(report.violations)} promises are broken, digest {report.digest[:16]}")
        return bool(report.violations)
    runs = given.runs if given.runs is not None or given.seconds is not None else 1000
    end = time.monotonic() + (given.seconds if given.seconds is not None else float("inf"))
    total, failing = Total(), list[Report]()
    said = time.monotonic()
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting: list[Future[tuple[list[Report], float]]] = []
        for part in chain(parts(given.seed, runs, end), [None] * given.jobs):
            if part is not None:
                waiting.append(pool.submit(some, part, given.mutant))
            if waiting and (part is None or len(waiting) > given.jobs):
                reports, cpu = waiting.pop(0).result()
                total.add(reports, cpu)
                failing += [report for report in reports if report.violations]
            if failing and part is not None:
                pool.shutdown(cancel_futures=True)
                break
            if time.monotonic() - said > _PROGRESS_EVERY:
                said = time.monotonic()
                print(f"{total.runs:,} runs", file=sys.stderr, flush=True)
    print(total)
    for report in failing:
        print(f"\nseed {report.seed} breaks a promise:", *report.violations, sep="\n  ")
        mutant = f" --mutant {given.mutant}" if given.mutant else ""
        print(f"replay: python -m tests.simulator --seed {report.seed} --trace{mutant}")
    return bool(failing)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="seeds to run (1,000 if --seconds is missing too)")
    parser.add_argument("--seconds", type=float, help="seconds after which no further seeds begin")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run seeds")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="a bug to put in")
    parser.add_argument("--trace", action="store_true", help="run one seed and print everything that happened")
    sys.exit(main(parser.parse_args()))
