"""Settings of repositories and projects, over the API and the command line. Each test has a separate repository."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.programs.cli import gctd
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

FIELDS = {"ref", "test_args", "crap_args", "submodules", "timeout", "git_timeout", "go_flags", "coverpkg", "store_source"}
_NUMBERS = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A system whose repositories have the projects `.`, `p1` and `p2`, and whose server has different time limits."""
    directory = tmp_path_factory.mktemp("config")
    async with tracker_system(directory, GCTD_TASK_TIMEOUT="25m", FAKE_PROJECTS="3") as running:
        await running.start_worker(1)
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def repo(system: TrackerSystem) -> str:
    """A repository that is ready."""
    url = f"https://example.com/config/{next(_NUMBERS)}"
    await system.register(url)
    return url


async def config(system: TrackerSystem, url: str, subdir: str = "") -> Any:
    return await system.get(f"/api/repo-config?url={url}&subdir={subdir}")


async def change(system: TrackerSystem, url: str, **settings: Any) -> Any:
    return await system.post("/api/repo-config", {"url": url, **settings})


async def test_where_nothing_is_set_the_server_s_own_values_hold(system: TrackerSystem, repo: str) -> None:
    assert await config(system, repo, "p1") == {
        "url": repo,
        "subdir": "p1",
        "stored": dict.fromkeys(FIELDS),
        "effective": {
            "ref": "main",
            "test_args": "",
            "crap_args": [],
            "submodules": False,
            "timeout": "25m",
            "git_timeout": "10m",
            "go_flags": "",
            "coverpkg": False,
            "store_source": "always",
        },
        "origin": dict.fromkeys(FIELDS, "default"),
    }


async def test_a_project_has_its_own_settings_then_the_root_s_then_the_server_s(system: TrackerSystem, repo: str) -> None:
    await change(system, repo, ref="dev", timeout="5m", test_args="-short", crap_args=["--threshold=20"])
    answer = await change(system, repo, subdir="p1", timeout="7m", test_args="", submodules=False)
    assert answer == await config(system, repo, "p1")
    effective, origin = answer["effective"], answer["origin"]
    assert (effective["ref"], origin["ref"]) == ("dev", "root")
    assert (effective["timeout"], origin["timeout"]) == ("7m", "project")
    assert (effective["test_args"], origin["test_args"]) == ("", "project")
    assert (effective["submodules"], origin["submodules"]) == (False, "project")
    assert (effective["crap_args"], origin["crap_args"]) == (["--threshold=20"], "root")
    assert (effective["go_flags"], origin["go_flags"]) == ("", "default")
    assert answer["stored"] == dict.fromkeys(FIELDS) | {"timeout": "7m", "test_args": "", "submodules": False}
    root = await config(system, repo)
    assert (root["subdir"], root["effective"]["timeout"], root["origin"]["timeout"]) == ("", "5m", "root")
    assert await config(system, repo, ".") == root
    assert (await config(system, repo, "p2"))["effective"] == root["effective"]


async def test_an_absent_setting_stays_and_null_removes_it(system: TrackerSystem, repo: str) -> None:
    await change(system, repo, subdir="p1", ref="dev", go_flags="-tags=e2e")
    kept = await change(system, repo, subdir="p1", timeout="5m")
    assert {name: value for name, value in kept["stored"].items() if value is not None} == {
        "ref": "dev",
        "go_flags": "-tags=e2e",
        "timeout": "5m",
    }
    removed = await change(system, repo, subdir="p1", ref=None, go_flags=None)
    assert (removed["stored"]["ref"], removed["stored"]["timeout"], removed["effective"]["ref"]) == (None, "5m", "main")
    assert await change(system, repo, subdir="p1") == removed
    await change(system, repo, subdir="p1", timeout=None)
    events = [event.type for event in await system.events() if event.type.startswith("ProjectConfig")]
    assert events[-1] == "ProjectConfigRemoved"


async def test_delete_removes_all_settings_of_that_project_and_no_others(system: TrackerSystem, repo: str) -> None:
    await change(system, repo, ref="dev")
    await change(system, repo, subdir="p1", ref="other", timeout="5m")
    for _ in range(2):
        status, body = await system.status(f"/api/repo-config?url={repo}&subdir=p1", "DELETE")
        assert (status, body) == (204, "")
        left = await config(system, repo, "p1")
        assert (left["stored"], left["effective"]["ref"]) == (dict.fromkeys(FIELDS), "dev")
    assert (await system.status(f"/api/repo-config?url={repo}", "DELETE"))[0] == 204
    assert (await config(system, repo, "p1"))["effective"]["ref"] == "main"


async def test_a_task_is_made_with_the_settings_that_hold_when_it_is_scheduled(system: TrackerSystem, repo: str) -> None:
    await change(system, repo, ref="dev", timeout="5m")
    await change(system, repo, subdir="p1", ref="other", crap_args=["--min=3", "--exclude=gen"])
    tasks = await system.post("/api/repos/analyze", {"repo_url": repo})
    assert {task["project"]: task["ref"] for task in tasks} == {".": "dev", "p1": "other", "p2": "dev"}
    (queued,) = [event for event in await system.events(f"gctd.task.{tasks[1]['id']}") if event.type == "TaskQueued"]
    assert (queued.data.config.timeout, queued.data.config.crap_args) == ("5m", ("--min=3", "--exclude=gen"))


WRONG: list[tuple[dict[str, Any], set[str], str]] = [
    ({"subdir": "../up"}, {"subdir"}, "'..'"),
    ({"subdir": "/etc"}, {"subdir"}, "relative"),
    ({"ref": "-x"}, {"ref"}, "begins with '-'"),
    ({"ref": ""}, {"ref"}, "empty"),
    ({"ref": 7}, {"ref"}, "string"),
    ({"test_args": "-exec=sh"}, {"test_args"}, "-exec"),
    ({"test_args": "-run 'open"}, {"test_args"}, "not closed"),
    ({"test_args": "./..."}, {"test_args"}, "is not a flag"),
    ({"crap_args": ["--output=/etc/x"]}, {"crap_args"}, "--output"),
    ({"crap_args": ["--exclude=("]}, {"crap_args"}, "regular expression"),
    ({"crap_args": "--min=3"}, {"crap_args"}, "list"),
    ({"submodules": "yes"}, {"submodules"}, "true or false"),
    ({"coverpkg": "./..."}, {"coverpkg"}, "true or false"),
    ({"store_source": "sometimes"}, {"store_source"}, "must be always or never"),
    ({"timeout": "soon"}, {"timeout"}, "duration"),
    ({"timeout": "0s"}, {"timeout"}, "between"),
    ({"git_timeout": "48h"}, {"git_timeout"}, "between"),
    ({"go_flags": "-toolexec=sh"}, {"go_flags"}, "-toolexec"),
    ({"go_flags": "-run='a b'"}, {"go_flags"}, "spaces"),
    ({"tets_args": "-short"}, {"tets_args"}, "unknown"),
    ({"ref": "a b", "timeout": "x", "go_flags": "-o=/x", "test_args": "-short"}, {"ref", "timeout", "go_flags"}, "-o"),
]


@pytest.mark.parametrize(("settings", "fields", "says"), WRONG, ids=lambda value: None if isinstance(value, set) else str(value))
async def test_a_wrong_setting_is_400_with_the_field_and_the_flag_named(
    system: TrackerSystem, settings: dict[str, Any], fields: set[str], says: str
) -> None:
    url = "https://example.com/config/refused"
    await system.register(url)
    status, problem = await system.status("/api/repo-config", "POST", json={"url": url, "go_flags": "-race", **settings})
    assert status == 400
    assert {error["pointer"].removeprefix("#/") for error in problem["errors"]} == fields
    assert says in problem["message"]
    assert (await config(system, url))["stored"] == dict.fromkeys(FIELDS)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 400, "url"),
        ("?url=ftp://example.com/a", 400, "url"),
        ("?url=https://example.com/config/unknown", 404, "register it first"),
        ("?url={repo}&subdir=../x", 400, "subdir"),
        ("?url={repo}&subdir=nope", 404, "'nope'; it has: ., p1, p2"),
    ],
)
async def test_names_that_are_not_there(
    system: TrackerSystem, repo: str, method: str, query: str, status: int, says: str
) -> None:
    answered, problem = await system.status(f"/api/repo-config{query.format(repo=repo)}", method)
    assert (answered, says in problem["message"]) == (status, True), problem
    if status == 400:
        assert problem["errors"][0]["parameter"] == says


async def test_settings_of_an_unknown_repository_or_project_are_refused(system: TrackerSystem, repo: str) -> None:
    unknown = await system.status("/api/repo-config", "POST", json={"url": "https://example.com/config/unknown", "ref": "x"})
    assert (unknown[0], "register it first" in unknown[1]["message"]) == (404, True)
    typo = await system.status("/api/repo-config", "POST", json={"url": repo, "subdir": "nope", "ref": "x"})
    assert (typo[0], "'nope'; it has: ., p1, p2" in typo[1]["message"]) == (404, True)
    bad = await system.status("/api/repo-config", "POST", json={"url": "https://127.0.0.1/x", "ref": "x"})
    assert (bad[0], bad[1]["errors"][0]["pointer"]) == (400, "#/url")


async def test_before_the_projects_are_known_the_root_can_be_set(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as without_worker:
        url = "https://example.com/config/new"
        await without_worker.post("/api/repos", {"repo_url": url})
        answer = await change(without_worker, url, ref="dev")
        assert (answer["effective"]["ref"], answer["origin"]["ref"]) == ("dev", "root")
        status, problem = await without_worker.status("/api/repo-config", "POST", json={"url": url, "subdir": "p1", "ref": "x"})
        assert (status, "still registering" in problem["message"]) == (409, True)
        unset = await change(without_worker, url, ref=None)
        assert (unset["effective"]["ref"], unset["origin"]["ref"]) == ("HEAD", "default")


async def test_the_root_s_ref_says_where_projects_are_looked_for_and_leaves_the_default_branch_known(tmp_path: Path) -> None:
    source = gorepo.make(tmp_path / "source", files={"go.mod": gorepo.module("example.com/one"), **gorepo.tested("one")})
    source.git("checkout", "--quiet", "-b", "dev")
    source.write(gorepo.under("two", {"go.mod": gorepo.module("example.com/two"), **gorepo.tested("two")})).commit()
    source.git("checkout", "--quiet", "main")
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER)
        assert projects(await system.register(source.url)) == ["."]
        await change(system, source.url, ref="dev")
        await system.post("/api/repos?refresh=true", {"repo_url": source.url})
        found = await system.until_repo(source.url, "ready")
        assert (projects(found), found["DefaultRef"]) == ([".", "two"], "main")
        assert (await config(system, source.url, "two"))["effective"]["ref"] == "dev"
        await change(system, source.url, ref=None)
        assert (await config(system, source.url, "two"))["effective"]["ref"] == "main"


def projects(repo: Any) -> list[str]:
    return [project["name"] for project in repo["Profile"]["projects"]]


async def test_the_command_line_sets_shows_and_removes(system: TrackerSystem, repo: str, tmp_path: Path) -> None:
    async def run(*arguments: str) -> Any:
        return await gctd("repo", "config", *arguments, url=system.url, home=tmp_path)

    every = (
        *("--ref", "dev", "--test-args", "-short -run 'A|B'", "--crap-arg", "--threshold=20", "--crap-arg=--include-tests"),
        *(
            "--submodules",
            "--timeout",
            "5m",
            "--git-timeout",
            "90s",
            "--go-flags",
            "-tags=e2e",
            "--coverpkg",
            "--store-source",
            "never",
        ),
        *("--give-up-after", "20s"),
    )
    done = await run("set", repo, "--subdir", "p1", *every)
    assert (done.code, done.err) == (0, "")
    assert done.rows == [
        ["SETTING", "VALUE", "ORIGIN"],
        ["ref", "dev", "project"],
        ["test_args", "-short -run 'A|B'", "project"],
        ["crap_args", "--threshold=20 --include-tests", "project"],
        ["submodules", "true", "project"],
        ["timeout", "5m", "project"],
        ["git_timeout", "90s", "project"],
        ["go_flags", "-tags=e2e", "project"],
        ["coverpkg", "true", "project"],
        ["store_source", "never", "project"],
    ]
    changed = await run("set", repo, "--subdir", "p1", "--unset", "ref", "--no-submodules", "--json")
    assert (
        changed.json == json.loads((await run("get", repo, "--subdir", "p1", "--json")).out) == await config(system, repo, "p1")
    )
    assert (changed.json["stored"]["ref"], changed.json["stored"]["submodules"]) == (None, False)
    removed = await run("rm", repo, "--subdir", "p1")
    assert (removed.code, removed.out, removed.err) == (0, "", "removed the settings of p1\n")
    assert (await config(system, repo, "p1"))["stored"] == dict.fromkeys(FIELDS)
    for arguments, code, says in [
        (("set", repo), 2, "nothing to set"),
        (("set", repo, "--ref", "x", "--unset", "ref"), 2, "ref is set and removed at once"),
        (("set", repo, "--test-args", "-exec=sh"), 2, "test_args: the flag '-exec' is not allowed"),
        (("get", repo, "--subdir", "nope"), 3, "has no project 'nope'"),
        (("rm", "https://example.com/config/unknown"), 3, "not registered"),
    ]:
        refused = await run(*arguments)
        assert (refused.code, refused.out, says in refused.err) == (code, "", True), refused


async def test_the_ref_of_one_analysis_is_not_remembered_except_by_the_older_form(system: TrackerSystem, repo: str) -> None:

    async def stored() -> Any:
        return (await system.get(f"/api/repo-config?url={repo}"))["stored"]["ref"]

    (task,) = await system.post("/api/repos/analyze", {"repo_url": repo, "ref": "nosuch", "project": "."})
    assert (task["ref"], await stored()) == ("nosuch", None)
    (task,) = await system.post("/api/repos/analyze", {"repo_url": repo, "project": "."})
    assert task["ref"] == "main"
    task = await system.post("/api/tasks", {"repo_url": repo, "ref": "dev", "project": "."})
    assert (task["ref"], await stored()) == ("dev", "dev")
