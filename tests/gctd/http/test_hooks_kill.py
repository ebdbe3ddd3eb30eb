"""The tracker is killed between any two steps of a delivery: the forge has one status and one comment all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.gctd.http.test_hooks import OLD, RISKY, write_forges
from tests.support.tracker.forge_double import ForgeDouble, forge_double, github_pull, signed
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

REPO = "https://github.test/owner/name"
COMMITS = [f"{number}" * 40 for number in range(1, 6)]


@pytest.fixture
async def double() -> AsyncIterator[ForgeDouble]:
    async with forge_double() as running:
        yield running


@pytest.fixture
async def system(tmp_path: Path, double: ForgeDouble) -> AsyncIterator[TrackerSystem]:
    OLD.write(tmp_path / "analyses", OLD.commit_sha)
    for commit in COMMITS:
        attrs.evolve(RISKY, commit_sha=commit).write(tmp_path / "analyses", commit)
    file = write_forges(tmp_path, double.url)
    async with tracker_system(tmp_path, GCTD_FORGES_FILE=str(file)) as running:
        await running.start_worker(1, FAKE_ANALYSES=str(tmp_path / "analyses"))
        await running.register(REPO)
        yield running


async def deliver(system: TrackerSystem, number: int) -> str:
    """Deliver a pull request; the id of the delivery in the log."""
    body = github_pull("owner/name", number, COMMITS[number - 1], OLD.commit_sha)
    headers = signed(body, event="pull_request", delivery=f"d-{number}")
    status, answer = await system.status("/api/hooks/github", "POST", data=body, headers=headers)
    assert status == 202, answer
    id_: str = answer["id"]
    return id_


async def until_event(system: TrackerSystem, id_: str, kind: str) -> list[Any]:
    """Wait until a delivery has an event of this type; its events."""

    async def has() -> Any:
        events = await system.events(f"gctd.delivery.{id_}")
        return events if any(event.type == kind for event in events) else None

    found: list[Any] = await wait_until(has, timeout=120, every=0.02)
    return found


async def kill_and_start(system: TrackerSystem) -> None:
    assert system.serve is not None
    await system.serve.kill()
    await system.start_serve()


def check_once(double: ForgeDouble, number: int) -> None:
    """The forge has one status and one comment for this pull request, and each was sent once."""
    (status,) = double.statuses[COMMITS[number - 1]]
    assert status["state"] == "failure", status
    assert len(double.comments[number]) == 1
    paths = [path for _, path in double.sent]
    assert paths.count(f"/repos/owner/name/statuses/{COMMITS[number - 1]}") == 1
    assert paths.count(f"/repos/owner/name/issues/{number}/comments") == 1


@pytest.mark.long
async def test_a_kill_after_each_event_of_a_delivery(system: TrackerSystem, double: ForgeDouble) -> None:
    id_ = await deliver(system, 1)
    await kill_and_start(system)
    for kind in ("DeliveryScheduled", "ReportDecided", "ReportDelivered"):
        await until_event(system, id_, kind)
        await kill_and_start(system)
    events = await until_event(system, id_, "DeliveryEnded")
    assert events[-1].data.reported
    check_once(double, 1)
    kinds = [event.type for event in events]
    assert [kinds.count(kind) for kind in ("DeliveryReceived", "DeliveryScheduled", "ReportDecided", "DeliveryEnded")] == [1] * 4
    queued = [event for event in await system.events() if event.type == "TaskQueued" and event.data.commit_sha == COMMITS[0]]
    assert len(queued) == 1


async def test_a_kill_before_and_after_the_effect_of_each_request(system: TrackerSystem, double: ForgeDouble) -> None:
    """The answer to a request is lost with the tracker; the next one looks at the forge first."""
    points = {("before", "status"): 2, ("after", "status"): 3, ("before", "comment"): 4, ("after", "comment"): 5}
    reached: set[tuple[str, str]] = set()

    async def pause(when: str, kind: str, key: str) -> None:
        number = points[when, kind]
        if key == (COMMITS[number - 1] if kind == "status" else str(number)) and (when, kind) not in reached:
            reached.add((when, kind))
            await asyncio.Event().wait()

    double.pause = pause
    ids = {number: await deliver(system, number) for number in points.values()}
    await wait_until(lambda: len(reached) == len(points), timeout=120)
    await kill_and_start(system)
    for number, id_ in ids.items():
        events = await until_event(system, id_, "DeliveryEnded")
        assert events[-1].data.reported, events
        check_once(double, number)
