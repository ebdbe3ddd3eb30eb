"""The result of a task as the body of an answer: an analysis with its report."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from gctd.engines import report as report_format
from gctd.engines.report import Report
from gctd.http.bodies import AnalysisBody
from gctd.http.services import Services
from gctd.readmodel.views import AnalysisView
from httpkit import Call


async def full_analysis(analysis: AnalysisView, call: Call[Services], *, entries: int | None = None) -> AnalysisBody:
    """Return an analysis with its report from the blob store. `entries` limits the entries."""
    stored = await call.services.blobs.get(analysis.report_digest)
    # A report of 50,000 functions takes a tenth of a second: not in the event loop.
    parts = await asyncio.to_thread(_report_parts, stored, entries)
    source = call.services.links.source(analysis.repo_url, analysis.commit_sha, analysis.project)
    return AnalysisBody.of(analysis, {"source": source, **parts})


def _report_parts(stored: bytes, entries: int | None) -> dict[str, Any]:
    report = report_format.keyed(report_format.decode(stored))
    plain = [msgspec.structs.replace(one, identity=msgspec.UNSET) for one in report.entries[:entries]]
    parts = {"entries": _raw(plain), "warnings": _raw(report.warnings), "excluded": _raw(_excluded(report))}
    if entries is None:
        parts["raw_output"] = _raw(report_format.raw_output(report))
    return parts


def _excluded(report: Report) -> list[dict[str, str | int]]:
    """The functions and the whole files (without function and line) that a rule leaves out, by place."""
    functions = [(one.file, one.line, one.function, one.reason) for one in report.excluded]
    places = sorted([*functions, *((one.file, 0, "", one.rule) for one in report.excluded_files)])
    return [dict(zip(("file", "line", "function", "rule"), place, strict=True)) for place in places]


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
