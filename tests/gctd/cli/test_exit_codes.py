"""Failures of commands: the exit code, the text on standard error, and an empty standard output."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gctd.cli.root import PROGRAM
from terminalkit.failure import MEANINGS, ExitCode
from tests.gctd.cli.conftest import Here
from tests.support.programs.cli import Result, environment, gctd, gctd_on_terminal, running
from tests.support.tracker.fake_api import REPO_URL, FakeApi, Reply, problem, repo_document, task_document
from tests.support.waiting import wait_until

FAILING = [
    pytest.param(("task", "list"), problem(500, "it broke"), 1, "failure", None, id="internal error"),
    pytest.param(("task", "list"), Reply(200, b"<html>"), 2, "usage", "--url", id="no answer of ours"),
    pytest.param(
        ("repo", "add", "ftp://x"), problem(400, "repo_url: https only"), 2, "usage", "gctd repo add --help", id="bad value"
    ),
    pytest.param(("task", "show", "task-9"), None, 3, "not_found", "gctd task list --show-seen", id="no such task"),
    pytest.param(("repo", "show", REPO_URL), None, 3, "not_found", f"gctd repo add {REPO_URL}", id="no such repository"),
    pytest.param(("repo", "history", REPO_URL), None, 3, "not_found", f"gctd repo add {REPO_URL}", id="not registered"),
    pytest.param(("worker", "pause", "w9"), None, 3, "not_found", "gctd worker list", id="no such worker"),
    pytest.param(("task", "list"), problem(401, "a token is needed"), 4, "not_allowed", "GCTD_AUTH_TOKEN", id="no token"),
    pytest.param(("task", "list"), problem(403, "not from there"), 4, "not_allowed", "GCTD_AUTH_TOKEN", id="forbidden"),
    pytest.param(("task", "result", "task-9"), None, 5, "conflict", None, id="no result yet"),
    pytest.param(("repo", "analyze", REPO_URL), problem(409, "still registering"), 5, "conflict", None, id="still registering"),
    pytest.param(("task", "list"), problem(503, "the broker is away"), 6, "unavailable", "try again later", id="broker away"),
]

PATHS = {
    ("task", "list"): ("GET", "/api/tasks"),
    ("repo", "add"): ("POST", "/api/repos"),
    ("repo", "analyze"): ("POST", "/api/repos/analyze"),
}


@pytest.mark.real
@pytest.mark.parametrize(("command", "reply", "code", "name", "hint"), FAILING)
async def test_a_failure_has_its_code_a_reason_and_a_remedy(
    api: FakeApi, tmp_path: Path, command: tuple[str, ...], reply: Reply | None, code: int, name: str, hint: str | None
) -> None:
    if reply is not None:
        api.always[PATHS[command[0], command[1]]] = reply
    told = await gctd(*command, url=api.url, home=tmp_path)
    assert (told.code, told.out) == (code, "")
    lines = told.err.splitlines()
    assert lines[0].startswith(f"error: {command[0]} {command[1]}")
    assert (hint is None) == (len(lines) == 1)
    assert hint is None or (lines[1].startswith("hint: ") and hint in lines[1])
    machine = await gctd(*command, "--json", url=api.url, home=tmp_path)
    assert (machine.code, machine.out) == (code, "")
    assert machine.error["code"] == name
    assert lines[0] == f"error: {machine.error['message']}"
    assert (hint is None) == ("hint" not in machine.error)


@pytest.mark.real
async def test_a_wrong_token_is_told_from_a_missing_one(api: FakeApi, tmp_path: Path) -> None:
    api.always["GET", "/api/tasks"] = problem(401, "this token is unknown")
    missing = await gctd("task", "list", url=api.url, home=tmp_path)
    assert f"{api.url} asks for a token, and none is set: this token is unknown\n" in missing.err
    wrong = await gctd("task", "list", url=api.url, home=tmp_path, env={"GCTD_AUTH_TOKEN": "not-this-one"})
    assert f"{api.url} does not accept the token: this token is unknown\n" in wrong.err


@pytest.mark.real
async def test_a_server_that_is_not_there_is_6(tmp_path: Path) -> None:
    result = await gctd("task", "list", "--json", url="http://127.0.0.1:1", home=tmp_path)
    assert (result.code, result.error["code"]) == (6, "unavailable")
    assert "cannot reach http://127.0.0.1:1: Connection refused" in result.error["message"]
    assert "gctd up" in result.error["hint"]


@pytest.mark.real
async def test_on_a_terminal_the_words_error_and_hint_have_a_colour(tmp_path: Path) -> None:
    result = await gctd_on_terminal("task", "list", url="http://127.0.0.1:1", home=tmp_path)
    assert result.out.startswith("\x1b[31merror:\x1b[0m task list: ")
    assert "\n\x1b[36mhint:\x1b[0m " in result.out


@pytest.mark.real
async def test_a_command_over_its_time_ends_with_124(api: FakeApi, tmp_path: Path) -> None:
    api.always["GET", "/api/tasks"] = Reply(200, [], delay=30)
    result = await gctd("task", "list", "--timeout", "300ms", "--json", url=api.url, home=tmp_path)
    assert (result.code, result.error["code"]) == (124, "timeout")
    assert "0.3s" in result.error["message"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--nonsense",), "gctd --help"),
        (("nonsense",), "gctd --help"),
        (("repo", "nonsense"), "gctd repo --help"),
        (("repo", "add"), "gctd repo add --help"),
        (("repo", "analyze", REPO_URL, "--top", "-1"), "gctd repo analyze --help"),
        (("task", "list", "--status", "odd"), "gctd task list --help"),
        (("task", "list", "--timeout", "soon"), "gctd task list --help"),
        (("task", "watch", "task-1", "--until", "forever"), "gctd task watch --help"),
        (("task", "list", "--url", "localhost:8080"), "gctd task list --help"),
        (("completion", "tcsh"), "gctd completion --help"),
    ],
)
def test_a_wrong_command_line_is_2(here: Here, arguments: tuple[str, ...], hint: str) -> None:
    told = here(*arguments)
    assert (told.code, told.out) == (2, "")
    error, second = told.err.splitlines()
    assert error.startswith("error: ")
    assert second == f"hint: {hint}"
    if arguments[0] in {"task", "repo"}:
        machine = here(*arguments, "--json")
        assert (machine.code, machine.out, machine.error["code"]) == (2, "", "usage")


def test_a_file_whose_suffix_names_no_form_is_refused_before_the_tests_run(here: Here) -> None:
    told = here("check", "--output", "result.md", "--output", "result.txt")
    assert (told.code, told.out) == (2, "")
    assert "--output result.txt: the suffix has to be one of .json, .md, .sarif" in told.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("repso",), "'repo'"),
        (("repo", "anlyze", REPO_URL), "'analyze'"),
        (("repo", "analyze", REPO_URL, "--proj", "x"), "'--project'"),
        (("task", "list", "--status", "complete"), "completed"),
        (("serve", "--log-level", "warnin"), "warning"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_closest_one(here: Here, arguments: tuple[str, ...], meant: str) -> None:
    told = here(*arguments)
    assert told.code == 2
    assert f"did you mean {meant}?" in told.err.lower()


@pytest.mark.real
@pytest.mark.parametrize("command", ["history", "diff"])
async def test_one_of_several_projects_has_to_be_named(api: FakeApi, tmp_path: Path, command: str) -> None:
    api.repos[REPO_URL] = repo_document(projects=[".", "cmd/tool"])
    told = await gctd("repo", command, REPO_URL, url=api.url, home=tmp_path)
    assert (told.code, told.out) == (2, "")
    assert "there are 2 projects: name one with --project: ., cmd/tool" in told.err
    named = await gctd("repo", command, REPO_URL, "--project", "cmd/tool", url=api.url, home=tmp_path)
    assert named.code == 3  # this server has no analyses


def test_a_group_without_a_command_shows_its_help_and_is_2(here: Here) -> None:
    for arguments in ((), ("repo",), ("task",)):
        result = here(*arguments)
        assert (result.code, result.out) == (2, "")
        assert "Commands:" in result.err


@pytest.mark.real
@pytest.mark.parametrize(("number", "code", "name"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")])
async def test_a_signal_ends_a_command_with_the_work_that_continues(
    api: FakeApi, tmp_path: Path, number: signal.Signals, code: int, name: str
) -> None:
    api.scheduled = [task_document(1), task_document(2, project="b")]
    async with running("repo", "analyze", REPO_URL, url=api.url, home=tmp_path) as run:
        await run.until("task-2 b  queued")
        run.send(number)
        result = await run.result()
    assert (result.code, result.out) == (code, "")
    assert result.err.endswith(f"error: repo analyze: {name}; 2 tasks continue\nhint: gctd task watch task-1 task-2\n")
    assert api.seen("DELETE", "/api/tasks/task-1") == []


@pytest.mark.real
async def test_a_signal_before_anything_has_begun_is_reported_the_same(api: FakeApi, tmp_path: Path) -> None:
    api.always["GET", "/api/tasks"] = Reply(200, [], delay=30)
    async with running("task", "list", "--json", url=api.url, home=tmp_path) as run:
        await wait_until(lambda: api.requests)
        run.send(signal.SIGINT)
        result = await run.result()
    assert (result.code, result.error) == (130, {"code": "interrupted", "message": "task list: interrupted"})


@pytest.mark.real
def test_a_second_signal_ends_a_command_that_does_not_end(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal\n"
        "from terminalkit.coroutine import run\n"
        "async def stubborn():\n"
        "    while True:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        try:\n"
        "            await asyncio.sleep(5)\n"
        "        except asyncio.CancelledError:\n"
        "            print('once', flush=True)\n"
        "run(stubborn(), timeout=None)\n"
    )
    environ = environment(None, tmp_path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environ, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"once\n", b"")


@pytest.mark.real
async def test_a_registration_that_is_interrupted_goes_on(api: FakeApi, tmp_path: Path) -> None:
    async with running("repo", "add", REPO_URL, url=api.url, home=tmp_path) as run:
        await run.until("registering")
        run.send(signal.SIGINT)
        result = await run.result()
    assert result.code == 130
    assert result.err.endswith(f"the registration continues\nhint: gctd repo show {REPO_URL}\n")


@pytest.mark.real
async def test_a_discovery_that_fails_is_1_with_its_reason(api: FakeApi, tmp_path: Path) -> None:
    async def fail(server: FakeApi) -> None:
        await server.change_repo(repo_document("error", StatusReason="git: repository not found"))

    api.after_post = fail
    result = await gctd("repo", "add", REPO_URL, url=api.url, home=tmp_path)
    assert (result.code, result.out) == (1, "")
    assert f"error: repo add: {REPO_URL}: git: repository not found\n" in result.err
    api.repos.clear()
    api.after_post = fail
    machine = await gctd("repo", "add", REPO_URL, "--json", url=api.url, home=tmp_path)
    assert (machine.code, machine.out, machine.error["code"]) == (1, "", "failure")


@pytest.mark.real
@pytest.mark.parametrize("status", ["failed", "expired"])
async def test_a_task_that_did_not_complete_is_1_with_its_reason(api: FakeApi, tmp_path: Path, status: str) -> None:
    api.tasks["task-1"] = task_document(1, status, reason="build failed")
    result = await gctd("task", "watch", "task-1", url=api.url, home=tmp_path)
    assert result.code == 1
    assert result.err.endswith(f"error: task watch: task-1 (.) {status}: build failed\nhint: gctd task show task-1\n")


@pytest.mark.real
def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gctd", "--help"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment(None, tmp_path),
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.OUTPUT_CLOSED, b"")


@pytest.mark.real
async def test_a_closed_pipe_ends_a_watch_quietly(api: FakeApi, tmp_path: Path) -> None:
    api.tasks["task-1"] = task_document(1)
    shell = f"{sys.executable} -m gctd task watch --json | head -n 1"
    process = await asyncio.create_subprocess_shell(
        f"bash -o pipefail -c '{shell}'",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(api.url, tmp_path),
    )
    async with asyncio.timeout(60):
        assert process.stdout is not None
        assert b"task-1" in await process.stdout.readline()
        while process.returncode is None:
            await api.publish("task", task_document(1, second=len(api.frames) % 3000))
            await asyncio.sleep(0.05)
        _, err = await process.communicate()
    assert Result(process.returncode, "", err.decode()) == Result(ExitCode.OUTPUT_CLOSED, "", "")


@pytest.mark.real
def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gctd", "completion", "fish"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(None, tmp_path),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: completion: No space left on device\n"


@pytest.mark.real
@pytest.mark.parametrize(
    ("arguments", "stdout", "code"),
    [
        (("worker", "list", "--bad"), os.devnull, 2),
        (("completion", "fish"), os.devnull, 0),
        (("completion", "fish"), "/dev/full", 1),
    ],
    ids=["usage", "done", "standard output too"],
)
def test_a_message_that_cannot_be_written_changes_no_exit_code(
    arguments: tuple[str, ...], stdout: str, code: int, tmp_path: Path
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, Path(stdout).open("w", encoding="utf-8") as out:
        command = [sys.executable, "-m", "gctd", *arguments]
        done = subprocess.run(command, stdout=out, stderr=full, env=environment(None, tmp_path), check=False)
    assert done.returncode == code


@pytest.mark.real
async def test_a_defect_is_reported_as_one_and_shown_on_demand(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "gctd_break.py").write_text(
        "import gctd.cli.tables.workers as r\nr.show_workers = lambda *_: 1 / 0\n", encoding="utf-8"
    )
    (tmp_path / "sitecustomize.py").write_text("import gctd_break\n", encoding="utf-8")
    env = environment(api.url, tmp_path, {"PYTHONPATH": f"{tmp_path}:{environment(None, tmp_path)['PYTHONPATH']}"})
    command = [sys.executable, "-m", "gctd", "worker", "list"]
    run = partial(subprocess.run, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    result = await asyncio.to_thread(run, command)
    assert result.returncode == 1
    assert "internal error, a defect of the program: ZeroDivisionError" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in (await asyncio.to_thread(run, [*command, "--verbose"])).stderr


def test_the_help_has_every_exit_code(here: Here) -> None:
    result = here("--help")
    assert set(MEANINGS) == set(ExitCode)
    for code, meaning in PROGRAM.exit_codes.items():
        assert f"  {int(code)} " in result.out
        assert meaning.split(";")[0].split(":")[0] in result.out
