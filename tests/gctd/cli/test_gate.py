"""`gctd gate`: the parts of one answer are about one analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gctd.domain.analysis import analysis_id
from gctd.http.examples import EXAMPLES
from tests.support.programs.cli import gctd
from tests.support.tracker.fake_api import REPO_URL, FakeApi, Reply, repo_document, task_document

pytestmark = pytest.mark.real

PROJECTS = (".", "cmd/tool")


@pytest.mark.parametrize(("option", "method"), [("base", "POST"), ("from", "GET")])
async def test_the_comment_is_about_the_analysis_of_the_exit_code(api: FakeApi, tmp_path: Path, option: str, method: str) -> None:
    """When the comment is asked for, another analysis may be the latest one."""
    api.repos[REPO_URL] = repo = repo_document(projects=PROJECTS)
    given: dict[str, Any] = EXAMPLES["ask_for_verdict"]
    expected = {}
    for number, project in enumerate(PROJECTS):
        path = f"/api/repos/{analysis_id(repo['ID'], project)}/gate"
        judged = given["to"] | {"task_id": f"task-{number}"}
        api.always[method, path] = Reply(200, given | {"project": project, "to": judged, "threshold": 20.0 + number})
        api.always["GET", f"{path}.md"] = Reply(200, b"a comment\n", {"Content-Type": "text/markdown"})
        expected[f"{path}.md"] = ("task-9", f"task-{number}", f"{20 + number}.0")
    done = await gctd("gate", REPO_URL, f"--{option}", "task-9", "--markdown", url=api.url, home=tmp_path)
    assert (done.code, done.out) == (1, "a comment\n" * len(PROJECTS)), done.err
    asked = {
        path: tuple(one.query.get(name) for name in (option, "to", "threshold"))
        for path in expected
        for one in api.seen("GET", path)
    }
    assert asked == expected


async def test_a_wait_for_the_base_asks_about_the_same_analysis(api: FakeApi, tmp_path: Path) -> None:
    """The commit may be analysed once more during the wait, with another threshold."""
    api.repos[REPO_URL] = repo = repo_document()
    api.tasks["task-8"] = task_document(8, "running")
    path = f"/api/repos/{analysis_id(repo['ID'], '.')}/gate"
    given: dict[str, Any] = EXAMPLES["ask_for_verdict"] | {"threshold": 20.0}
    waits = given | {"result": "unknown", "base": given["base"] | {"task_id": "task-8"}}
    api.replies["POST", path] = [Reply(200, waits), Reply(200, given)]
    done = await gctd("gate", REPO_URL, "--wait", "1m", url=api.url, home=tmp_path)
    assert done.code == 1, done.err
    first, then = [request.body for request in api.seen("POST", path)]
    assert then == first | {"to": given["to"]["task_id"], "threshold": 20.0}


async def test_a_wait_ends_with_the_reason_for_which_the_base_was_not_analysed(api: FakeApi, tmp_path: Path) -> None:
    """By the first answer, a task analyses the base."""
    api.repos[REPO_URL] = repo = repo_document()
    api.tasks["task-8"] = task_document(8, "failed")
    path = f"/api/repos/{analysis_id(repo['ID'], '.')}/gate"
    given: dict[str, Any] = EXAMPLES["ask_for_verdict"]
    waits = given | {"result": "unknown", "base": given["base"] | {"task_id": "task-8"}}
    reasons = ["task-8 analyses it", "task-8 has failed: no go.mod found"]
    api.replies["POST", path] = [Reply(200, waits | {"reason": reason}) for reason in reasons]
    done = await gctd("gate", REPO_URL, "--wait", "1m", url=api.url, home=tmp_path)
    assert (done.code, reasons[1] in done.out, reasons[1] in done.err) == (8, True, True), done


async def test_functions_that_are_not_measured_are_counted_beyond_the_limit(api: FakeApi, tmp_path: Path) -> None:
    api.repos[REPO_URL] = repo = repo_document()
    path = f"/api/repos/{analysis_id(repo['ID'], '.')}/gate"
    values = {
        "key": "Add",
        "file": "add.go",
        "line": 3,
        "crap": 2.0,
        "cyclomatic": 1,
        "coverage": 0.0,
        "state": "measured",
        "reason": "",
    }
    lost = {
        "checks": [],
        "function": "Add",
        "package": "sums",
        "before": values,
        "after": values | {"state": "tests_failed", "reason": "panicked"},
        "reason": "tests_failed: panicked",
    }
    api.always["POST", path] = Reply(200, EXAMPLES["ask_for_verdict"] | {"lacking": 3, "unmeasured": [lost]})
    done = await gctd("gate", REPO_URL, "--limit", "1", url=api.url, home=tmp_path)
    assert "2 more: see --limit\n" in done.err
