"""Commands that show something: a JSON document, lines with tabs on a pipe, a table on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.programs.cli import gctd, gctd_on_terminal
from tests.support.tracker.fake_api import (
    REPO_URL,
    FakeApi,
    Reply,
    analysis_document,
    attempt_document,
    repo_document,
    task_document,
    worker_document,
)

pytestmark = pytest.mark.real

READING = (
    ("repo", "show", REPO_URL),
    ("task", "list"),
    ("task", "show", "task-1"),
    ("task", "result", "task-1"),
    ("task", "attempts", "task-1"),
    ("worker", "list"),
)


def fill(api: FakeApi) -> None:
    """Something to show for every command."""
    api.repos[REPO_URL] = repo_document(projects=[".", "cmd/tool"])
    api.tasks = {
        "task-1": task_document(1, "completed", second=65, analysis_id="aa"),
        "task-2": task_document(2, "failed", second=3, project="cmd/tool", attempt=3, reason="go test: no\tsuch\ntool \x1b[31m"),
    }
    api.results["task-1"] = analysis_document(
        uncovered=[{"path": "example.com/module/gen", "reason": "no tests"}],
        warnings=[{"kind": "unreadable", "path": "big.go", "reason": "larger than 4 MiB"}],
    )
    api.attempts["task-1"] = [attempt_document(1, "failed", reason="no network"), attempt_document(2, None)]
    api.analyses = [analysis_document(), analysis_document("cmd/tool")]
    api.workers = [worker_document(), worker_document("worker-2", "gone")]


@pytest.mark.parametrize("command", READING, ids=" ".join)
async def test_json_is_the_server_s_own_document(api: FakeApi, tmp_path: Path, command: tuple[str, ...]) -> None:
    fill(api)
    documents = {
        ("repo", "show"): api.repos[REPO_URL],
        ("task", "list"): list(api.tasks.values()),
        ("task", "show"): api.tasks["task-1"],
        ("task", "result"): api.results["task-1"],
        ("task", "attempts"): api.attempts["task-1"],
        ("worker", "list"): api.workers,
    }
    result = await gctd(*command, "--json", url=api.url, home=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.json == documents[command[0], command[1]]


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (
            ("repo", "show", REPO_URL),
            [
                ["repository", REPO_URL],
                ["id", "d3b07384d113edec49eaa6238ad5ff00"],
                ["status", "ready"],
                ["commit", "0123456789abcdef0123456789abcdef01234567"],
                ["examined at", "2026-11-20T10:00:00Z"],
                [""],
                ["PROJECT", "MODULE", "GO", "PACKAGES", "TESTS", "WORKSPACE"],
                [".", "example.com/module/.", "1.26", "3", "yes", "no"],
                ["cmd/tool", "example.com/module/cmd/tool", "1.26", "3", "yes", "no"],
            ],
        ),
        (
            ("repo", "list"),
            [
                ["REPOSITORY", "STATUS", "PROJECT", "COMMIT", "FUNCTIONS", "AVERAGE", "TOTAL", "RISKY", "ANALYZED", "ANALYSIS"],
                [
                    REPO_URL,
                    "ready",
                    ".",
                    "0123456789ab",
                    "2",
                    "22.25",
                    "44.50",
                    "1",
                    "2026-11-20T10:00:00Z",
                    "aa0748384d113edec49eaa6238ad5ff0",
                ],
                [
                    *(REPO_URL, "ready", "cmd/tool", "0123456789ab", "2", "22.25", "44.50", "1", "2026-11-20T10:00:00Z"),
                    "aa0748384d113edec49eaa6238ad5ff0",
                ],
            ],
        ),
        (
            ("task", "list"),
            [
                ["TASK", "STATUS", "STAGE", "ATTEMPT", "REPOSITORY", "PROJECT", "REF", "COMMIT", "UPDATED", "REASON"],
                ["task-1", "completed", "", "1/3", REPO_URL, ".", "main", "", "2026-11-20T10:01:05Z", ""],
                [
                    *("task-2", "failed", "", "3/3", REPO_URL, "cmd/tool", "main", "", "2026-11-20T10:00:03Z"),
                    r"go test: no such tool \x1b[31m",
                ],
            ],
        ),
        (
            ("task", "show", "task-1"),
            [
                ["task", "task-1"],
                ["repository", REPO_URL],
                ["project", "."],
                ["ref", "main"],
                ["status", "completed"],
                ["attempt", "1/3"],
                ["worker", "worker-1"],
                ["engine", "native"],
                ["created at", "2026-11-20T10:00:00Z"],
                ["updated at", "2026-11-20T10:01:05Z"],
                ["took", "1m05s"],
                ["analysis", "aa"],
            ],
        ),
        (
            ("task", "result", "task-1"),
            [
                ["CRAP", "COMPLEXITY", "COVERAGE", "FUNCTION", "LOCATION"],
                ["42.50", "6", "n/a", "Parse", "parse.go:10"],
                ["2.00", "6", "66.7%", "Get", "get.go:11"],
                [""],
                ["PROJECT", "FUNCTIONS", "AVERAGE", "TOTAL", "RISKY", "NOT MEASURED", "COMMIT", "ENGINE", "TOOK"],
                [".", "2", "22.25", "44.50", "1", "0", "0123456789ab", "native", "12s"],
                [""],
                ["PACKAGE", "WITHOUT COVERAGE"],
                ["example.com/module/gen", "no tests"],
                [""],
                ["PATH", "NOT IN THE NUMBERS"],
                ["big.go", "larger than 4 MiB"],
            ],
        ),
        (
            ("task", "attempts", "task-1"),
            [
                ["ATTEMPT", "OUTCOME", "WORKER", "STARTED", "TOOK", "STAGES", "LOG", "REASON"],
                ["1", "failed", "worker-1", "2026-11-20T10:00:00Z", "1m05s", "clone 1.5s, test 1m02s", "2.0 KiB", "no network"],
                ["2", "running", "worker-1", "2026-11-20T10:00:00Z", "", "clone 1.5s, test", "", ""],
            ],
        ),
        (
            ("worker", "list"),
            [
                ["WORKER", "STATUS", "HOST", "PID", "CPU", "MEMORY", "JOBS", "VERSION", "GO", "SANDBOX", "TASKS"],
                ["worker-1", "busy", "build-7", "4711", "12.5%", "256.0 MiB", "1/2", "0.1.0", "go1.26.6", "bubblewrap", "task-1"],
                ["worker-2", "gone", "build-7", "4711", "n/a", "n/a", "n/a", "", "", "", ""],
            ],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
async def test_on_a_pipe_fields_are_separated_by_tabs(
    api: FakeApi, tmp_path: Path, command: tuple[str, ...], rows: list[list[str]]
) -> None:
    fill(api)
    result = await gctd(*command, url=api.url, home=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.rows == rows


async def test_on_a_terminal_tables_are_laid_out_and_coloured(api: FakeApi, tmp_path: Path) -> None:
    fill(api)
    result = await gctd_on_terminal("task", "result", "task-1", url=api.url, home=tmp_path)
    assert result.code == 0
    assert "\x1b[31m42.50" in result.out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.out).splitlines()
    assert [line.rstrip() for line in lines[:3]] == [
        " CRAP  COMPLEXITY  COVERAGE  FUNCTION  LOCATION",
        "42.50           6       n/a  Parse     parse.go:10",
        " 2.00           6     66.7%  Get       get.go:11",
    ]


@pytest.mark.parametrize("columns", [20, 60, 100])
async def test_ids_are_whole_however_narrow_the_terminal(api: FakeApi, tmp_path: Path, columns: int) -> None:
    number = 1763635200000000001
    api.tasks = {"a": task_document(number, "failed", reason="a long reason that has to give way " * 3)}
    result = await gctd_on_terminal("task", "list", "--no-color", url=api.url, home=tmp_path, columns=columns)
    assert f"task-{number}" in result.out
    assert REPO_URL in result.out or columns == 100  # folded behind a slash
    assert "reason" in result.out


@pytest.mark.parametrize(
    ("arguments", "env", "coloured"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        ((), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True),
        (("--no-color",), {"FORCE_COLOR": "1"}, False),
    ],
)
async def test_colour_on_a_terminal(
    api: FakeApi, tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str], coloured: bool
) -> None:
    result = await gctd_on_terminal("worker", "list", "--verbose", *arguments, url=api.url, home=tmp_path, env=env)
    assert ("\x1b[36mbusy" in result.out) is coloured
    assert ("\x1b" in result.out) is coloured


async def test_colour_on_a_pipe_is_only_where_it_is_forced(api: FakeApi, tmp_path: Path) -> None:
    plain = await gctd("worker", "list", url=api.url, home=tmp_path)
    forced = await gctd("worker", "list", url=api.url, home=tmp_path, env={"FORCE_COLOR": "1"})
    assert "\x1b" not in plain.out
    assert forced.rows[0] == plain.rows[0]
    assert forced.rows[1][1] == "\x1b[36mbusy\x1b[0m"


async def test_lists_follow_their_options_and_report_further_items(api: FakeApi, tmp_path: Path) -> None:
    api.tasks = {f"task-{number}": task_document(number, "failed") for number in range(5)}
    api.page = 2
    some = await gctd("task", "list", "--status", "failed", "--show-seen", "--limit", "3", "--json", url=api.url, home=tmp_path)
    assert [task["id"] for task in some.json] == ["task-0", "task-1", "task-2"]
    assert "more than these 3" in some.err
    assert api.requests[0].query == {"status": "failed", "show_seen": "true", "limit": "4"}
    every = await gctd("task", "list", "--limit", "0", "--json", url=api.url, home=tmp_path)
    assert (len(every.json), every.err) == (5, "")


async def test_a_worker_has_slots_for_scans_and_for_short_jobs(api: FakeApi, tmp_path: Path) -> None:
    api.workers = [worker_document(concurrency=2, fast_concurrency=1, tasks=["task-1", "task-2", "aa"])]
    shown = await gctd("worker", "list", url=api.url, home=tmp_path)
    assert shown.rows[1][6] == "3/3"


async def test_the_list_has_each_registered_repository_with_its_state(api: FakeApi, tmp_path: Path) -> None:
    """Also while it is registered, after an error, and before its first analysis."""
    fill(api)
    ready = api.repos[REPO_URL]
    for number, status in enumerate(("registering", "error", "ready"), 1):
        url = f"{REPO_URL}-{number}"
        reason = {"StatusReason": "no go.mod"} if status == "error" else {}
        api.repos[url] = repo_document(status, url=url, projects=["."] if status == "ready" else ()) | reason
    shown = await gctd("repo", "list", url=api.url, home=tmp_path)
    assert [(row[0].removeprefix(REPO_URL), row[1], row[2], row[4], row[-1]) for row in shown.rows[1:]] == [
        ("", "ready", ".", "2", ""),
        ("", "ready", "cmd/tool", "2", ""),
        ("-1", "registering", "", "", ""),
        ("-2", "error", "", "", "no go.mod"),
        ("-3", "not analysed", ".", "", ""),
    ]
    document = (await gctd("repo", "list", "--json", url=api.url, home=tmp_path)).json
    assert [len(one["analyses"]) for one in document] == [2, 0, 0, 0]
    assert document[0] == {"repository": ready, "analyses": api.analyses}


async def test_a_check_for_updates_counts_only_the_projects_that_were_looked_up(api: FakeApi, tmp_path: Path) -> None:
    """One did not move, one repository is registering, one project cannot be analysed, and one ref did not answer."""
    row = dict.fromkeys(("project", "ref", "recorded_sha", "remote_sha", "task_id", "note", "error"))
    row |= {"repo_url": REPO_URL, "moved": False, "scheduled": False}
    rows = [
        row | {"project": ".", "recorded_sha": "a" * 40, "remote_sha": "a" * 40},
        row | {"note": "skipped: it is still registering"},
        row | {"project": "gen", "note": "cannot be analysed: no go.mod"},
        row | {"project": "cmd/tool", "error": "no answer within 1 s"},
    ]
    api.always["POST", "/api/repos/check-updates"] = Reply(200, rows)
    shown = await gctd("repo", "check-updates", url=api.url, home=tmp_path)
    assert (shown.code, shown.err) == (7, "0 of 1 project moved, 1 could not be looked up, 2 skipped\n")


async def test_top_bounds_the_functions_shown_and_asked_for(api: FakeApi, tmp_path: Path) -> None:
    fill(api)
    result = await gctd("task", "result", "task-1", "--top", "1", url=api.url, home=tmp_path)
    assert [row[3] for row in result.rows[:3] if len(row) > 3] == ["FUNCTION", "Parse"]
    assert api.requests[-1].query == {"entries": "1"}
    none = await gctd("task", "result", "task-1", "--top", "0", url=api.url, home=tmp_path)
    assert none.rows[0][0] == "PROJECT"


async def test_verbose_shows_requests_without_the_token_and_quiet_drops_notes(api: FakeApi, tmp_path: Path) -> None:
    api.token = "very-secret"
    env = {"GCTD_AUTH_TOKEN": api.token}
    verbose = await gctd("repo", "list", "--verbose", url=api.url, home=tmp_path, env=env)
    assert re.search(r"GET http://127\.0\.0\.1:\d+/api/repos 200 in \d+ ms", verbose.err)
    assert "no repository yet" in verbose.err
    assert api.token not in verbose.err
    quiet = await gctd("repo", "list", "--quiet", url=api.url, home=tmp_path, env=env)
    assert (quiet.code, quiet.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "method", "path"),
    [
        (("task", "delete", "task-1"), "DELETE", "/api/tasks/task-1"),
        (("task", "cancel", "task-1"), "POST", "/api/tasks/task-1/cancel"),
        (("task", "hide-all"), "POST", "/api/tasks/hide-all"),
        (("worker", "pause", "worker-1"), "POST", "/api/workers/worker-1/pause"),
        (("worker", "unpause", "worker-1"), "POST", "/api/workers/worker-1/unpause"),
    ],
)
async def test_commands_that_change_something_say_so_on_standard_error(
    api: FakeApi, tmp_path: Path, arguments: tuple[str, ...], method: str, path: str
) -> None:
    fill(api)
    result = await gctd(*arguments, url=api.url, home=tmp_path)
    assert (result.code, result.out) == (0, "")
    assert result.err.count("\n") == 1
    assert len(api.seen(method, path)) == 1


async def test_a_retry_shows_the_tasks_as_they_are_then(api: FakeApi, tmp_path: Path) -> None:
    fill(api)
    result = await gctd("task", "retry", "task-2", url=api.url, home=tmp_path)
    assert (result.code, result.rows[1][0]) == (0, "task-2")
    document = await gctd("task", "retry", "task-2", "task-1", "--json", url=api.url, home=tmp_path)
    assert document.json == [api.tasks["task-2"], api.tasks["task-1"]]
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 3


async def test_a_log_cannot_steer_the_terminal_and_keeps_its_tabs(api: FakeApi, tmp_path: Path) -> None:
    fill(api)
    api.logs["task-1", 1] = "one\ttwo\n\x1b[31mthree\x9b\n"
    result = await gctd("task", "log", "task-1", url=api.url, home=tmp_path)
    assert (result.code, result.out) == (0, "one\ttwo\n\\x1b[31mthree\\x9b\n")
    missing = await gctd("task", "log", "task-1", "--attempt", "2", url=api.url, home=tmp_path)
    assert (missing.code, missing.out) == (3, "")
    assert "hint: gctd task attempts task-1" in missing.err


async def test_texts_of_a_repository_cannot_steer_the_terminal(api: FakeApi, tmp_path: Path) -> None:
    nasty = "a\x1b]0;title\x07\x9b31m\u202eb"
    api.results["task-1"] = analysis_document(entries=[(nasty, 1.0)])
    escaped = r"a\x1b]0;title\x07\x9b31m\u202eb"
    shown = await gctd("task", "result", "task-1", url=api.url, home=tmp_path)
    assert shown.rows[1][3] == escaped
    document = await gctd("task", "result", "task-1", "--json", url=api.url, home=tmp_path)
    assert document.json["entries"][0]["function"] == nasty
    assert not set(document.out) & set("\x1b\x07\x9b")
    api.always["GET", "/api/tasks/task-1"] = Reply(404, {"message": f"no {nasty}"})
    refused = await gctd("task", "show", "task-1", url=api.url, home=tmp_path)
    assert f"no {escaped}" in refused.err
