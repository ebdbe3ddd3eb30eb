"""The event stream of the running tracker: every event once and in order, whatever happens to the connection (promise I5)."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from openapi_schema_validator import OAS31Validator

from eventlog.commit import Position
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task.events import TaskLogStored, TaskProgressed, TaskStageReached
from gctd.domain.task.state import Task
from gctd.http.frames import show
from gctd.readmodel.changes import DECIDERS
from tests.support.log.samples import sample
from tests.support.pace import within
from tests.support.programs.cli import gctd
from tests.support.tracker.system import tracker_system
from tests.support.waiting import wait_until
from tests.support.web.listener import Listener

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"


async def test_a_client_that_is_cut_off_sees_every_event_once_and_in_order(tmp_path: Path) -> None:
    seed = 20261120
    random = Random(seed)
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_SECONDS="0.02", FAKE_PROJECTS="4", GCTD_CONCURRENCY="4")
        await system.register(REPO)
        async with system.log() as log:
            first = (await log.head()).last
        async with Listener(f"{system.url}/api/sse", cut_after=lambda: random.randint(1, 12), after=first) as listener:
            for _ in range(10):
                await system.post("/api/repos/analyze", {"repo_url": REPO})
            await wait_until(lambda: listener.connections > 10)
            tasks = await system.get("/api/tasks")
            for one in tasks:
                await system.until_task(one["id"], "completed")
            expected = [event for event in await system.events() if event.position.sequence > first]
            await listener.until_seen(len(expected))
    assert listener.ids == [str(event.position) for event in expected], f"seed {seed}"
    assert listener.resets == 0
    assert listener.connections > 10


async def test_frames_tell_the_task_as_it_was_after_each_event(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_FAILS="1")
        await system.register(REPO)
        async with Listener(f"{system.url}/api/sse") as listener:
            (queued,) = await system.post("/api/repos/analyze", {"repo_url": REPO})
            await system.until_task(queued["id"], "completed")
            await system.post(f"/api/tasks/{queued['id']}/seen")
            await wait_until(lambda: any(json.loads(data).get("seen") for _, data in listener.events))
    frames = [json.loads(data) for name, data in listener.events if name == "task"]
    assert [(frame["status"], frame["attempt"]) for frame in frames] == [
        ("queued", 0),
        ("running", 1),
        ("pending", 1),
        ("running", 2),
        ("completed", 2),
        ("completed", 2),
    ]
    named = {"id", "repo_url", "ref", "status", "attempt", "max_attempts", "created_at", "updated_at", "seen", "hidden"}
    assert all(named <= frame.keys() for frame in frames)
    assert ["analysis_id" in frame for frame in frames] == [False] * 4 + [True] * 2
    assert [frame["seen"] for frame in frames] == [False] * 5 + [True]


async def test_the_document_describes_every_event_of_the_stream_and_no_other(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        document = await system.get("/api/openapi.json")
    [media] = document["paths"]["/api/sse"]["get"]["responses"]["200"]["content"].values()
    described = media["schema"]["x-events"]
    states = {cls: sample(cls) for name, _, cls in REGISTRY.known() if name in DECIDERS}
    task = states[Task]
    changes = [
        *((None, state) for state in states.values()),
        *((sample(event), task) for event in (TaskStageReached, TaskProgressed, TaskLogStored)),
        (None, attrs.evolve(task, deleted=False)),
        (None, attrs.evolve(states[Repo], status=RepoStatus.REMOVED)),
    ]
    sent = [("reset", b'{"reason":"the stream was recreated"}'), ("heartbeat", b"{}")]
    for event, state in changes:
        recorded = SimpleNamespace(data=event, position=Position(7, 0))
        happened: Any = SimpleNamespace(event=recorded, after=state, before=None, sequence=7)
        sent += [(frame.event, frame.data) for frame in show(happened)]
    assert {name for name, _ in sent} == described.keys()
    for name, data in sent:
        body = json.loads(data)
        schema = document["components"]["schemas"][described[name]["$ref"].rpartition("/")[2]]
        assert body.keys() <= schema["properties"].keys(), name
        errors = OAS31Validator(schema | {"components": document["components"]}).iter_errors(body)
        assert list(errors) == [], name
    removed = [json.loads(data).get("deleted") for name, data in sent if name in {"task", "repo"}]
    assert removed == [None, True, None, True]


async def test_the_progress_of_tests_is_in_the_task_in_its_attempt_and_in_the_frames(tmp_path: Path) -> None:
    progress = {"done": 12, "total": 31, "running": ["x/y"], "unit": "packages"}
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_PROGRESS="1", FAKE_UNTIL=str(tmp_path / "go"))
        await system.register(REPO)
        async with Listener(f"{system.url}/api/sse") as listener:
            (queued,) = await system.post("/api/repos/analyze", {"repo_url": REPO})
            await wait_until(lambda: any("progress" in json.loads(data) for name, data in listener.events if name == "stage"))
            task = await system.get(f"/api/tasks/{queued['id']}")
            assert (task["stage"], task["progress"]) == ("test", progress)
            (tool,) = (await gctd("task", "list", "--json", url=system.url, home=tmp_path)).json
            assert tool["progress"] == progress
            (tmp_path / "go").touch()
            assert "progress" not in await system.until_task(queued["id"], "completed")
            (attempt,) = await system.get(f"/api/tasks/{queued['id']}/attempts")
            assert [stage.get("progress") for stage in attempt["stages"]] == [progress, None]
    frames = [json.loads(data) for name, data in listener.events if name == "stage"]
    assert [(frame["stage"], frame.get("progress")) for frame in frames] == [("test", None), ("test", progress), ("store", None)]


async def test_the_server_ends_at_once_however_many_follow_its_events(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system, AsyncExitStack() as clients:
        assert system.serve is not None
        streams = [await clients.enter_async_context(system.http.get(f"{system.url}/api/sse")) for _ in range(50)]
        assert {stream.status for stream in streams} == {200}
        with within(5):  # it takes 30 s if the server waits for its streams
            assert await system.serve.stop() == 0
        ends = await asyncio.gather(*(stream.read() for stream in streams))
        assert all(end.endswith(b"\n\n") for end in ends), "a clean end, not a broken connection"
