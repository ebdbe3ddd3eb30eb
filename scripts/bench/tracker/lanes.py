"""Lanes under load: two workers with different engines and versions of Go, mixed tasks, slow ones among them.

PYTHONPATH=.:scripts python scripts/bench/tracker/lanes.py [--tasks 200] [--slow 30] [--seconds 5] [--discoveries 40]

All parts are real but the work (`tests/support/tracker/fake_work.py`). A task fails if its worker lacks its engine or its version
of Go. While the tasks run, repositories are registered one after the other. The time of a discovery is from the request until
the repository is ready. The exit code is 1 if a task failed, or if the 95th percentile is 2 s or more.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.support.tracker.system import TrackerSystem, tracker_system

WORKERS: tuple[dict[str, Any], ...] = (
    {"FAKE_ENGINES": "native,native-compat", "FAKE_GO": "go1.26.8"},
    {"FAKE_ENGINES": "native,go-crap", "FAKE_GO": "go1.27.1"},
)
KINDS = (
    ("https://example.com/a/plain", "native"),
    ("https://example.com/a/plain", "native-compat"),
    ("https://example.com/a/plain", "go-crap"),
    ("https://example.com/a/go1.27", "native"),
)
SLOW = (("https://example.com/a/slow", "native-compat"), ("https://example.com/a/slow", "go-crap"))
LONGEST = 2.0


async def main(given: argparse.Namespace, directory: Path) -> int:
    """Run once, print, and return the exit code."""
    async with tracker_system(directory, GCTD_LOG_LEVEL="warning") as system:
        for number, worker in enumerate(WORKERS, 1):
            await system.start_worker(number, FAKE_SLOW=str(given.seconds), GCTD_CONCURRENCY=str(given.concurrency), **worker)
        for url in sorted({url for url, _ in (*KINDS, *SLOW)}):
            await system.register(url)
        kinds = [SLOW[number % len(SLOW)] for number in range(given.slow)]
        kinds += [KINDS[number % len(KINDS)] for number in range(given.tasks - given.slow)]
        began = time.monotonic()
        ids = [(await system.post("/api/repos/analyze", {"repo_url": url, "engine": engine}))[0]["id"] for url, engine in kinds]
        waits = [await _discovery(system, number) for number in range(given.discoveries)]
        shown = [await system.get(f"/api/tasks/{id_}") for id_ in ids]
        busy = sum(task["status"] in {"queued", "running"} for task in shown)
        tasks = [await system.until_task(id_, "completed", "failed", "expired", timeout=600) for id_ in ids]
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {given.tasks} tasks, {given.slow} of {given.seconds} s")
        print(f"all ended after {time.monotonic() - began:.1f} s: {dict(Counter(task['status'] for task in tasks))}")
        p95 = quantiles(waits, n=20)[-1]
        print(f"{len(waits)} discoveries: median {median(waits):.2f} s, p95 {p95:.2f} s; {busy} tasks were left after them")
        return int(any(task["status"] != "completed" for task in tasks) or p95 >= LONGEST)


async def _discovery(system: TrackerSystem, number: int) -> float:
    began = time.monotonic()
    await system.register(f"https://example.com/b/r{number}")
    return time.monotonic() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--slow", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=5.0, help="that a slow task takes")
    parser.add_argument("--concurrency", type=int, default=2, help="scans that each worker does at a time")
    parser.add_argument("--discoveries", type=int, default=40)
    with tempfile.TemporaryDirectory(prefix="lanes-") as temporary:
        sys.exit(asyncio.run(main(parser.parse_args(), Path(temporary))))
