"""Commands that wait: their output during the wait, and no missed event over cuts, restarts and deletions."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from gctd.cli.tasks.follow import follow_tasks
from gctd.client.api import Client
from terminalkit.client.transport import Unavailable
from tests.support.programs.cli import gctd, running, running_on_terminal
from tests.support.tracker.fake_api import REPO_URL, FakeApi, analysis_document, problem, repo_document, task_document
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def stage(api: FakeApi, name: str, second: int, *, task: str = "task-1", attempt: int = 1) -> None:
    """Record that an attempt entered a stage."""
    at = f"2026-11-20T10:00:{second:02d}.000000Z"
    api.tasks[task] = api.tasks[task] | {"stage": name, "updated_at": at}
    await api.publish("stage", {"id": task, "attempt": attempt, "stage": name, "at": at})


async def life(api: FakeApi) -> None:
    """Two tasks: one completes at its second attempt, the other at its first."""
    await api.change(task_document(1, "running", second=1))
    await stage(api, "clone", 2)
    await stage(api, "test", 3)
    await api.change(task_document(1, "pending", second=4, reason="the network was away"))
    await api.change(task_document(2, "running", second=5, project="cmd/tool", worker="worker-2"))
    await api.change(task_document(2, "completed", second=6, project="cmd/tool", worker="worker-2"))
    await api.change(task_document(1, "running", second=7, attempt=2))
    await stage(api, "store", 8, attempt=2)
    await api.change(task_document(1, "completed", second=9, attempt=2))


def schedule(api: FakeApi) -> None:
    """Let `analyze` schedule two tasks that both have results."""
    api.scheduled = [task_document(1), task_document(2, project="cmd/tool")]
    api.results = {
        "task-1": analysis_document(entries=[("Parse", 42.5), ("Get", 2.0)]),
        "task-2": analysis_document("cmd/tool", entries=[("Run", 30.0)]),
    }


async def after_connecting(api: FakeApi, *tasks: str, reads: int = 1) -> None:
    """Wait until somebody follows the event stream and has read these tasks (task-1) for the last time before it."""
    paths = [f"/api/tasks/{task}" for task in tasks or ("task-1",)]
    await wait_until(lambda: api.resumed_from and all(len(api.seen("GET", path)) >= reads for path in paths), timeout=20)


async def connected_life(api: FakeApi) -> None:
    """`life`, once somebody follows the event stream."""
    await after_connecting(api, "task-1", "task-2")
    await life(api)


async def test_analyze_shows_each_change_then_the_worst_functions_of_all_projects(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    api.after_post = connected_life
    result = await gctd("repo", "analyze", REPO_URL, url=api.url, home=tmp_path)
    assert result.code == 0, result.err
    lines = [re.sub(r"  [0-9.hms]+$", "", line) for line in result.err.splitlines()]
    assert lines == [
        "task-1 .  queued",
        "task-2 cmd/tool  queued",
        "task-1 .  running, attempt 1/3 on worker-1",
        "task-1 .  running: clone, attempt 1/3 on worker-1",
        "task-1 .  running: test, attempt 1/3 on worker-1",
        "task-1 .  pending, attempt 1/3 (the network was away)",
        "task-2 cmd/tool  running, attempt 1/3 on worker-2",
        "task-2 cmd/tool  completed, attempt 1/3",
        "task-1 .  running, attempt 2/3 on worker-1",
        "task-1 .  running: store, attempt 2/3 on worker-1",
        "task-1 .  completed, attempt 2/3",
    ]
    assert result.err.splitlines()[-1].endswith("  9.0s")
    assert result.rows == [
        ["CRAP", "COMPLEXITY", "COVERAGE", "FUNCTION", "PROJECT", "LOCATION"],
        ["42.50", "6", "n/a", "Parse", ".", "parse.go:10"],
        ["30.00", "6", "66.7%", "Run", "cmd/tool", "run.go:10"],
        ["2.00", "6", "66.7%", "Get", ".", "get.go:11"],
        [""],
        ["PROJECT", "FUNCTIONS", "AVERAGE", "TOTAL", "RISKY", "NOT MEASURED", "COMMIT", "ENGINE", "TOOK"],
        [".", "2", "22.25", "44.50", "1", "0", "0123456789ab", "native", "12s"],
        ["cmd/tool", "1", "30.00", "30.00", "0", "0", "0123456789ab", "native", "12s"],
    ]


async def test_analyze_json_is_one_document_and_no_progress(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    api.after_post = connected_life
    arguments = ("--project", "p", "--ref", "v1", "--engine", "native", "--json")
    result = await gctd("repo", "analyze", REPO_URL, *arguments, url=api.url, home=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert list(result.json) == ["repo_url", "tasks", "analyses"]
    assert [task["status"] for task in result.json["tasks"]] == ["completed", "completed"]
    assert result.json["analyses"] == list(api.results.values())
    [request] = api.seen("POST", "/api/repos/analyze")
    assert request.body == {"repo_url": REPO_URL, "project": "p", "ref": "v1", "engine": "native"}


async def test_analyze_with_a_failed_task_shows_the_others_and_is_1(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    failed = task_document(2, "failed", second=3, project="cmd/tool", attempt=3, reason="build failed")

    async def script(server: FakeApi) -> None:
        await server.change(task_document(1, "completed", second=2))
        await server.change(failed)

    api.after_post = script
    result = await gctd("repo", "analyze", REPO_URL, "--json", url=api.url, home=tmp_path)
    assert result.code == 1
    assert [task["status"] for task in result.json["tasks"]] == ["completed", "failed"]
    assert [analysis["project"] for analysis in result.json["analyses"]] == ["."]
    assert result.error["message"] == "repo analyze: 1 of 2 tasks did not complete: task-2 (cmd/tool) failed: build failed"


async def test_functions_that_are_not_measured_are_counted_by_reason(api: FakeApi, tmp_path: Path) -> None:
    api.results["task-1"] = analysis_document(
        states={"measured": 2, "not_built": 9, "generated": 204, "build_failed": 0, "excluded": 3},
        measured={"average": 22.25, "combined": 44.5, "exceeded": 1, "total_funcs": 2},
    )
    result = await gctd("task", "result", "task-1", url=api.url, home=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.rows[-3:] == [["FUNCTIONS", "NOT MEASURED"], ["204", "generated"], ["9", "not built"]]


async def test_no_wait_schedules_and_ends(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    result = await gctd("repo", "analyze", REPO_URL, "--no-wait", url=api.url, home=tmp_path)
    assert (result.code, [row[:2] for row in result.rows[1:]]) == (0, [["task-1", "queued"], ["task-2", "queued"]])
    document = await gctd("repo", "analyze", REPO_URL, "--no-wait", "--json", url=api.url, home=tmp_path)
    assert document.json == {"repo_url": REPO_URL, "tasks": list(api.scheduled), "analyses": []}
    added = await gctd("repo", "add", REPO_URL, "--no-wait", "--json", url=api.url, home=tmp_path)
    assert added.json["Status"] == "registering"
    assert api.resumed_from == []


async def test_on_a_terminal_progress_is_drawn_over_itself_and_ends_with_the_last_states(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    async with running_on_terminal("repo", "analyze", REPO_URL, url=api.url, home=tmp_path, columns=100) as run:
        await run.until("queued")
        await after_connecting(api, "task-1", "task-2")
        await api.change(task_document(1, "running", second=1))
        await stage(api, "test", 2)
        await run.until("running: test, attempt 1/3 on worker-1")
        await api.change(task_document(1, "completed", second=3))
        await api.change(task_document(2, "completed", second=4, project="cmd/tool"))
        result = await run.result()
    assert result.code == 0
    assert "\x1b[2K" in result.out
    last_drawn = result.out.rpartition("\x1b[2K")[2]
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last_drawn)
    assert re.search(r"task-1 \. +completed, attempt 1/3 +3\.0s", plain)
    assert re.search(r"task-2 cmd/tool +completed, attempt 1/3 +4\.0s", plain)
    assert result.out.count("\x1b[?25l") == result.out.count("\x1b[?25h") == 1


async def test_progress_on_a_terminal_is_not_drawn_for_work_done_at_once(api: FakeApi, tmp_path: Path) -> None:
    api.repos[REPO_URL] = repo_document()
    async with running_on_terminal("repo", "add", REPO_URL, url=api.url, home=tmp_path) as run:
        result = await run.result()
    assert result.code == 0
    assert "\x1b[?25l" not in result.out


async def test_add_shows_the_state_until_it_is_ready_then_the_projects(api: FakeApi, tmp_path: Path) -> None:
    async def discover(server: FakeApi) -> None:
        await wait_until(lambda: len(server.seen("GET", "/api/repos/status")) == 1)
        await server.change_repo(repo_document("registering", StatusReason="the host was away"))
        await wait_until(lambda: len(server.seen("GET", "/api/repos/status")) == 2)
        await server.change_repo(repo_document(projects=[".", "cmd/tool"]))

    api.after_post = discover
    result = await gctd("repo", "add", REPO_URL, url=api.url, home=tmp_path)
    assert result.code == 0
    assert [re.sub(r"  [0-9.]+s$", "", line) for line in result.err.splitlines()] == [
        f"{REPO_URL}  registering",
        f"{REPO_URL}  registering (the host was away)",
        f"{REPO_URL}  ready",
        f"{REPO_URL} is ready at 0123456789ab: 2 projects",
    ]
    assert [row[0] for row in result.rows] == ["PROJECT", ".", "cmd/tool"]
    refreshed = await gctd("repo", "add", REPO_URL, "--refresh", "--json", url=api.url, home=tmp_path)
    assert refreshed.json == api.repos[REPO_URL]
    assert api.seen("POST", "/api/repos")[-1].query == {"refresh": "true"}


async def test_a_project_with_a_problem_is_shown_with_it(api: FakeApi, tmp_path: Path) -> None:
    document = repo_document(projects=[".", "bad"])
    document["Profile"]["projects"][1]["problem"] = "go.mod cannot be read"
    api.repos[REPO_URL] = document
    result = await gctd("repo", "add", REPO_URL, url=api.url, home=tmp_path)
    assert [row[-1] for row in result.rows] == ["PROBLEM", "", "go.mod cannot be read"]


async def test_nothing_is_missed_when_the_event_stream_is_cut_again_and_again(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    api.cut_after = 1
    api.after_post = connected_life
    result = await gctd("repo", "analyze", REPO_URL, url=api.url, home=tmp_path)
    assert result.code == 0
    assert result.err.count("\n") == 11
    assert len(api.resumed_from) >= 9


async def test_without_an_event_stream_states_are_read(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    api.always["GET", "/api/sse"] = problem(503, "too many clients follow the events")
    async with running("repo", "analyze", REPO_URL, url=api.url, home=tmp_path) as run:
        await run.until("task-1 .  queued")
        api.tasks["task-1"] = task_document(1, "running", second=1, stage="test")
        await run.until("task-1 .  running: test")
        api.tasks |= {
            "task-1": task_document(1, "completed", second=2),
            "task-2": task_document(2, "completed", second=2, project="cmd/tool"),
        }
        result = await run.result()
    assert result.code == 0


async def test_a_server_that_restarts_is_waited_for(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    async with running("repo", "analyze", REPO_URL, url=api.url, home=tmp_path) as run:
        await run.until("task-2 cmd/tool  queued")
        await after_connecting(api, "task-1", "task-2")
        port = api.port
        await api.stop()
        await api.change(task_document(1, "completed", second=2))
        await api.change(task_document(2, "completed", second=2, project="cmd/tool"))
        await api.start(port)
        result = await run.result()
    assert result.code == 0, result.err


async def test_an_older_state_never_replaces_a_later_one(api: FakeApi, tmp_path: Path) -> None:
    """The states that were read have three events that the stream has not sent yet."""
    api.tasks["task-1"] = task_document(1, "running", second=5, stage="test")
    api.ahead = 3
    async with running("task", "watch", "task-1", "--json", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        await api.publish("task", task_document(1, "running", second=1))
        await stage(api, "clone", 3)
        await api.publish("task", task_document(1, "running", second=5, stage="test"))
        await api.publish("task", task_document(7, "running", second=9))
        await stage(api, "store", 9, attempt=2)
        await api.publish("task", task_document(1, "completed", second=9))
        result = await run.result()
    assert [json.loads(line)["status"] for line in result.out.splitlines()] == ["running", "completed"]


async def test_a_task_of_a_worker_whose_clock_is_behind_is_followed_to_its_end(api: FakeApi, tmp_path: Path) -> None:
    """The server created it at 10:00:30 by its own clock."""
    api.tasks["task-1"] = task_document(1, second=30)
    async with running("task", "watch", "task-1", "--json", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        await api.change(task_document(1, "running", second=1))
        await stage(api, "test", 2)
        await api.change(task_document(1, "completed", second=3))
        result = await run.result()
    assert [json.loads(line)["status"] for line in result.out.splitlines()] == ["queued", "running", "running", "completed"]


async def test_a_reset_of_the_event_stream_makes_the_states_read_again(api: FakeApi, tmp_path: Path) -> None:
    api.tasks["task-1"] = task_document(1)
    async with running("task", "watch", "task-1", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        api.tasks["task-1"] = task_document(1, "completed", second=2)
        await api.publish("reset", {})
        result = await run.result()
    assert (result.code, result.rows[1][:2]) == (0, ["task-1", "completed"])


async def test_a_task_that_is_deleted_while_it_is_watched_has_ended(api: FakeApi, tmp_path: Path) -> None:
    api.tasks = {"task-1": task_document(1), "task-2": task_document(2, "completed", second=1)}
    async with running("task", "watch", "task-1", "task-2", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        await api.change(task_document(1, "failed", second=1, reason="cancelled", deleted=True))
        result = await run.result()
    assert (result.code, [row[1] for row in result.rows[1:]]) == (1, ["deleted", "completed"])
    assert "1 of 2 tasks did not complete: task-1 (.) deleted: cancelled" in result.err


async def test_a_task_that_is_gone_after_a_cut_has_ended(api: FakeApi, tmp_path: Path) -> None:
    api.tasks["task-1"] = task_document(1)
    async with running("task", "watch", "task-1", "--json", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        del api.tasks["task-1"]
        await api.publish("reset", {})
        result = await run.result()
    assert result.code == 1
    assert [json.loads(line).get("deleted") for line in result.out.splitlines()] == [None, True]


async def test_watch_without_names_is_a_line_for_each_change_of_any_task(api: FakeApi, tmp_path: Path) -> None:
    api.tasks = {"task-1": task_document(1, "running", second=1), "task-2": task_document(2, "completed", second=1)}
    async with running("task", "watch", url=api.url, home=tmp_path) as run:
        await run.until("task-1")
        await api.change(task_document(3, second=2, project="cmd/tool"))
        await run.until("task-3")
        await api.change(task_document(1, "completed", second=3))
        await run.until("completed")
    lines = run.out.decode().splitlines()
    assert [line.split("\t") for line in lines] == [
        ["2026-11-20T10:00:01Z", "task-1", REPO_URL, ".", "running, attempt 1/3 on worker-1"],
        ["2026-11-20T10:00:02Z", "task-3", REPO_URL, "cmd/tool", "queued"],
        ["2026-11-20T10:00:03Z", "task-1", REPO_URL, ".", "completed, attempt 1/3"],
    ]


async def test_watch_without_names_shows_a_task_that_is_retried(api: FakeApi, tmp_path: Path) -> None:
    api.tasks["task-1"] = task_document(1, "running", second=1)
    async with running("task", "watch", "--json", url=api.url, home=tmp_path) as run:
        await run.until("task-1")
        await api.change(task_document(1, "failed", second=2))
        await api.change(task_document(1, second=3, attempt=1))
        await run.until("queued")
    assert [json.loads(line)["status"] for line in run.out.decode().splitlines()] == ["running", "failed", "queued"]


async def test_another_log_on_the_same_server_is_followed(api: FakeApi, tmp_path: Path) -> None:
    """Its sequences are lower. The reset of the event stream announces it."""
    api.tasks["task-1"] = task_document(1)
    api.ahead = 50
    async with running("task", "watch", "task-1", url=api.url, home=tmp_path) as run:
        await after_connecting(api, reads=2)
        api.ahead = 0
        api.tasks["task-1"] = task_document(1, "completed", second=2)
        await api.publish("reset", {})
        result = await run.result()
    assert (result.code, result.rows[1][:2]) == (0, ["task-1", "completed"])


async def test_watch_until_terminal_follows_all_that_have_not_ended(api: FakeApi, tmp_path: Path) -> None:
    none = await gctd("task", "watch", "--until", "terminal", url=api.url, home=tmp_path)
    assert (none.code, none.out) == (0, "")
    assert "no task" in none.err
    api.tasks = {"task-1": task_document(1, hidden=True), "task-2": task_document(2, "failed", second=1)}
    async with running("task", "watch", "--until", "terminal", "--json", url=api.url, home=tmp_path) as run:
        await run.until("task-1")
        await after_connecting(api)
        await api.change(task_document(1, "completed", second=2))
        result = await run.result()
    assert result.code == 0
    assert [json.loads(line)["status"] for line in result.out.splitlines()] == ["queued", "completed"]


async def test_a_server_that_stays_away_ends_the_wait_with_unavailable(api: FakeApi) -> None:
    api.tasks["task-1"] = task_document(1)
    async with Client(api.url) as client, asyncio.timeout(20):
        followed = follow_tasks(client, [await client.task("task-1")], patience=0.3)
        assert (await anext(followed)).id == "task-1"
        await api.stop()
        with pytest.raises(Unavailable):
            await anext(followed)


async def test_work_over_the_time_limit_continues_without_the_command(api: FakeApi, tmp_path: Path) -> None:
    schedule(api)
    result = await gctd("repo", "analyze", REPO_URL, "--timeout", "3s", "--json", url=api.url, home=tmp_path)
    assert (result.code, result.out, result.error["code"]) == (124, "", "timeout")
    assert result.error["message"] == "repo analyze: not done within 3.0s; 2 tasks continue"
    assert result.error["hint"] == "gctd task watch task-1 task-2"
