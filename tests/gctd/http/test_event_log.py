"""The event log of a running system, for people: searched page by page, and how things were at any sequence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from eventlog.support.chain import CommitBody, CommitLost, EventBody, StateBody
from gctd.http.event_log import EventCategory
from tests.support.log.nats import plain_client
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

ANALYSIS = MadeUp(commit_sha="1" * 40, functions={"a.go:Parse": 42.0})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Project]:
    """A project with two analyses, by a worker that was paused and resumed."""
    directory: Path = tmp_path_factory.mktemp("eventlog")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        made = await Project.registered(system, directory / "analyses")
        await made.analyze(ANALYSIS, ANALYSIS)
        await system.post("/api/workers/worker-1/pause")
        await system.post("/api/workers/worker-1/unpause")
        yield made


async def all_pages(system: TrackerSystem, query: str) -> list[Any]:
    found: list[Any] = []
    url: str | None = f"{system.url}/api/log?{query}"
    while url:
        async with system.http.get(url) as answer:
            assert answer.status == 200, await answer.text()
            found += (await answer.json())["events"]
            url = str(answer.links["next"]["url"]) if "next" in answer.links else None
    return found


async def test_the_log_is_read_in_pages_from_either_end(project: Project) -> None:
    stored = await project.system.events()
    oldest = await all_pages(project.system, "order=oldest&limit=3")
    assert [(event["position"], event["type"]) for event in oldest] == [(str(one.position), one.type) for one in stored]
    assert await all_pages(project.system, "limit=4") == oldest[::-1]
    first = oldest[0]
    assert (first["sequence"], first["aggregate"], first["version"], first["problem"]) == (1, "gctd.worker.worker-1", 1, None)
    assert first["data"]["host"]
    page = await project.system.get("/api/log?from=2&to=3")
    assert (page["from"], page["to"], page["end"]) == (2, 3, stored[-1].position.sequence)
    assert {event["sequence"] for event in page["events"]} == {2, 3}


async def test_events_are_found_by_kind_type_aggregate_and_text(project: Project) -> None:
    async def types(query: str) -> list[str]:
        return [event["type"] for event in await all_pages(project.system, f"order=oldest&{query}")]

    assert await types("category=worker&type=WorkerPaused&type=WorkerUnpaused") == ["WorkerPaused", "WorkerUnpaused"]
    of_task = await types(f"aggregate=gctd.task.{project.tasks[0]}")
    assert (of_task[0], "TaskCompleted" in of_task) == ("TaskQueued", True)
    assert await types(f"text={ANALYSIS.commit_sha}&type=TaskCompleted") == ["TaskCompleted"] * 2
    assert "TaskQueued" not in await types("category=repo")
    assert await types("text=nothing-has-this") == []


async def test_a_task_is_shown_as_it_was_at_any_sequence(project: Project) -> None:
    task, system = project.tasks[0], project.system
    events = await all_pages(system, f"order=oldest&aggregate=gctd.task.{task}")
    now = await system.get(f"/api/tasks/{task}")
    seen = [(await system.get(f"/api/tasks/{task}?at={event['sequence']}"))["status"] for event in events]
    assert (seen[0], seen[-1]) == ("queued", "completed")
    assert await system.get(f"/api/tasks/{task}?at={events[-1]['sequence']}") == now
    before = events[0]["sequence"] - 1
    assert (await system.status(f"/api/tasks/{task}?at={before}"))[0] == 404
    state = await system.get(f"/api/log/state?aggregate=gctd.task.{task}&at={events[0]['sequence']}")
    assert (state["sequence"], state["state"]["status"], state["events"]) == (events[0]["sequence"], "queued", events[:1])
    latest = await system.get(f"/api/log/state?aggregate=gctd.task.{task}")
    assert (latest["sequence"], latest["state"]["status"]) == (events[-1]["sequence"], "completed")


async def test_aggregates_of_all_kinds_are_found(project: Project) -> None:
    for kind in EventCategory:
        assert await all_pages(project.system, f"aggregate=gctd.{kind}.none") == []
        assert (await project.system.status(f"/api/log/state?aggregate=gctd.{kind}.none"))[0] == 404
    (stored,) = await all_pages(project.system, "category=worker&type=WorkerStarted")
    assert stored in await all_pages(project.system, f"aggregate={stored['aggregate']}")


REFUSED = [
    ("/api/log?limit=0", 400),
    ("/api/log?category=product", 400),
    ("/api/log?aggregate=pantry.product.1", 400),
    ("/api/log?aggregate=gctd.task.*", 400),
    ("/api/log?cursor=bogus", 400),
    ("/api/log/state?aggregate=gctd.task.task-1", 404),
    ("/api/log/state", 400),
    ("/api/log/state?aggregate=gctd.worker.worker-1&at=999999", 409),
    ("/api/tasks/task-1?at=999999", 409),
    ("/api/tasks/task-1?at=0", 400),
]


async def test_a_wrong_search_is_refused(project: Project) -> None:
    for path, status in REFUSED:
        answered, body = await project.system.status(path)
        assert (path, answered) == (path, status), body


async def test_a_task_as_it_was_after_a_commit_that_cannot_be_read_or_is_lost_is_refused(tmp_path: Path) -> None:
    lost = msgspec.json.encode(CommitLost(sequence=2, operator="ann", reason="a bad disk"))
    events, state = [EventBody("CommitLost", msgspec.Raw(lost))], StateBody(msgspec.Raw(b"null"))
    tombstone = msgspec.json.encode(CommitBody(id="lost-2", at=datetime.now(UTC), prev=None, events=events, state=state))
    async with tracker_system(tmp_path) as system:
        async with plain_client(system.nats.url) as client:
            unreadable = await client.jetstream().publish("gctd.task.task-1", b"this is no commit")
            replaced = await client.jetstream().publish("gctd.task.task-2", tombstone)
        for id_, at, reason in (("task-1", unreadable.seq, "is not a commit"), ("task-2", replaced.seq, "a bad disk")):
            status, body = await system.status(f"/api/tasks/{id_}?at={at}")
            assert (status, reason in body["detail"]) == (409, True), body
            assert f"gctd.task.{id_} as it was at sequence {at} cannot be read" in body["detail"]
        state_of = await system.status(f"/api/log/state?aggregate=gctd.task.task-1&at={unreadable.seq}")
        assert (state_of[0], "cannot be read" in state_of[1]["detail"]) == (409, True)
