"""Progress without a terminal, and the messages to a user who waits in vain."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import msgspec
import pytest

from gctd.cli import session as session_module
from gctd.cli.root import PROGRAM
from gctd.cli.session import Session
from gctd.cli.tasks import progress as module
from gctd.cli.tasks.progress import ProgressItem, progress, task_item
from gctd.client.api import Client
from gctd.client.resources import Progress, Task
from terminalkit.client.service import parse
from terminalkit.display.output import Output
from terminalkit.invocation import Invocation
from tests.support.tracker.fake_api import FakeApi, problem, task_document, worker_document
from tests.support.waiting import wait_until

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


def item(key: str, state: str, *, ended: bool = False) -> ProgressItem:
    return ProgressItem(key=key, name=key, state=state, phase=state, asked=NOW, changed=NOW, ended=ended)


def output(*, quiet: bool = False, verbose: bool = False) -> Output:
    return Output(stdout=io.StringIO(), stderr=io.StringIO(), quiet=quiet, verbose=verbose)


def written(to: Output) -> str:
    assert isinstance(to.stderr, io.StringIO)
    return to.stderr.getvalue()


async def test_a_long_wait_shows_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGN_OF_LIFE", 0.05)
    to = output()
    async with progress(to) as display:
        display.show(item("a", "running"))
        display.show(item("b", "queued"))
        display.show(item("c", "queued"))
        display.show(item("d", "completed", ended=True))
        await wait_until(lambda: "a  running; 2 queued  " in written(to))
    assert written(to).count("\n") >= 5


@pytest.mark.parametrize(
    ("stage", "progress", "shown"),
    [
        ("test", None, "running: test, attempt 1/3"),
        ("toolchain", Progress(done=20, total=68, unit="MB"), "running: downloading Go, once per machine, 20 of 68 MB"),
        (
            "stdlib",
            Progress(done=41, total=123),
            "running: preparing Go's standard library, built once per machine, 41 of 123 packages",
        ),
    ],
)
def test_a_long_stage_has_its_reason_and_its_progress(stage: str, progress: Progress | None, shown: str) -> None:
    task = parse(Task, {**task_document(1, "running", attempt=1), "stage": stage})
    assert task_item(msgspec.structs.replace(task, progress=progress)).state.startswith(shown)


async def test_there_is_no_sign_of_life_once_all_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGN_OF_LIFE", 0.02)
    to, other = output(), output()
    async with progress(to) as display, progress(other) as busy:
        display.show(item("d", "completed", ended=True))
        busy.show(item("a", "running"))
        await wait_until(lambda: written(other).count("a  running  ") > 5)
    assert written(to).count("\n") == 1


async def test_the_same_state_is_said_once() -> None:
    to = output()
    async with progress(to) as display:
        for _ in range(3):
            display.show(item("a", "running"))
    assert written(to).count("\n") == 1


async def test_quiet_shows_nothing() -> None:
    to = output(quiet=True)
    async with progress(to) as display:
        display.show(item("a", "running"))
    assert written(to) == ""


@pytest.mark.real
@pytest.mark.parametrize(
    ("workers", "note"),
    [
        ([], "note: no worker is running; start one with: gctd worker\n"),
        ([worker_document(status="gone")], "note: no worker is running; start one with: gctd worker\n"),
        ([worker_document(status="gone"), worker_document(status="paused")], "note: every worker is paused"),
        ([worker_document(status="paused"), worker_document()], ""),
    ],
)
async def test_a_wait_without_a_worker_is_reported(
    monkeypatch: pytest.MonkeyPatch, api: FakeApi, workers: list[dict[str, object]], note: str
) -> None:
    monkeypatch.setattr(session_module, "WAITED", 0.01)
    api.workers = workers
    to = output(verbose=True)
    async with Client(api.url, trace=to.detail) as client:
        session = Session(client, Invocation(to, PROGRAM.explainer))
        async with session.missing_worker_told(lambda: True):
            await wait_until(lambda: "/api/workers 200" in written(to) and note in written(to))
    assert ("note:" in written(to)) is bool(note)


@pytest.mark.real
async def test_after_the_wait_no_missing_worker_is_reported(monkeypatch: pytest.MonkeyPatch, api: FakeApi) -> None:
    monkeypatch.setattr(session_module, "WAITED", 0.0)
    api.workers = []
    to, asked = output(), 0

    def waiting() -> bool:
        nonlocal asked
        asked += 1
        return False

    async with Client(api.url) as client, Session(client, Invocation(to, PROGRAM.explainer)).missing_worker_told(waiting):
        await wait_until(lambda: asked)
    assert (written(to), api.requests) == ("", [])


@pytest.mark.real
async def test_workers_that_cannot_be_had_do_not_end_the_wait(monkeypatch: pytest.MonkeyPatch, api: FakeApi) -> None:
    monkeypatch.setattr(session_module, "WAITED", 0.0)
    api.always["GET", "/api/workers"] = problem(503, "the broker is away")
    to = output(verbose=True)
    async with (
        Client(api.url) as client,
        Session(client, Invocation(to, PROGRAM.explainer)).missing_worker_told(lambda: True),
    ):
        await wait_until(lambda: "the workers are not known: the broker is away" in written(to))
