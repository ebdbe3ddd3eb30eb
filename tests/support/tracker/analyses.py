"""Analyses of a made-up repository: reports of two commits, and the view of an analysis."""

from __future__ import annotations

from typing import Any

import msgspec

from gctd.domain.analysis import Metadata, PackageProblem, Summary
from gctd.engines.report import Counts, FunctionEntry, Report, ReportWarning
from gctd.engines.score import crap, measured_summary, states_of, summarize, worst_first
from gctd.engines.state import State
from gctd.readmodel.views import AnalysisView

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def entry(
    name: str = "Parse",
    cyclomatic: int = 9,
    coverage: float | None = 0.0,
    *,
    file: str = "lib/a.go",
    line: int = 3,
    state: State | None = None,
) -> FunctionEntry:
    """A function of the report, by default without coverage and risky."""
    receiver, _, bare = name.rpartition(".")
    return FunctionEntry(
        file=file,
        package="lib",
        function=name,
        name=bare,
        receiver=receiver,
        line=line,
        end_line=line + 9,
        cyclomatic=cyclomatic,
        coverage=coverage,
        stmt_coverage=coverage,
        crap=crap(cyclomatic, coverage or 0.0),
        state=State.MEASURED if state is None else state,
    )


def report(*entries: FunctionEntry, warnings: tuple[ReportWarning, ...] = ()) -> Report:
    """The report of these functions."""
    return Report(
        engine="native",
        engine_version="1",
        crap_version="v0.5.1",
        summary=summarize([one.crap for one in entries], 30.0),
        measured=measured_summary(entries, 30.0),
        states=states_of(entries, 0),
        entries=worst_first(entries),
        counts=Counts(files=1, files_skipped=0, covered_functions=1, differing=0),
        warnings=warnings,
    )


def analysis(of: Report, **more: Any) -> AnalysisView:
    """The analysis with this report. `more` replaces its fields."""
    return AnalysisView(
        **{
            "analysis_id": "a" * 32,
            "task_id": "task-17",
            "repo_id": "b" * 32,
            "repo_url": "https://github.com/example/shop",
            "project": "svc/api",
            "ref": "main",
            "commit_sha": COMMIT,
            "summary": Summary(**msgspec.structs.asdict(of.summary)),
            "engine": "native",
            "engine_version": "1.1.0",
            "crap_version": "v0.5.1",
            "go_version": "go1.26.6",
            "flags": ("-short",),
            "report_digest": "c" * 64,
            "report_size": 1,
            "profile_digest": None,
            "profile_path": None,
            "metadata": Metadata(),
            "uncovered": (),
            "analyzed_at": "2026-11-20T12:00:00Z",
            "duration_ms": 1,
            "sequence": 9,
            "rescored_from": None,
            "measured": 9,
            "sandbox": "none",
            "known": Summary(**msgspec.structs.asdict(of.measured)),
            "states": dict(of.states),
            "platform": "linux/amd64",
            "source": "tests",
            "baseline": False,
            "sources_digest": None,
            "store_source": "always",
            **more,
        }
    )


REPORT = report(
    entry("Store.Put", 9, 0.0),
    entry("Huge", 40, 100.0, line=50),
    entry("Fine", 2, 100.0, line=100),
    entry("init", 8, 0.0, line=200),
    entry("init", 8, 0.0, line=300),
    entry("Unknown", 9, None, file="a b/ü:%|`.go"),
    warnings=(ReportWarning(kind="syntax", path="bad.go", reason="line 3: not Go"),),
)
VIEW = analysis(REPORT, uncovered=(PackageProblem(path="example.com/shop/x", reason="build failed: undefined: y"),))


BEFORE = report(entry("Store.Put", 9, 50.0), entry("Huge", 40, 100.0, line=50), entry("Gone", 2, 100.0), warnings=REPORT.warnings)
