"""The logs of attempts: followed while they grow and read later, also after the loss of worker and broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import aiohttp
import attrs
import pytest

from tests.support.programs.cli import gctd
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"


@attrs.frozen
class Event:
    """An event of a log's stream; `place` is 0 if it bears none."""

    name: str
    place: int
    text: str


async def follow(system: TrackerSystem, id_: str, attempt: int = 1, after: int | None = None) -> AsyncGenerator[Event, None]:
    """The events of a log, to the end of the stream."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    url = f"{system.url}/api/tasks/{id_}/attempts/{attempt}/log/sse"
    async with system.http.get(url, headers=headers, timeout=aiohttp.ClientTimeout(total=30)) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        fields: dict[str, str] = {}
        async for raw in answer.content:
            line = raw.decode().rstrip("\r\n")
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                yield Event(fields["event"], int(fields.get("id", "0")), fields["data"])
                fields = {}


async def all_of(system: TrackerSystem, id_: str, attempt: int = 1, after: int | None = None) -> tuple[str, list[Event]]:
    """The text that a log's stream gives, and its events."""
    async with aclosing(follow(system, id_, attempt, after)) as stream:
        events = [event async for event in stream]
    return "".join(json.loads(event.text)["text"] for event in events if event.name == "log"), events


async def text_of(system: TrackerSystem, id_: str, attempt: int = 1) -> str:
    async with system.http.get(f"{system.url}/api/tasks/{id_}/attempts/{attempt}/log") as answer:
        assert (answer.status, answer.content_type, answer.charset) == (200, "text/plain", "utf-8")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return await answer.text()


async def schedule(system: TrackerSystem) -> str:
    (task,) = await system.post("/api/repos/analyze", {"repo_url": REPO})
    id_: str = task["id"]
    return id_


def said(text: str) -> list[str]:
    """The lines of a log without our own, which bear the time."""
    return [line for line in text.splitlines() if not line.startswith(">>> ")]


async def test_a_log_can_be_followed_live_and_read_later(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        go_on = tmp_path / "go on"
        await system.start_worker(1, FAKE_LINES="3", FAKE_UNTIL=str(go_on))
        await system.register(REPO)
        id_ = await schedule(system)
        following = asyncio.create_task(gctd("task", "log", id_, "--follow", url=system.url, home=tmp_path))
        await system.until_task(id_, "running")
        lines = [f"attempt 1 line {number}" for number in range(3)]

        async with aclosing(follow(system, id_)) as stream:
            first = await anext(stream)
            assert (await system.get(f"/api/tasks/{id_}"))["status"] == "running"
            assert said(json.loads(first.text)["text"]) == lines
            assert said(await text_of(system, id_)) == lines
            go_on.touch()
            live = [first, *[event async for event in stream]]
        assert live[-1].name == "end"
        assert json.loads(live[-1].text) == {"outcome": "completed", "reason": ""}
        assert (await system.get(f"/api/tasks/{id_}"))["status"] == "completed"

        stored = await text_of(system, id_)
        assert "".join(json.loads(event.text)["text"] for event in live[:-1]) == stored
        marks = [line.split()[2] for line in stored.splitlines() if line.startswith(">>> ")]
        assert marks == ["test", "store", "completed"]
        shown = await following
        assert (shown.code, shown.out) == (0, stored)
        assert shown.err.endswith(f"attempt 1 of {id_}: completed\n")
        for arguments, document in ((("--json",), {"attempt": 1, "log": stored}), (("--attempt", "1"), None)):
            shown = await gctd("task", "log", id_, *arguments, url=system.url, home=tmp_path)
            assert (shown.code, shown.json if document else shown.out) == (0, document or stored)
        assert (await gctd("task", "log", id_, "--attempt", "7", url=system.url, home=tmp_path)).code == 3
        (attempt,) = await system.get(f"/api/tasks/{id_}/attempts")
        assert attempt["log"] == {"size": len(stored), "cut": 0}
        assert (await all_of(system, id_))[0] == stored
        assert (await all_of(system, id_, after=first.place))[0] == stored[first.place :]
        assert [event.name for event in (await all_of(system, id_, after=len(stored)))[1]] == ["end"]
        for path in (f"{id_}/attempts/2/log", f"{id_}/attempts/2/log/sse", "task-1/attempts/1/log"):
            assert (await system.status(f"/api/tasks/{path}"))[0] == 404


async def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        go_on = tmp_path / "go on"
        await system.start_worker(1, FAKE_LINES="60000", FAKE_UNTIL=str(go_on))
        await system.register(REPO)
        id_ = await schedule(system)
        await system.until_task(id_, "running")
        go_on.touch()
        live, _ = await all_of(system, id_)
        stored = await text_of(system, id_)
        (attempt,) = await system.get(f"/api/tasks/{id_}/attempts")
        lines = said(stored)
        notice = f"[{attempt['log']['cut']} bytes are left out here]"
        assert (lines[0], lines[-1]) == ("attempt 1 line 0", "attempt 1 line 59999")
        assert attempt["log"]["size"] == len(stored) - len(notice) - 1 <= 512 * 1024
        assert lines.count(notice) == 1
        assert said(live)[0] == lines[0]
        assert live.splitlines()[-1] == stored.splitlines()[-1]
        numbers = [int(line.split()[-1]) for line in said(live) if "left out" not in line]
        assert numbers == sorted(set(numbers))


async def test_the_log_of_a_lost_worker_and_of_a_cancelled_task_can_be_read(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, FAKE_LINES="2", FAKE_SECONDS="4", FAKE_DIES_AT="1")
        await system.register(REPO)
        id_ = await schedule(system)
        await system.until_task(id_, "pending")
        assert said(await text_of(system, id_)) == ["attempt 1 line 0", "attempt 1 line 1"]
        following = asyncio.create_task(all_of(system, id_))

        await system.start_worker(2, FAKE_LINES="2", FAKE_SECONDS="60")
        await system.until_task(id_, "running")
        await system.post(f"/api/tasks/{id_}/cancel")

        async def kept() -> bool:
            return (await system.get(f"/api/tasks/{id_}/attempts"))[1]["log"] is not None

        await wait_until(kept, timeout=30, every=0.05)
        text = await text_of(system, id_, 2)
        assert said(text) == ["attempt 2 line 0", "attempt 2 line 1"]
        assert text.endswith(" ended from outside: cancelled\n")
        text, events = await following
        assert said(text) == ["attempt 1 line 0", "attempt 1 line 1"]
        assert json.loads(events[-1].text) == {"outcome": "lost", "reason": "worker worker-1 is gone"}


async def test_a_broker_that_is_away_costs_neither_the_attempt_nor_its_log(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        go_on = tmp_path / "go on"
        await system.start_worker(1, FAKE_LINES="2000", FAKE_SECONDS="4", FAKE_SLOWLY="true", FAKE_UNTIL=str(go_on))
        await system.register(REPO)
        id_ = await schedule(system)
        await system.until_task(id_, "running")
        following = asyncio.create_task(all_of(system, id_))
        await system.nats.kill()
        await asyncio.sleep(1)
        await system.nats.start()
        go_on.touch()
        task = await system.until_task(id_, "completed")
        assert task["attempt"] == 1
        stored = await text_of(system, id_)
        assert said(stored) == [f"attempt 1 line {number}" for number in range(2000)]
        assert (await following)[0] == stored
