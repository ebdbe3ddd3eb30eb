"""The progress of a test run: packages are counted, the log is never silent for long, reports are bounded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.support.timers import during
from gctd.domain.task.events import Progress
from gctd.scan.go.coverage_run import progress as progress_module
from gctd.scan.go.coverage_run.events import GoTestEvents
from gctd.scan.go.coverage_run.progress import STEPS, Following, PackageCount, ProgressReports, text_of
from tests.support.waiting import wait_until

LISTED = ("example.com/m", "example.com/m/a", "example.com/m/x/y")


def fed(*events: dict[str, Any]) -> PackageCount:
    count = PackageCount(LISTED)
    reader = GoTestEvents(LISTED, lambda _: None, count)
    reader.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return count


def test_packages_run_from_their_start_to_their_end() -> None:
    count = fed(
        {"Action": "start", "Package": "example.com/m/a"},
        {"Action": "start", "Package": "example.com/m/x/y"},
        {"Action": "run", "Package": "example.com/m/x/y", "Test": "TestOne"},
        {"Action": "pass", "Package": "example.com/m/x/y", "Test": "TestOne"},
        {"Action": "pass", "Package": "example.com/m/a", "Elapsed": 0.1},
        {"Action": "skip", "Package": "example.com/m"},
        {"Action": "start", "Package": "example.com/elsewhere"},
    )
    assert count.progress == Progress(done=2, total=3, running=("x/y",))
    assert text_of(count.progress) == "2 of 3 packages, running x/y"


@pytest.mark.parametrize(
    ("line", "done"),
    [
        ("ok  \texample.com/m/a\t0.012s\tcoverage: 71.4% of statements", 1),
        ("FAIL\texample.com/m/a [build failed]", 1),
        ("?   \texample.com/m/a\t[no test files]", 1),
        ("\texample.com/m/a\t\tcoverage: 0.0% of statements", 1),
        ("ok  \texample.com/other\t0.1s", 0),
        ("FAIL", 0),
        ("# example.com/m/a", 0),
        ("a.go:1:1: expected 'package'", 0),
        ("", 0),
    ],
)
def test_lines_of_go_test_name_packages_that_ended(line: str, done: int) -> None:
    count = PackageCount(LISTED)
    count.line(line)
    count.line(line)
    assert count.progress.done == done


@given(st.binary(max_size=200))
def test_no_output_disturbs_the_count(noise: bytes) -> None:
    count = PackageCount(LISTED)
    GoTestEvents(LISTED, lambda _: None, count).feed(noise + b"\n")
    count.line(noise.decode(errors="replace"))
    assert 0 <= count.progress.done <= count.progress.total == 3


@given(st.integers(1, 2000), st.lists(st.tuples(st.integers(0, 60), st.floats(0, 30)), max_size=300))
def test_a_run_has_a_bounded_number_of_reports_and_one_of_its_end(total: int, steps: list[tuple[int, float]]) -> None:
    reports, told, done, now = ProgressReports(), [], 0, 0.0
    for more, seconds in [*steps, (total, 0.1), (0, 0.1)]:
        done, now = min(done + more, total), now + seconds
        if reports.due(Progress(done=done, total=total), now):
            told.append(done)
    assert len(told) <= STEPS + 2
    assert told[-1] == total
    assert told == sorted(set(told))


async def test_the_log_has_a_line_though_go_says_nothing_and_a_failed_report_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "SILENT", 0.02)
    monkeypatch.setattr(progress_module, "LOOK", 0.01)
    count, log = PackageCount(LISTED), list[str]()
    count.started("example.com/m/a")

    async def refused(_: Progress) -> None:
        raise RuntimeError("the broker is away")

    async with during(Following(count, "tested", log.append, refused).run()):
        await wait_until(_has(log, "tested: 0 of 3 packages, running a"), timeout=10)
        count.ended("example.com/m/a")
        await wait_until(_has(log, "tested: 1 of 3 packages"), timeout=10)
    said = len(log)
    await asyncio.sleep(0)
    assert len(log) == said


def _has(log: list[str], line: str) -> Any:
    async def has() -> bool:
        return line in log

    return has
