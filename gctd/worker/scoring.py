"""Scoring a module: the engine runs as a process of its own, with limits, and ends with the attempt."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from gctd.engines import report as report_format
from gctd.engines.__main__ import FAILED, Order
from gctd.engines.engine import EngineInput
from gctd.engines.report import Report
from gctd.scan.process import MIB, Limits, run
from gctd.worker.work import WorkFailed

_LIMITS = Limits(memory=4096 * MIB, processes=64)


async def score(engine: str, given: EngineInput, job: Path, seconds: float) -> Report:
    """The engine's report on a module; `job` has the files in between. Raises WorkFailed."""
    order, written = job / "order.json", job / "report.json"
    await asyncio.to_thread(order.write_bytes, Order(engine=engine, given=given).written())
    finished = await run(
        [sys.executable, "-m", "gctd.engines", str(order), str(written)],
        cwd=job,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "LANG": "C.UTF-8"},
        timeout=max(seconds, 1.0),
        limits=_LIMITS,
    )
    if not finished.ok:
        reason = finished.output_tail.strip().rpartition("\n")[2][:500]
        permanent = finished.exit_code == FAILED
        raise WorkFailed(reason if permanent else f"the engine {finished.how()}: {reason}", permanent=permanent)
    return report_format.decode(await asyncio.to_thread(written.read_bytes))
