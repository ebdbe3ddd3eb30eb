"""`gctd gate`: the parts of one answer are about one analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gctd.domain.analysis import analysis_id
from gctd.http.examples import EXAMPLES
from tests.support.programs.cli import gctd
from tests.support.tracker.fake_api import REPO_URL, FakeApi, Reply, repo_document

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
