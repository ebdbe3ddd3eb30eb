"""The history of a project and the difference of two analyses, on a running system whose analyses the tests write down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.programs.cli import Result, gctd
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

FIRST = MadeUp(
    commit_sha="abcdef10" + "0" * 32,
    functions={
        "a.go:Parse": 42.0,
        "a.go:Store.Put": 12.0,
        "a.go:Get": 5.0,
        "a.go:init": 2.0,
        "a.go:Same": 7.0,
        "old.go:Moved": 3.0,
        "a.go:Removed": 90.0,
    },
)
SECOND = MadeUp(
    commit_sha="abcdef20" + "0" * 32,
    functions={
        "a.go:Parse": 30.0,
        "a.go:Store.Put": 31.5,
        "a.go:Get": 2.0,
        "a.go:init": 2.0,
        "a.go:Same": 7.0,
        "new.go:Moved": 4.0,
        "a.go:Added": 6.0,
    },
)
OTHER_GO = attrs.evolve(SECOND, commit_sha="9" * 40, go_version="go1.27.0", engine_version="2", flags=("-short", "-race"))


async def test_the_history_has_every_analysis_newest_first_and_says_where_the_measuring_changed(project: Project) -> None:
    await project.analyze(FIRST, SECOND, OTHER_GO)
    newest, second, first = await project.system.get(f"{await project.path}/history")
    assert [one["task_id"] for one in (first, second, newest)] == project.tasks
    assert [one["commit_sha"] for one in (first, second)] == [FIRST.commit_sha, SECOND.commit_sha]
    assert first["summary"] == {"average": 23.0, "combined": 161.0, "exceeded": 2, "total_funcs": 7}
    made_by = ("engine", "engine_version", "go_version", "flags", "duration_ms")
    assert [second[name] for name in made_by] == ["fake", "1", "go1.26.6", [], 12]
    assert first["analyzed_at"] < second["analyzed_at"] < newest["analyzed_at"]
    assert first["ref"] == "main"
    assert (first["break"], second["break"]) == ([], [])
    assert newest["break"] == [
        {"what": "go_version", "before": "go1.26.6", "after": "go1.27.0"},
        {"what": "engine_version", "before": "1", "after": "2"},
        {"what": "flags", "before": "", "after": "-short -race"},
    ]


async def test_another_sandbox_is_told_where_both_are_known(project: Project) -> None:
    await project.analyze(FIRST, *(attrs.evolve(FIRST, sandbox=name) for name in ("none", "none", "bubblewrap")))
    history = await project.system.get(f"{await project.path}/history")
    assert [one["sandbox"] for one in history] == ["bubblewrap", "none", "none", ""]
    assert [one["break"] for one in history] == [[{"what": "sandbox", "before": "none", "after": "bubblewrap"}], [], [], []]


async def test_another_platform_is_told_where_both_are_known(project: Project) -> None:
    """The gate does not compare such analyses, so a comparison names the difference."""
    await project.analyze(FIRST, *(attrs.evolve(FIRST, platform=f"linux/{name}") for name in ("amd64", "amd64", "arm64")))
    history = await project.system.get(f"{await project.path}/history")
    told = {"what": "platform", "before": "linux/amd64", "after": "linux/arm64"}
    assert [one["break"] for one in history] == [[told], [], [], []]


async def test_the_history_outlives_its_tasks_and_comes_in_pages(project: Project) -> None:
    await project.analyze(FIRST, SECOND, OTHER_GO, FIRST)
    whole = await project.system.get(f"{await project.path}/history")
    pages: list[Any] = []
    url: str | None = f"{project.system.url}{await project.path}/history?limit=3"
    while url:
        async with project.system.http.get(url) as answer:
            pages.append(await answer.json())
            link = answer.links.get("next")
            url = str(link["url"]) if link else None
    assert [len(page) for page in pages] == [3, 1]
    assert [one for page in pages for one in page] == whole
    path = await project.path
    assert (await project.system.status(f"/api/tasks/{project.tasks[1]}", "DELETE"))[0] == 204
    assert await project.system.get(f"{path}/history") == whole


async def test_a_difference_names_the_status_of_each_function(project: Project) -> None:
    await project.analyze(FIRST, SECOND)
    diff = await project.system.get(f"{await project.path}/diff")
    assert (diff["from"]["task_id"], diff["to"]["task_id"]) == tuple(project.tasks)
    assert (diff["repo_url"], diff["project"], diff["threshold"], diff["break"]) == (project.url, ".", 30.0, [])
    assert (diff["from"]["summary"]["combined"], diff["to"]["summary"]["combined"]) == (161.0, 82.5)
    assert (diff["from"]["summary"]["average"], diff["to"]["summary"]["average"]) == (23.0, pytest.approx(82.5 / 7))
    counts = {"new": 1, "fixed": 1, "worse": 2, "better": 1, "gone": 1, "unchanged": 2}
    assert diff["counts"] == {**counts, "unmeasured": 0, "measured": 0}
    assert [(one["status"], one["function"], one["file"], one["delta"]) for one in diff["functions"]] == [
        ("gone", "Removed", "a.go", -90.0),
        ("worse", "Store.Put", "a.go", 19.5),
        ("fixed", "Parse", "a.go", -12.0),
        ("new", "Added", "a.go", 6.0),
        ("better", "Get", "a.go", -3.0),
        ("worse", "Moved", "new.go", 1.0),
    ]
    gone, worse, *_, moved = diff["functions"]
    assert (gone["after"], gone["before"]["crap"]) == (None, 90.0)
    known = {"state": "measured", "reason": ""}
    place = {"key": "Store.Put", "file": "a.go", "line": 2}
    assert worse["before"] == {**place, "crap": 12.0, "cyclomatic": 2, "coverage": 50.0, **known}
    assert (moved["before"]["file"], moved["after"]["file"]) == ("old.go", "new.go")
    least = await project.system.get(f"{await project.path}/diff?limit=2")
    assert (least["functions"], least["counts"]) == (diff["functions"][:2], diff["counts"])


async def test_each_side_has_the_key_of_its_function_and_so_has_the_gate(project: Project) -> None:
    before = attrs.evolve(FIRST, functions={"cmd/add.go:init": 1.0, "cmd/serve.go:init": 2.0, "cmd/old.go:Run": 3.0})
    after = attrs.evolve(SECOND, functions={"cmd/add.go:init": 1.0, "cmd/serve.go:init": 4.0, "cmd/new.go:Run": 3.0})
    await project.analyze(before, after)
    diff = await project.system.get(f"{await project.path}/diff")
    gate = await project.system.get(f"{await project.path}/gate?worse=any")
    [[changed], [kept], [offending]] = diff["functions"], diff["kept"], gate["functions"]
    for one in (changed, offending):
        assert (one["before"]["key"], one["after"]["key"]) == ("cmd:init@serve.go", "cmd:init@serve.go")
    assert (kept["from"]["key"], kept["to"]["key"]) == ("cmd:Run", "cmd:Run")
    for task in project.tasks:
        found = await project.system.get(f"{await project.path}/functions/cmd:init%40serve.go?at={task}")
        assert found["file"] == "cmd/serve.go"


async def test_the_threshold_is_that_of_the_project_and_a_shortened_report_is_told(project: Project) -> None:
    await project.analyze(FIRST, attrs.evolve(SECOND, flags=("-race", "--threshold=4", "--top=20")))
    diff = await project.system.get(f"{await project.path}/diff")
    assert (diff["threshold"], diff["partial"]) == (4.0, False)
    assert {one["function"]: one["status"] for one in diff["functions"]}["Get"] == "fixed"
    await project.analyze(attrs.evolve(FIRST, commit_sha="7" * 40, more=3))
    assert (await project.system.get(f"{await project.path}/diff"))["partial"] is True


async def test_analyses_are_named_by_task_or_by_the_first_digits_of_their_commit_or_by_ref(project: Project) -> None:
    await project.analyze(FIRST, SECOND, OTHER_GO)
    path, (first, second, third) = await project.path, project.tasks

    async def compared(query: str) -> tuple[str, str]:
        diff = await project.system.get(f"{path}/diff?{query}")
        return diff["from"]["task_id"], diff["to"]["task_id"]

    assert await compared("") == (second, third)
    assert await compared(f"to={second}") == (first, second)
    assert await compared(f"from={first}") == (first, third)
    assert await compared("from=ABCDEF1&to=abcdef2") == (first, second)
    assert await compared(f"from={third}&to={FIRST.commit_sha}") == (third, first)
    itself = await project.system.get(f"{path}/diff?from={first}&to={first}")
    assert (itself["functions"], itself["counts"]["unchanged"], itself["break"]) == ([], 7, [])
    assert [one["what"] for one in (await project.system.get(f"{path}/diff"))["break"]] == [
        "go_version",
        "engine_version",
        "flags",
    ]
    await project.analyze(FIRST)
    assert await compared("from=abcdef2&to=abcdef1") == (second, project.tasks[-1])
    branch = attrs.evolve(SECOND, ref="feature/1")
    await project.analyze(branch, attrs.evolve(branch, commit_sha="8" * 40), FIRST)
    assert await compared("from=main&to=feature/1") == (project.tasks[-1], project.tasks[-2])


REFUSED = [
    ("diff?from=task-1", 404, "from: no analysis of this project comes from task-1"),
    ("diff?to=0123456", 404, "to: no analysis of this project is of a commit or a ref 0123456"),
    ("diff?from=abcdef", 404, "from: no analysis of this project is of a commit or a ref abcdef"),
    ("diff?to=-x", 400, "to"),
    ("diff?limit=-1", 400, "limit"),
    ("diff?from={first}", 200, ""),
    ("diff?to={first}", 404, "no earlier analysis of another commit"),
    ("history?limit=0", 400, "limit"),
    ("history?cursor=bogus", 400, "cursor"),
]


async def test_a_comparison_that_is_impossible_is_refused_with_the_reason(
    project: Project, shared: tuple[TrackerSystem, Path]
) -> None:
    await project.analyze(FIRST)
    for query, status, says in REFUSED:
        answered, body = await project.system.status(f"{await project.path}/{query.format(first=project.tasks[0])}")
        assert (query, answered) == (query, status), body
        assert status == 200 or says in body["message"]
        assert status != 400 or body["errors"][0]["parameter"] == says
    await project.analyze(attrs.evolve(SECOND, commit_sha="abcdef1f" + "0" * 32))
    status, problem = await project.system.status(f"{await project.path}/diff?from=abcdef1")
    assert (status, "several commits begin with abcdef1" in problem["message"]) == (400, True)
    other = await Project.registered(*shared, "other")
    await other.analyze(FIRST)
    assert (await other.system.status(f"{await other.path}/diff?to={project.tasks[0]}"))[0] == 404
    for what in ("history", "diff"):
        assert (await other.system.status(f"/api/repos/{'0' * 32}/{what}"))[0] == 404


async def test_the_command_line_shows_the_history(project: Project, tmp_path: Path) -> None:
    await project.analyze(FIRST, OTHER_GO)
    whole = await project.system.get(f"{await project.path}/history")
    shown = await gctd("repo", "history", project.url, url=project.system.url, home=tmp_path)
    assert (shown.code, shown.err) == (0, "")
    titles, newest, first = shown.rows
    assert titles[:3] == ["ANALYZED", "COMMIT", "REF"]
    changed = "go_version go1.26.6 -> go1.27.0, engine_version 1 -> 2, flags none -> -short -race"
    assert newest[7:] == ["fake 2", "go1.27.0", changed, project.tasks[1]]
    assert first[1:2] + first[3:] == ["abcdef100000", "7", "23.00", "161.00", "2", "fake 1", "go1.26.6", "", project.tasks[0]]
    document = await gctd("repo", "history", project.url, "--project", ".", "--json", url=project.system.url, home=tmp_path)
    assert document.json == whole
    less = await gctd("repo", "history", project.url, "--limit", "1", "--json", url=project.system.url, home=tmp_path)
    assert (less.json, "there are more than these 1" in less.err) == (whole[:1], True)


async def test_the_command_line_shows_a_difference(project: Project, tmp_path: Path) -> None:
    await project.analyze(FIRST, SECOND)

    async def run(*arguments: str) -> Result:
        return await gctd("repo", "diff", project.url, *arguments, url=project.system.url, home=tmp_path)

    shown = await run("--limit", "2")
    assert shown.code == 0
    assert shown.rows[3:] == [
        ["functions", "7 -> 7"],
        ["average", "23.00 -> 11.79"],
        ["total", "161.00 -> 82.50"],
        ["risky", "2 -> 1"],
        ["changes", "1 new, 1 fixed, 2 worse, 1 better, 1 gone, 2 unchanged"],
        [""],
        ["STATUS", "BEFORE", "AFTER", "CHANGE", "FUNCTION", "LOCATION"],
        ["gone", "90.00", "", "-90.00", "Removed", "a.go:7"],
        ["worse", "12.00", "31.50", "+19.50", "Store.Put", "a.go:2"],
        [""],
        ["KNOWN AGAIN", "FROM", "TO", "ALIKE"],
        ["moved", "Moved old.go:6", "Moved new.go:6", ""],
    ]
    assert shown.err == "4 more: see --limit\n"
    document = await run("--from", "abcdef1", "--to", project.tasks[1], "--json")
    assert document.json == await project.system.get(f"{await project.path}/diff")
    for arguments, code, says in [
        (("--from", "dev"), 3, "from: no analysis of this project is of a commit or a ref dev"),
        (("--to", project.tasks[0]), 3, "no earlier analysis of another commit"),
        (("--project", "nope"), 3, "there is no analysis"),
    ]:
        refused = await run(*arguments)
        assert (refused.code, refused.out, says in refused.err) == (code, "", True), refused


async def test_the_command_line_tells_that_more_functions_moved_than_it_shows(project: Project, tmp_path: Path) -> None:
    before, after = (attrs.evolve(FIRST, functions={f"{file}.go:{name}": 2.0 for name in "AB"}) for file in "ab")
    await project.analyze(before, attrs.evolve(after, commit_sha=SECOND.commit_sha))
    for limit, name, note in (("1", "A", "more functions are known again: see --limit\n"), ("2", "B", "")):
        shown = await gctd("repo", "diff", project.url, "--limit", limit, url=project.system.url, home=tmp_path)
        assert [row for row in shown.rows if row[0] == "moved"][-1] == [
            "moved",
            f"{name} a.go:{limit}",
            f"{name} b.go:{limit}",
            "",
        ]
        assert (shown.code, shown.err) == (0, note)
