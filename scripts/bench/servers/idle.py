"""The processor time of the idle system, as `scripts/up` runs it, by process; next to a nats-server without clients.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/servers/idle.py [--runs 3] [--seconds 60] [--settle 60]

Each run starts the system on an empty directory, waits, and measures. Then it measures a nats-server on the same streams, without
a client: the least that the broker of such a system can use. All figures are in percent of one core.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from bench.helpers.measuring import show_machine
from eventlog.embedded.nats import find_binary

START = 120.0
"""Seconds within which the system has to be ready."""


def used(pids: Mapping[str, int], seconds: float) -> dict[str, float]:
    """The processor time of processes during `seconds`, in percent of one core, by name."""

    def spent() -> dict[str, float]:
        return {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in pids.items()}

    before, began = spent(), time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return {name: 100 * (after - before[name]) / passed for name, after in spent().items()}


def system(directory: Path, settle: float, seconds: float) -> dict[str, float]:
    """The figures of the whole system, the supervisor among them."""
    ready = directory / "ready.json"
    command = [sys.executable, "-m", "gctd", "up", "--port-base", "0", "--data-dir", str(directory), "--ready-file", str(ready)]
    with (directory / "console").open("wb") as console:
        supervisor = subprocess.Popen(command, stdout=console, stderr=console)
    try:
        end = time.monotonic() + START
        while not ready.exists():
            if supervisor.poll() is not None or time.monotonic() > end:
                raise RuntimeError((directory / "console").read_text(encoding="utf-8"))
            time.sleep(0.1)
        time.sleep(settle)
        return used({"up": supervisor.pid, **json.loads(ready.read_bytes())["pids"]}, seconds)
    finally:
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait()


def broker(directory: Path, settle: float, seconds: float) -> float:
    """The figure of a nats-server on the streams of that system."""
    command = [str(find_binary(None)), "--config", str(directory / "nats" / "nats-server.conf")]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(settle)
        return used({"nats-server": server.pid}, seconds)["nats-server"]
    finally:
        server.terminate()
        server.wait()


def show(name: str, figures: Sequence[float]) -> None:
    """Print a median with its minimum and maximum."""
    print(f"{name:30} {statistics.median(figures):5.2f} % ({min(figures):.2f} to {max(figures):.2f})", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=60)
    given = parser.parse_args()
    show_machine()
    systems, brokers = [], []
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory(prefix="bench-idle-") as directory:
            systems.append(system(Path(directory), given.settle, given.seconds))
            brokers.append(broker(Path(directory), given.settle, given.seconds))
    for name in systems[0]:
        show(name, [figures[name] for figures in systems])
    show("all processes", [sum(figures.values()) for figures in systems])
    show("nats-server without clients", brokers)


if __name__ == "__main__":
    main()
