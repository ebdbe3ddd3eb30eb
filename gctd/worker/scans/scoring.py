"""Scoring a module: the engine runs as a separate process with limits, and ends with the attempt."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import attrs
import structlog

from gctd.domain.analysis import analysis_id
from gctd.engines import report as report_format
from gctd.engines.__main__ import FAILED, EngineRequest
from gctd.engines.engine import Engine, EngineInput
from gctd.engines.golang.parse_cache import ALL, FILE, make_room
from gctd.engines.report import Report
from gctd.scan.disk import MIB
from gctd.scan.isolation.files import Directory
from gctd.scan.isolation.output import Lines, OnLog
from gctd.scan.isolation.process import Limits, run
from gctd.scan.isolation.sandbox import Sandbox, View, python_files
from gctd.worker.work import WorkFailed

_log = structlog.get_logger(__name__)

_LIMITS = Limits(memory=4096 * MIB, processes=64)
_MOST_PROCESSES = 8
_REPORT = 1024 * MIB


def parse_cache(directory: Path, repo_id: str, project: str) -> Path:
    """Return the file in a worker's cache directory for an engine's parse results of a project, in a private directory."""
    return directory.absolute() / "parsed" / analysis_id(repo_id, project) / FILE


async def score(
    engine: Engine, given: EngineInput, profile: bytes | None, job: Path, seconds: float, sandbox: Sandbox, on_log: OnLog
) -> Report:
    """Return the engine's report on a module with a coverage profile. The engine runs in the sandbox, in several processes.

    The intermediate files are in a new folder in `job`, which no test has seen. The report is read through a descriptor of it.
    `on_log` receives the output of the engine. Of the caches of parsed files, the engine sees only the project's directory.
    Raises WorkFailed.
    """
    place = Path(tempfile.mkdtemp(prefix="engine-", dir=job))
    order, written = place / "order.json", place / "report.json"
    given = attrs.evolve(given, processes=min(_cores(), _MOST_PROCESSES))
    if profile is not None:
        given = attrs.evolve(given, profile=place / "profile")
        await asyncio.to_thread((place / "profile").write_bytes, profile)
    await asyncio.to_thread(order.write_bytes, EngineRequest(engine=engine.name, given=given).written())
    writable = [place]
    if given.cache is not None:
        given.cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        writable.append(given.cache.parent)
    view = View(cwd=place, scratch=job, readable=[*python_files(), given.repository], writable=writable)
    lines = Lines(on_log)
    with Directory.open(place) as opened:
        finished = await run(
            sandbox.around([sys.executable, "-m", "gctd.engines", str(order), str(written)], view),
            cwd=place,
            env={
                "PATH": os.defpath,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "LANG": "C.UTF-8",
                "TMPDIR": str(place),
            },
            timeout=max(seconds, 1.0),
            limits=_LIMITS,
            inputs=sandbox.inputs,
            files=sandbox.files(view),
            groups=sandbox.groups,
            on_output=lines.feed,
        )
        lines.end()
        if not finished.ok:
            reason = finished.output_tail.strip().rpartition("\n")[2][:500]
            permanent = finished.exit_code == FAILED
            raise WorkFailed(reason if permanent else f"the engine {finished.how()}: {reason}", permanent=permanent)
        text = await asyncio.to_thread(opened.read, written.name, _REPORT)
    if finished.output_tail:
        _log.warning("the engine has something to say", engine=engine.name, said=finished.output_tail)
    if given.cache is not None:
        await asyncio.to_thread(make_room, given.cache.parent.parent, ALL)
    return report_format.decode(text)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
