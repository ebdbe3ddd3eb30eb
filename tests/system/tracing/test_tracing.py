"""One trace context from the request through events, jobs, workers and tables (W3C Trace Context)."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from eventlog import Commit
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

REPO = "https://example.com/owner/name"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A system that logs all it can, as JSON."""
    directory = tmp_path_factory.mktemp("tracing")
    async with tracker_system(directory, GCTD_LOG_LEVEL="debug", GCTD_LOG_FORMAT="json") as running:
        yield running


async def traced(system: TrackerSystem, path: str, body: object) -> tuple[str, Any]:
    """POST in a new trace; its id and the answer."""
    trace_id = secrets.token_hex(16)
    given = f"00-{trace_id}-{secrets.token_hex(8)}-00"
    async with system.http.post(system.url + path, json=body, headers={"traceparent": given}) as answer:
        assert answer.status in {201, 202}, await answer.text()
        assert re.fullmatch(f'traceparent;desc="00-{trace_id}-[0-9a-f]{{16}}-00"', answer.headers["Server-Timing"])
        return trace_id, await answer.json()


async def commits(system: TrackerSystem, subject: str) -> Sequence[Commit]:
    async with system.log() as log:
        head = await log.head()
        return [commit async for some in log.follow(after=0, until=head.last) for commit in some if commit.subject == subject]


def logged(path: Path, trace_id: str) -> list[dict[str, Any]]:
    """The lines of a log that bear that trace id."""
    lines = (json.loads(line) for line in path.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line.get("trace_id") == trace_id]


async def test_all_that_a_request_leads_to_is_in_its_trace(system: TrackerSystem) -> None:
    worker = await system.start_worker(1)
    registering, repo = await traced(system, "/api/repos", {"repo_url": REPO})
    await system.register(REPO)
    for commit in await commits(system, f"gctd.repo.{repo['ID']}"):
        assert commit.trace is not None
        assert commit.trace.trace_id == registering
    scheduling, (task,) = await traced(system, "/api/repos/analyze", {"repo_url": REPO})
    await system.until_task(task["id"], "completed")
    found = await commits(system, f"gctd.task.{task['id']}")
    types = [event.type for commit in found for event in commit.events]
    assert (types[0], "TaskStarted" in types, types[-1]) == ("TaskQueued", True, "TaskCompleted")
    assert {commit.trace and (commit.trace.trace_id, commit.trace.sampled) for commit in found} == {(scheduling, False)}
    queued, *attempt = [commit.trace.span_id for commit in found if commit.trace]
    assert len(set(attempt)) == 1, "an attempt is one span"
    assert queued not in attempt
    first = found[0].events[0].context
    assert {event.context.correlation for commit in found for event in commit.events} == {first.correlation}

    assert system.serve is not None

    def told() -> bool:
        serving = {line["event"] for line in logged(system.serve.log, scheduling)} if system.serve else set()
        working = {line["event"] for line in logged(worker.log, scheduling)}
        return {"request", "job put into the queue", "commit applied"} <= serving and {
            "attempt started",
            "attempt finished",
        } <= working

    await wait_until(told, timeout=30)
    await worker.stop()


async def test_an_attempt_that_was_lost_and_the_next_one_stay_in_the_trace(system: TrackerSystem) -> None:
    worker = await system.start_worker(1)
    await system.register(REPO)
    await worker.stop()
    await system.start_worker(2, FAKE_DIES_AT="1")
    await system.start_worker(3, FAKE_DIES_AT="1")
    trace_id, (task,) = await traced(system, "/api/repos/analyze", {"repo_url": REPO})
    await system.until_task(task["id"], "completed", timeout=60)
    found = await commits(system, f"gctd.task.{task['id']}")
    types = [event.type for commit in found for event in commit.events]
    assert types.count("TaskStarted") == 2, types
    assert [commit.trace and commit.trace.trace_id for commit in found] == [trace_id] * len(found)
