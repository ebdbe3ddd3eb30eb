"""Traces of an analysis at a collector: request, commit, dispatch, attempt with its stages, projection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pictures.trace import Collector, Span, picture

from eventlog.support import span_export, tracing
from eventlog.support.tracing import Trace
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

REPO = "https://example.com/owner/name"


@pytest_asyncio.fixture
async def traced(tmp_path: Path) -> AsyncIterator[tuple[TrackerSystem, Collector]]:
    async with Collector() as collector:
        exporting = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        async with tracker_system(tmp_path, **exporting) as system:
            await system.start_worker(1)
            await system.register(REPO)
            yield system, collector


async def analyse(system: TrackerSystem, trace: Trace) -> None:
    """Analyse the repository once more, in this trace."""
    body = {"repo_url": REPO, "again": True}
    headers = {"traceparent": str(trace)}
    async with system.http.post(f"{system.url}/api/repos/analyze", json=body, headers=headers) as answer:
        (task,) = await answer.json()
    await system.until_task(task["id"], "completed")


@pytest.mark.real
async def test_one_analysis_is_one_trace(traced: tuple[TrackerSystem, Collector]) -> None:
    system, collector = traced
    caller, unsampled = Trace.begin(), Trace(Trace.begin().trace_id, Trace.begin().span_id, sampled=False)
    await analyse(system, unsampled)
    await analyse(system, caller)

    def by_name() -> dict[str, list[Span]] | None:
        found: dict[str, list[Span]] = {}
        for span in collector.of(caller.trace_id):
            found.setdefault(span.name, []).append(span)
        wanted = {"POST /api/repos/analyze", "send GCTD", "send crap_jobs_scan", "process crap_jobs_scan", "test", "store"}
        projected = [span for span in found.get("process GCTD", []) if "messaging.consumer.group.name" in span.attributes]
        return found if wanted <= found.keys() and len(projected) >= 2 else None

    named = await wait_until(by_name, timeout=30)
    assert named is not None
    (request,), (attempt,) = named["POST /api/repos/analyze"], named["process crap_jobs_scan"]
    assert (request.parent, request.attributes["http.response.status_code"]) == (caller.span_id, "202")
    assert (request.service, attempt.service) == ("gctd-serve", "gctd-worker")
    assert (attempt.parent, attempt.links) == (request.id, [request.id])
    assert {span.parent for name in ("test", "store") for span in named[name]} == {attempt.id}
    assert {span.parent for span in named["send GCTD"]} >= {request.id, attempt.id}
    dispatched = next(span for span in named["process GCTD"] if span.id == named["send crap_jobs_scan"][0].parent)
    assert dispatched.links == [request.id]
    assert attempt.attributes["messaging.system"] == "nats"
    assert [span for span in collector.spans if span.trace == unsampled.trace_id] == []
    drawn = picture(collector.of(caller.trace_id))
    assert all(f">{name}<" in drawn for name in named)


def test_without_a_collector_nothing_is_exported_or_imported() -> None:
    stop = span_export.start("gctd")
    assert not tracing.recording_spans()
    stop()
