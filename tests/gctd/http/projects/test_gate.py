"""The gate: a verdict is about a commit and its base, stays the same, and is not given if it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.control.comparing.judging import AT_ONCE
from gctd.domain.analysis import PackageProblem
from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import make, module
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

OLD = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0, "a.go:Get": 5.0})
RISKY = attrs.evolve(OLD, commit_sha="b" * 40, functions={**OLD.functions, "a.go:Added": 90.0})
CLEAN = attrs.evolve(OLD, commit_sha="c" * 40)
PANICKED = attrs.evolve(
    OLD,
    commit_sha="d" * 40,
    functions={"a.go:Get": 5.0},
    measured={"a.go:Parse": (10, 0.0)},
    states={"a.go:Parse": ("tests_failed", "panicked: panic: no")},
)


async def ask(project: Project, **question: Any) -> Any:
    return await project.system.post(f"{await project.path}/gate", question)


async def result(project: Project, **question: Any) -> str:
    found: str = (await ask(project, **question))["result"]
    return found


async def is_given(project: Project, found: Any) -> None:
    """Wait until a verdict that was asked for is given."""

    async def given() -> bool:
        events = await project.system.events(f"gctd.verdict.{found['verdict']}")
        return [event.type for event in events] == ["VerdictAsked", "VerdictGiven"]

    await wait_until(given, timeout=60)


async def test_a_red_gate_stays_red_however_often_the_commit_is_analysed(project: Project) -> None:
    await project.analyze(OLD, RISKY)
    first = await ask(project)
    assert (first["result"], first["passed"], [one["function"] for one in first["functions"]]) == ("failed", False, ["Added"])
    assert first["base"] == {"kind": "previous commit of the ref", "commit_sha": OLD.commit_sha, "task_id": None}
    for _ in range(2):
        await project.analyze(RISKY)
        again = await ask(project)
        assert (again["result"], again["verdict"]) == ("failed", first["verdict"])
    # Nor does a run in which the function happens to be covered change what was said of the commit.
    await project.analyze(attrs.evolve(CLEAN, commit_sha=RISKY.commit_sha))
    assert await result(project) == "failed"
    assert (await project.system.get(f"{await project.path}/gate"))["result"] == "failed"
    diff = await project.system.get(f"{await project.path}/diff")
    assert diff["from"]["commit_sha"] == OLD.commit_sha
    events = await project.system.events(f"gctd.verdict.{first['verdict']}")
    assert [event.type for event in events] == ["VerdictAsked", "VerdictGiven"]


async def test_scoring_old_profiles_again_changes_no_usual_base(project: Project) -> None:
    older = [attrs.evolve(OLD, commit_sha=str(number) * 40) for number in range(1, 5)]
    await project.analyze(*older, CLEAN)
    for made in (*older, CLEAN):
        made.write(project.directory, made.commit_sha)
    for task in await project.system.post("/api/repos/rescore", {"repo_url": project.url, "all_history": True}):
        await project.system.until_task(task["id"], "completed")
    await project.analyze(RISKY)
    assert (await ask(project))["base"]["commit_sha"] == CLEAN.commit_sha
    diff = await project.system.get(f"{await project.path}/diff")
    assert diff["from"]["commit_sha"] == CLEAN.commit_sha


async def test_the_latest_analysis_is_scored_again_also_if_it_is_of_an_earlier_test_run(project: Project) -> None:
    """The branch goes back to a commit that was tested before: its analysis is the latest, and no test is run for it."""
    await project.analyze(OLD, RISKY)
    tested, _ = project.tasks
    await project.analyze(attrs.evolve(OLD, reused_from=tested))
    OLD.write(project.directory, OLD.commit_sha)
    (task,) = await project.system.post("/api/repos/rescore", {"repo_url": project.url})
    assert (task["commit_sha"], task["rescored_from"]) == (OLD.commit_sha, tested)
    await project.system.until_task(task["id"], "completed")
    latest = await project.system.get(await project.path)
    assert (latest["task_id"], latest["rescored_from"]) == (task["id"], tested)
    tasks = await project.system.post("/api/repos/rescore", {"repo_url": project.url, "all_history": True})
    assert [(one["commit_sha"], one["rescored_from"]) for one in tasks] == [
        (OLD.commit_sha, tested),
        (RISKY.commit_sha, project.tasks[1]),
    ]


async def test_of_a_shortened_report_only_the_listed_functions_are_judged(project: Project, tmp_path: Path) -> None:
    """Number 11 enters the report if a worse function is fixed, and a new function that ranks 11th is not in it."""
    flags = ("--top=2",)
    old = attrs.evolve(OLD, functions={"a.go:A": 90.0, "a.go:B": 80.0}, more=1, flags=flags)
    fixed = attrs.evolve(old, commit_sha=CLEAN.commit_sha, functions={"a.go:B": 80.0, "a.go:C": 70.0})
    await project.analyze(old, fixed)
    found = await ask(project)
    assert (found["result"], found["partial"], found["functions"]) == ("unknown", True, []), found
    assert found["reason"] == "a report was shortened (--min, --top): it is not known whether these hold: max_new, max_worse"
    shown = await gctd("gate", project.url, url=project.system.url, home=tmp_path)
    assert (shown.code, "a report was shortened" in shown.out) == (8, True), shown
    written = await gctd("repo", "export", project.url, "--format", "markdown", url=project.system.url, home=tmp_path)
    assert "> A report was shortened (--min, --top): a function that is new or gone here may only be hidden." in written.out
    for limits, expected in (
        ({"max_exceeded": 2}, "passed"),  # the number at the threshold of the project covers all functions
        ({"max_exceeded": 1, "threshold": 60}, "failed"),
        ({"max_exceeded": 2, "threshold": 60}, "unknown"),
        ({"max_exceeded": 1, "threshold": 75}, "passed"),
        ({"max_crap": 80}, "passed"),
        ({"max_crap": 79}, "failed"),
    ):
        assert await result(project, new_risk=False, **limits) == expected, limits
    await project.analyze(attrs.evolve(fixed, commit_sha=PANICKED.commit_sha, functions={}, flags=("--min=95",)))
    assert await result(project, new_risk=False, max_crap=30) == "unknown"


async def test_a_package_that_crashed_does_not_make_the_share_better(project: Project) -> None:
    """The package b has most statements and no covered one: without its blocks, 90 % of the rest are covered."""
    rest = "mode: set\nexample.com/x/a/a.go:1.1,2.2 90 1\nexample.com/x/a/a.go:3.1,4.2 10 0\n"
    whole = attrs.evolve(OLD, profile=f"{rest}example.com/x/b/b.go:1.1,2.2 900 0\n")
    crashed = attrs.evolve(RISKY, profile=rest, uncovered=(PackageProblem(path="example.com/x/b", reason="panicked: panic: no"),))
    await project.analyze(whole)
    assert await result(project, new_risk=False, min_coverage=60) == "failed"
    await project.analyze(crashed)
    found = await ask(project, new_risk=False, min_coverage=60)
    assert (found["result"], found["passed"], [one["passed"] for one in found["checks"]]) == ("unknown", False, [None]), found
    assert found["reason"] == "it is not known whether these hold: min_coverage"
    failed_tests = attrs.evolve(crashed, commit_sha=CLEAN.commit_sha, profile=whole.profile.replace("900 0", "900 1"))
    await project.analyze(failed_tests)
    assert await result(project, new_risk=False, min_coverage=60) == "passed", "the share is a lower bound"


async def test_values_without_a_measured_function_are_not_known(project: Project, tmp_path: Path) -> None:
    state = ("tests_failed", "panicked: panic: no")
    await project.analyze(attrs.evolve(PANICKED, states=dict.fromkeys((*PANICKED.functions, *PANICKED.measured), state)))
    found = await ask(project, new_risk=False, max_exceeded=0, max_average=5, max_crap=30)
    assert (found["result"], [(one["passed"], one["value"]) for one in found["checks"]]) == ("unknown", [(None, None)] * 3)
    arguments = ("--absolute", "--max-exceeded", "0", "--max-average", "5", "--max-crap", "30")
    shown = await gctd("gate", project.url, *arguments, url=project.system.url, home=tmp_path)
    assert (shown.code, "it is not known whether the gate is passed" in shown.err) == (8, True), shown


async def test_without_a_base_the_verdict_is_unknown_and_not_green(project: Project, tmp_path: Path) -> None:
    await project.analyze(RISKY, RISKY)
    found = await ask(project)
    assert (found["result"], found["passed"], found["verdict"]) == ("unknown", False, None)
    assert found["reason"] == "no analysis of another commit on main is older: name a base"
    shown = await gctd("gate", project.url, url=project.system.url, home=tmp_path)
    assert (shown.code, "it is not known whether the gate is passed" in shown.err) == (8, True), shown
    assert await result(project, new_risk=False, max_exceeded=1) == "passed"
    assert await result(project, new_risk=False, max_exceeded=0) == "failed"


async def test_a_base_that_is_not_analysed_is_analysed_and_the_verdict_follows(project: Project, tmp_path: Path) -> None:
    attrs.evolve(OLD, commit_sha="e" * 40).write(project.directory, "e" * 40)
    await project.analyze(RISKY)
    found = await ask(project, base="e" * 40)
    assert (found["result"], found["base"]["kind"], found["base"]["commit_sha"]) == ("unknown", "commit", "e" * 40)
    assert found["reason"] == f"the base eeeeeeeeeeee is not analysed yet: {found['base']['task_id']} analyses it"
    again = await ask(project, base="e" * 40)
    assert again["base"]["task_id"] in (found["base"]["task_id"], None)
    await is_given(project, found)
    assert await result(project, base="e" * 40) == "failed"
    shown = await gctd("gate", project.url, "--base", "e" * 40, url=project.system.url, home=tmp_path)
    assert (shown.code, "max_new" in shown.err) == (1, True)
    # An analysis that was made only as a base of the comparison is not the latest one.
    assert (await project.system.get(await project.path))["repo_info"]["commit_sha"] == RISKY.commit_sha
    whole, own = [await project.system.get(f"{await project.path}/history{query}") for query in ("", "?ref=main&limit=9")]
    assert [[one["commit_sha"][0] for one in history] for history in (whole, own)] == [["e", "b"], ["b"]]
    exported = await gctd("repo", "export", project.url, url=project.system.url, home=tmp_path)
    assert exported.json["repo_info"]["commit_sha"] == RISKY.commit_sha


async def test_a_base_that_cannot_be_analysed_in_the_same_way_leaves_the_verdict_unknown_and_says_why(project: Project) -> None:
    await project.analyze(RISKY)
    attrs.evolve(OLD, commit_sha="f" * 40, go_version="go9.9.0").write(project.directory, "f" * 40)
    found = await ask(project, base="f" * 40)
    await project.system.until_task(found["base"]["task_id"], "completed")
    for _ in range(3):
        found = await ask(project, base="f" * 40)
    tasks = await project.system.get("/api/tasks?show_seen=true")
    assert len([task for task in tasks if task.get("commit_sha") == "f" * 40]) == 1
    assert (found["result"], "measured differently: Go go9.9, not go1.26" in found["reason"]) == ("unknown", True), found


async def test_verdicts_that_stay_unknown_do_not_delay_the_ones_after_them(project: Project) -> None:
    await project.analyze(RISKY)
    attrs.evolve(OLD, commit_sha="f" * 40, go_version="go9.9.0").write(project.directory, "f" * 40)
    attrs.evolve(OLD, commit_sha="e" * 40).write(project.directory, "e" * 40)
    unknown = await ask(project, base="f" * 40)
    await project.system.until_task(unknown["base"]["task_id"], "completed")
    for limit in range(AT_ONCE):
        assert (await ask(project, base="f" * 40, max_exceeded=limit))["result"] == "unknown"
    await is_given(project, await ask(project, base="e" * 40))


async def test_the_base_is_the_commit_at_which_a_branch_was_left(shared: tuple[TrackerSystem, Path], tmp_path: Path) -> None:
    system, directory = shared
    made = make(tmp_path / "repo", files={"go.mod": module("example.com/based")})
    first = made.head()
    left = made.commit("left here")
    made.git("checkout", "--quiet", "-b", "topic")
    topic = made.commit("topic")
    made.git("checkout", "--quiet", "main")
    newer = made.commit("main goes on")
    made.git("tag", "v1.0.0", first)
    await system.register(made.url)
    project = Project(system, directory, made.url)
    await project.analyze(*(attrs.evolve(OLD, commit_sha=one) for one in (first, left, newer)))
    await project.analyze(attrs.evolve(RISKY, commit_sha=topic, ref="topic"))

    async def base(name: str, to: str) -> tuple[str, str, str]:
        found = await ask(project, base=name, to=to)
        return found["base"]["kind"], found["base"]["commit_sha"], found["result"]

    assert await base("main", topic) == ("merge base", left, "failed")
    assert await base("topic", newer) == ("merge base", left, "passed")
    assert await base("main", newer) == ("first parent", left, "passed")
    assert await base("v1.0.0", topic) == ("tag", first, "failed")
    assert await base(left[:10], topic) == ("commit", left, "failed")
    path = f"/api/repos/{await project.id}"
    assert (await system.get(f"{path}/diff?base=main&to={topic}"))["from"]["commit_sha"] == left
    head = (await system.get("/api/projections"))["head"]
    for question in "gate?base=main", "gate", "diff?base=main", "diff":
        async with system.http.get(f"{system.url}{path}/{question}") as answer:
            assert (answer.status, answer.headers["Event-Sequence"]) == (200, str(head)), question
    assert (await system.status(f"{path}/gate", "POST", json={"base": "nosuch"}))[0] == 404
    assert (await system.status(f"{path}/gate", "POST", json={"base": topic, "to": topic}))[0] == 400
    assert (await system.status(f"{path}/gate?from={topic}&to={topic}"))[0] == 400
    # Where the branch goes later does not change what was said.
    made.git("merge", "--quiet", "topic")
    assert await base("main", topic) == ("merge base", left, "failed")


async def test_a_verdict_without_a_base_in_the_history_says_why(shared: tuple[TrackerSystem, Path], tmp_path: Path) -> None:
    system, directory = shared
    made = make(tmp_path / "repo", files={"go.mod": module("example.com/rootless")})
    first = made.head()
    made.git("checkout", "--quiet", "--orphan", "other")
    other = made.commit("a new beginning")
    await system.register(made.url)
    project = Project(system, directory, made.url)
    await project.analyze(attrs.evolve(OLD, commit_sha=first))
    await project.analyze(attrs.evolve(OLD, commit_sha=other, ref="other"))
    for to, reason in (
        (first, f"{first[:12]} is a commit of main without a parent: there is nothing before it"),
        (other, f"{other[:12]} has no commit in common with main"),
    ):
        found = await ask(project, base="main", to=to)
        assert (found["result"], found["reason"]) == ("unknown", reason)


async def test_a_verdict_is_unknown_while_a_function_is_not_measured_and_then_given(project: Project, tmp_path: Path) -> None:
    """A repeated analysis of the commit, whose tests pass, is judged: neither the lack nor a failure because of it is kept."""
    await project.analyze(OLD, PANICKED)
    found = await ask(project)
    assert (found["result"], found["verdict"], found["offending"], found["lacking"]) == ("unknown", None, 0, 1)
    assert found["reason"] == (
        "not measured: Parse (tests_failed: panicked: panic: no): it is not known whether these hold: max_worse"
    )
    (lost,) = found["unmeasured"]
    assert (lost["function"], lost["before"]["crap"], lost["checks"]) == ("Parse", 12.0, ["max_worse"])
    assert (lost["after"]["state"], lost["after"]["reason"]) == ("tests_failed", "panicked: panic: no")
    strict = await ask(project, require_measured=True)
    assert (strict["result"], strict["checks"][-1]["name"], strict["verdict"]) == ("failed", "require_measured", None)
    shown = await gctd("gate", project.url, url=project.system.url, home=tmp_path)
    row = "12.00\t\tParse\ta.go:1\tnot measured\ttests_failed: panicked: panic: no\n"
    assert (shown.code, row in shown.out) == (8, True), shown
    shown = await gctd("gate", project.url, "--require-measured", url=project.system.url, home=tmp_path)
    assert shown.code == 1
    history = await project.system.get(f"{await project.path}/history")
    assert history[0]["measured"]["total_funcs"] == 1
    await project.analyze(attrs.evolve(PANICKED, states={}, measured={"a.go:Parse": (10, 0.0)}, functions={"a.go:Get": 5.0}))
    for question in ({}, {"require_measured": True}):
        again = await ask(project, **question)
        assert (again["result"], [one["function"] for one in again["functions"]]) == ("failed", ["Parse"])
        assert again["verdict"] is not None
