"""Coverage profiles that were made elsewhere: scored as our own run, merged by flag, refused if they do not fit the source."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from gctd.domain.analysis import analysis_id
from tests.support.programs.cli import gctd
from tests.support.tracker import go_repo
from tests.support.tracker.go_repo import GoRepo
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

PATH = {"PATH": os.environ["PATH"]}
SCORES = ("file", "line", "function", "crap", "cyclomatic", "coverage", "stmt_coverage", "state")
FILES = {
    "go.mod": go_repo.module("example.com/up"),
    **{f"one/{name}": text for name, text in go_repo.tested("one").items()},
    **{f"two/{name}": text for name, text in go_repo.tested("two").items()},
    "bare/bare.go": "package bare\n\nfunc Bare(x int) int {\n\tif x > 1 {\n\t\treturn 2\n\t}\n\treturn x\n}\n",
    "acceptance/acceptance_test.go": 'package acceptance\n\nimport "testing"\n\nfunc TestAll(t *testing.T) {}\n',
    "plan/plan.go": "//go:build plan9\n\npackage plan\n\nfunc Plan() int { return 1 }\n",
    "plan/plan_test.go": '//go:build plan9\n\npackage plan\n\nimport "testing"\n\nfunc TestPlan(t *testing.T) {}\n',
    "one/one_windows.go": "package one\n\nfunc Windows(x int) int {\n\tif x > 1 {\n\t\treturn 2\n\t}\n\treturn x\n}\n",
}
WINDOWS = "mode: set\nexample.com/up/one/one_windows.go:3.25,4.11 1 1\nexample.com/up/one/one_windows.go:4.11,6.3 1 0\n"
WINDOWS += "example.com/up/one/one_windows.go:7.2,7.10 1 1\n"


@attrs.frozen
class Built:
    """A repository on a system with a real worker, a profile of its head, and the id of its analyses."""

    system: TrackerSystem
    repo: GoRepo
    commit: str
    profile: str
    file: Path
    id: str

    async def upload(self, profile: str, *, flag: str = "linux", commit: str | None = None, **more: Any) -> tuple[int, Any]:
        body = {
            "commit": commit or self.commit,
            "flag": flag,
            "profile": profile,
            "go_version": "go1.26.0",
            "platform": "linux/amd64",
            **more,
        }
        return await self.system.status(f"/api/repos/{self.id}/coverage", "POST", json=body)

    async def ended(self, task: Any) -> Any:
        return await self.system.until_task(task["id"], "completed", "failed", timeout=110)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def built(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Built]:
    directory = tmp_path_factory.mktemp("uploads")
    repo = go_repo.make(directory / "source", files=FILES)
    file = directory / "cover.out"
    command = ["go", "test", "-vet=off", f"-coverprofile={file}", "./..."]  # as a build server does
    await asyncio.to_thread(subprocess.run, command, cwd=repo.path, check=True, capture_output=True)
    async with tracker_system(directory) as system:
        await system.start_worker(1, program=REAL_WORKER)
        found = await system.register(repo.url)
        yield Built(system, repo, repo.head(), file.read_text(), file, analysis_id(found["ID"], "."))


def scores(analysis: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(entry[name] for name in SCORES) for entry in analysis["entries"])


async def test_an_upload_gives_the_scores_of_our_own_run_and_the_same_again_gives_the_same_task(
    built: Built, tmp_path: Path
) -> None:
    system = built.system
    arguments = ("coverage", "upload", built.repo.url, str(built.file), "--commit", built.commit, "--flag", "linux", "--json")
    shown = await gctd(*arguments, url=system.url, home=tmp_path, env=PATH)
    assert shown.code == 0, shown.err
    (uploaded,) = shown.json["analyses"]
    (task,) = await system.post("/api/repos/analyze", {"repo_url": built.repo.url})
    own_task = await built.ended(task)
    assert own_task["status"] == "completed", own_task["reason"]
    own = await system.get(f"/api/tasks/{task['id']}/result")
    assert scores(uploaded) == scores(own)
    same = ("summary", "measured", "states", "platform", "uncovered", "go_version")
    assert {name: uploaded[name] for name in same} == {name: own[name] for name in same}
    assert (uploaded["coverage_source"], own["coverage_source"]) == ("upload", "tests")
    assert uploaded["repo_info"]["commit_sha"] == built.commit
    again = await gctd(*arguments, url=system.url, home=tmp_path, env=PATH)
    assert (again.code, again.json["tasks"][0]["id"]) == (0, shown.json["tasks"][0]["id"])
    stages = (await system.get(f"/api/tasks/{shown.json['tasks'][0]['id']}/attempts"))[0]["stages"]
    assert [stage["stage"] for stage in stages] == ["clone", "analyse", "store"]


@pytest.mark.parametrize("coverpkg", [False, True])
async def test_an_upload_is_compared_with_the_test_run_of_a_worker(built: Built, coverpkg: bool) -> None:
    flags = {"coverpkg": coverpkg, "go_flags": "-tags=extra"}
    await built.system.post("/api/repo-config", {"url": built.repo.url, **flags})
    base = built.repo.commit("measured by a worker")
    (task,) = await built.system.post("/api/repos/analyze", {"repo_url": built.repo.url})
    assert (await built.ended(task))["status"] == "completed"
    commit = built.repo.commit("measured elsewhere")
    _, task = await built.upload(built.profile, commit=commit, module_scope=coverpkg, tags=["extra"])
    assert (await built.ended(task))["status"] == "completed"
    gate = await built.system.get(f"/api/repos/{built.id}/gate?to={task['id']}&base={base}")
    assert (gate["result"], gate["reason"]) == ("passed", "")
    await built.system.post("/api/repo-config", {"url": built.repo.url, **dict.fromkeys(flags)})


async def test_profiles_of_several_platforms_are_merged(built: Built) -> None:
    status, first = await built.upload(built.profile, flag="unix", go_version="go1.26.1")
    assert (status, (await built.ended(first))["status"]) == (202, "completed")
    before = await built.system.get(f"/api/tasks/{first['id']}/result")
    status, second = await built.upload(WINDOWS, flag="windows", platform="windows/amd64")
    assert (status, (await built.ended(second))["status"]) == (202, "completed")
    after = await built.system.get(f"/api/tasks/{second['id']}/result")
    of = {entry["function"]: entry for entry in before["entries"] if entry["file"] == "one/one_windows.go"}
    assert of["Windows"]["state"] == "not_built"
    now = {entry["function"]: entry for entry in after["entries"] if entry["file"] == "one/one_windows.go"}
    assert (now["Windows"]["state"], round(now["Windows"]["stmt_coverage"], 1)) == ("measured", 66.7)
    others = [one for one in scores(before) if one[2] != "Windows"]
    assert [one for one in scores(after) if one[2] != "Windows"] == others
    assert "windows/amd64" in after["platform"]


async def test_a_flag_is_not_overwritten_unless_that_is_asked_for(built: Built) -> None:
    commit = built.repo.commit("for the flags")
    status, first = await built.upload(built.profile, flag="f", commit=commit)
    assert (status, (await built.ended(first))["status"]) == (202, "completed")
    other = built.profile.replace(" 1 1\n", " 1 0\n", 1)
    status, refused = await built.upload(other, flag="f", commit=commit)
    assert (status, "another profile with the flag 'f'" in refused["detail"]) == (409, True)
    status, again = await built.upload(built.profile, flag="f", commit=commit)
    assert (status, again["id"]) == (200, first["id"])
    status, replaced = await built.upload(other, flag="f", commit=commit, replace=True)
    assert (status, (await built.ended(replaced))["status"]) == (202, "completed")


async def test_profiles_of_two_minor_versions_of_go_are_not_merged(built: Built) -> None:
    """Go 1.27 divides code into other blocks than 1.26, so blocks of both would overlap."""
    commit = built.repo.commit("for two versions of Go")
    status, _ = await built.upload(built.profile, flag="old", commit=commit, go_version="go1.26.0")
    assert status == 202
    status, refused = await built.upload(built.profile, flag="new", commit=commit, go_version="go1.27.0")
    assert (status, "'old' of go1.26.0" in refused["detail"]) == (409, True)
    status, _ = await built.upload(built.profile, flag="patch", commit=commit, go_version="go1.26.9")
    assert status == 202
    alone = built.repo.commit("for one version of Go")
    statuses = [
        (await built.upload(built.profile, commit=alone, go_version=version, replace=True))[0]
        for version in ("go1.26.0", "go1.27.0")
    ]
    assert statuses == [202, 202]


async def test_a_profile_of_an_earlier_major_version_of_the_module_is_taken(built: Built, tmp_path: Path) -> None:
    """A branch for corrections has the module path without `/v2`."""
    sources = {f"one/{name}": text for name, text in go_repo.tested("one").items()}
    repo = go_repo.make(tmp_path / "source", files={"go.mod": go_repo.module("example.com/major"), **sources})
    commit = repo.head()
    repo.write({"go.mod": go_repo.module("example.com/major/v2")}).commit("the next major version")
    found = await built.system.register(repo.url)
    major = attrs.evolve(built, repo=repo, commit=commit, id=analysis_id(found["ID"], "."))
    lines = built.profile.replace("example.com/up/", "example.com/major/").splitlines(keepends=True)
    status, task = await major.upload("".join(line for line in lines if line.startswith("mode:") or "/one/" in line))
    assert (status, (await built.ended(task))["status"]) == (202, "completed")


async def test_coverage_of_failed_tests_is_a_lower_bound(built: Built) -> None:
    commit = built.repo.commit("for failed tests")
    _, task = await built.upload(built.profile, commit=commit, tests_failed=True)
    assert (await built.ended(task))["status"] == "completed"
    states = (await built.system.get(f"/api/tasks/{task['id']}/result"))["states"]
    assert (states.get("tests_failed"), states.get("measured", 0)) == (4, 0)


async def test_a_tested_package_that_a_profile_leaves_out_has_no_coverage(built: Built) -> None:
    """Directories without code of this platform are complete without blocks."""
    commit = built.repo.commit("for a part")
    one = "".join(line for line in built.profile.splitlines(keepends=True) if "/two/" not in line)
    _, task = await built.upload(one, commit=commit)
    assert (await built.ended(task))["status"] == "completed"
    shown = await built.system.get(f"/api/tasks/{task['id']}/result")
    assert shown["uncovered"] == [
        {"path": "example.com/up/bare", "reason": "no tests"},
        {"path": "example.com/up/two", "reason": "the uploaded profile does not have it"},
    ]
    gate = await built.system.get(f"/api/repos/{built.id}/gate?to={task['id']}&new_risk=false&min_coverage=1")
    assert (gate["result"], [check["passed"] for check in gate["checks"]]) == ("unknown", [None])


async def test_code_that_no_build_has_is_not_missing_in_a_profile(built: Built) -> None:
    """Neither code in a directory with an empty go.mod, nor code that uses cgo, if the tests did without it."""
    tests = 'import "testing"\n\nfunc TestAll(t *testing.T) {}\n'
    built.repo.write(
        {
            "apart/go.mod": "",
            "apart/apart.go": "package apart\n\nfunc Apart() int { return 1 }\n",
            "apart/apart_test.go": f"package apart\n\n{tests}",
            "native/native.go": 'package native\n\nimport "C"\n\nfunc Native() int { return 1 }\n',
            "native/native_test.go": f"package native\n\n{tests}",
        }
    )
    commit = built.repo.commit("code that no build has")
    _, task = await built.upload(built.profile, commit=commit, cgo=False)
    assert (await built.ended(task))["status"] == "completed"
    shown = await built.system.get(f"/api/tasks/{task['id']}/result")
    assert [one["path"] for one in shown["uncovered"]] == ["example.com/up/bare"]
    gate = await built.system.get(f"/api/repos/{built.id}/gate?to={task['id']}&new_risk=false&min_coverage=1")
    assert gate["result"] == "passed"


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ("", "not a coverage profile"),
        ("<html>", "not a coverage profile"),
        ("mode: set\n", "has no block"),
        ("mode: set\nexample.com/up/one/one.go:1.1,2.2 1\n", "line 2 is not a block"),
        ("mode: set\nexample.org/other/a.go:1.1,2.2 1 1\n", "not in the module example.com/up"),
    ],
)
async def test_a_text_that_cannot_be_a_profile_of_the_module_is_refused_at_once(built: Built, profile: str, reason: str) -> None:
    status, answer = await built.upload(profile, flag="bad")
    assert (status, reason in str(answer)) == (400, True), answer


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("example.com/up/one/gone.go:1.1,2.2 1 1", "one/gone.go: it is not in the repository"),
        ("example.com/up/one/../../../etc/passwd.go:1.1,2.2 1 1", "it is not in the module"),
        ("example.com/up/one/one.go:3.1,900.2 1 1", "one/one.go has "),
        ("example.com/up/one/one.go:1.1,1.5 1 1", "blocks are in no function, such as one/one.go:1.1"),
        ("example.com/up/two/two.go:3.900,4.2 1 1", "two/two.go has "),
    ],
)
async def test_a_profile_that_does_not_fit_the_source_is_refused_with_the_mismatch(
    built: Built, line: str, reason: str, tmp_path: Path
) -> None:
    forged = tmp_path / "forged.out"
    forged.write_text(f"{built.profile}{line}\n")
    commit = built.repo.commit("for a forged profile")
    arguments = ("coverage", "upload", built.repo.url, str(forged), "--commit", commit, "--flag", "forged")
    shown = await gctd(*arguments, url=built.system.url, home=tmp_path, env=PATH)
    assert shown.code == 1
    assert "the uploaded profile does not fit the source at this commit" in shown.err
    assert reason in shown.err


async def test_a_profile_of_another_commit_is_refused_and_one_of_no_commit_too(built: Built) -> None:
    lines = "".join(f"// line {number}\n" for number in range(40))
    built.repo.write(
        {"one/one.go": f"package one\n\n{lines}\nfunc Other() int {{ return 1 }}\n", "one/one_test.go": "package one\n"}
    )
    commit = built.repo.commit("moved lines")
    _, task = await built.upload(built.profile, commit=commit)
    done = await built.ended(task)
    assert (done["status"], done["attempt"]) == ("failed", 1)
    assert "does not fit the source at this commit" in done["reason"]
    _, task = await built.upload(built.profile, commit="0" * 40)
    assert (await built.ended(task))["status"] == "failed"
    assert (await built.system.status(f"/api/repos/{'1' * 32}/coverage", "POST", json={}))[0] == 400
