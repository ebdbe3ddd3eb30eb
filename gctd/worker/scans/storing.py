"""The analysis of a scan, with its bodies in the blob store."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import msgspec

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Analysis, Blob, Metadata, PackageProblem, Summary, analysis_id, profile_path
from gctd.domain.options import parse_crap_args
from gctd.domain.task.state import Task
from gctd.engines import report as report_format
from gctd.engines.measurement import encode_facts
from gctd.engines.report import Report
from gctd.scan.git.checkout import Checkout
from gctd.worker.scans.measuring import MeasuredRun


async def store_analysis(
    blobs: Blobs,
    task: Task,
    checkout: Checkout,
    run: MeasuredRun,
    report: Report,
    uncovered: tuple[PackageProblem, ...],
    metadata: Metadata,
    started: float,
    *,
    sources: Blob | None,
    store_source: str,
    projects: tuple[str, ...],
) -> Analysis:
    """Store the bodies of a scan, and return its analysis.

    The bodies come first: an event only ever names existing blobs.
    """
    stored = await blobs.put(report_format.encode(report))
    profile, path = await _kept(blobs, task, checkout, run)
    return Analysis(
        id=analysis_id(task.repo_id, task.project),
        ref=checkout.ref,
        commit_sha=checkout.commit_sha,
        summary=Summary(**msgspec.structs.asdict(report.summary)),
        engine=report.engine,
        engine_version=report.engine_version,
        crap_version=report.crap_version,
        go_version=run.go_version,
        flags=(*run.flags, *parse_crap_args(task.config.crap_args or ()).argv()),
        report=Blob(digest=stored.digest, size=stored.size),
        analyzed_at=datetime.now(UTC),
        duration_ms=round((time.monotonic() - started) * 1000),
        profile=profile,
        profile_path=path,
        metadata=metadata,
        uncovered=uncovered,
        sandbox=run.sandbox,
        measured=Summary(**msgspec.structs.asdict(report.measured)),
        states=dict(report.states),
        tests=await _facts(blobs, task, run),
        platform="" if run.tests is None else run.tests.platforms,
        sources=sources,
        store_source=store_source,
        projects=projects,
        source=task.rescores.source if task.rescores else "upload" if task.uploads else "tests",
    )


async def _facts(blobs: Blobs, task: Task, run: MeasuredRun) -> Blob | None:
    """Store the outcome of the tests. Return its blob."""
    if task.rescores is not None:
        return task.rescores.tests
    if run.tests is None:
        return None
    stored = await blobs.put(encode_facts(run.tests))
    return Blob(digest=stored.digest, size=stored.size)


async def _kept(blobs: Blobs, task: Task, checkout: Checkout, run: MeasuredRun) -> tuple[Blob | None, str | None]:
    """Store the coverage profile. Return its blob and its name in the blob store; None if no profile exists."""
    if task.rescores is not None:
        return task.rescores.profile, task.rescores.profile_path
    if run.profile is None:
        return None, None
    path = profile_path(task.repo_id, task.project, checkout.commit_sha)
    stored = await blobs.put(run.profile)
    await blobs.link(path, stored)
    return Blob(digest=stored.digest, size=stored.size), path
