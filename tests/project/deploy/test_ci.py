"""The actions, the templates and the hook: their commands and options exist, and a build ends as the gate does."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click
import pytest
import pytest_asyncio
import yaml

from gctd.cli.builds.check import check
from gctd.cli.builds.gate import gate
from gctd.cli.repos.commands import repo
from tests.support import ROOT
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

CI = ROOT / "deploy" / "ci"
ACTION = yaml.safe_load((CI / "github" / "action.yml").read_text())
TEMPLATE = yaml.safe_load((CI / "gitlab" / "gate.yml").read_text())[".gctd-gate"]
CHECK_ACTION = yaml.safe_load((CI / "github-check" / "action.yml").read_text())
CHECK_TEMPLATE = yaml.safe_load((CI / "gitlab" / "check.yml").read_text())[".gctd-check"]
[HOOK] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BIN = Path(sys.executable).parent

OLD = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0})
RISKY = attrs.evolve(OLD, commit_sha="b" * 40, functions={**OLD.functions, "a.go:Added": 90.0})
CLEAN = attrs.evolve(OLD, commit_sha="c" * 40)


def scripts() -> dict[str, str]:
    """The scripts of all, by name."""
    steps = {
        f"{name}: {step['name']}": step["run"]
        for name, action in (("github", ACTION), ("github-check", CHECK_ACTION))
        for step in action["runs"]["steps"]
    }
    jobs = {
        name: "\n".join([*job["before_script"], *job["script"], *job["after_script"]])
        for name, job in (("gitlab", TEMPLATE), ("gitlab-check", CHECK_TEMPLATE))
    }
    return {**steps, **jobs, "hook": HOOK["entry"]}


def commands(script: str) -> list[list[str]]:
    """The words of each `gctd` command in a script, up to a redirection."""
    found = []
    for line in script.splitlines():
        if line.strip().startswith("gctd "):
            words = shlex.split(line.split(">")[0])
            found.append(words[1:])
    return found


@pytest.mark.real
@pytest.mark.parametrize("name", scripts())
async def test_the_scripts_are_shell_with_commands_and_options_that_exist(name: str) -> None:
    script = scripts()[name]
    assert "${{" not in script, "an expression in a script would be run as shell"
    checked = await asyncio.create_subprocess_exec("bash", "-n", "-c", script)
    assert await checked.wait() == 0
    for words in commands(script):
        command: click.Command = click.Group(commands={"check": check, "gate": gate, "repo": repo})
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


@pytest.mark.parametrize(("name", "step"), [("github", "Analyse and judge"), ("github-check", "Check")])
async def test_each_variable_of_an_action_is_an_input_and_each_input_is_used(name: str, step: str) -> None:
    text = (CI / name / "action.yml").read_text()
    action = yaml.safe_load(text)
    used = set(re.findall(r"inputs\.(\w+)", text))
    assert used == set(action["inputs"])
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in action["runs"]["steps"])
    outputs = set(re.findall(r'echo "(\w+)=', scripts()[f"{name}: {step}"]))
    assert outputs == set(action["outputs"])


async def test_the_hook_of_pre_commit_runs_the_check_once_for_go_files() -> None:
    assert HOOK["id"] == "gctd-check"
    assert (HOOK["language"], HOOK["types"], HOOK["pass_filenames"]) == ("python", ["go"], False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[TrackerSystem, Path]]:
    directory = tmp_path_factory.mktemp("ci")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        yield system, directory / "analyses"


@pytest_asyncio.fixture(loop_scope="module")
async def project(shared: tuple[TrackerSystem, Path]) -> Project:
    return await Project.registered(*shared)


async def run(script: str, directory: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a script as the forge's runner does; exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script),
        cwd=directory,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(directory), "PYTHONPATH": str(ROOT), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def prepared(project: Project) -> None:
    """The base is analysed, and the worker knows the results of the other commits."""
    await project.analyze(OLD)
    for made in (RISKY, CLEAN):
        made.write(project.directory, made.commit_sha)


CASES = [(RISKY, {"base": OLD.commit_sha}, 1, "failed"), (CLEAN, {"base": OLD.commit_sha}, 0, "passed")]


@pytest.mark.real
@pytest.mark.parametrize(
    ("made", "inputs", "code", "result"),
    [
        *CASES,
        (RISKY, {"base": OLD.commit_sha, "options": "--max-new 1"}, 0, "passed"),
    ],
)
async def test_the_action_fails_a_build_as_the_gate_says(
    project: Project, tmp_path: Path, made: MadeUp, inputs: dict[str, str], code: int, result: str
) -> None:
    await prepared(project)
    given: dict[str, Any] = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
    given |= {"server": project.system.url, "repository": project.url, "commit": made.commit_sha, **inputs}
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    environment = {name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()}
    environment |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out")}
    environment |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "sum")}
    found, said = await run(step["run"], tmp_path, environment)
    assert found == code, said
    assert f"result={result}\n" in (tmp_path / "out").read_text()
    assert (tmp_path / "sum").read_text() == (tmp_path / "gctd-gate.md").read_text() != ""


@pytest.mark.real
@pytest.mark.parametrize(("made", "inputs", "code", "result"), CASES)
async def test_the_template_fails_a_job_as_the_gate_says(
    project: Project, tmp_path: Path, made: MadeUp, inputs: dict[str, str], code: int, result: str
) -> None:
    del result
    await prepared(project)
    environment = {name: value for name, value in TEMPLATE["variables"].items() if "$" not in value}
    environment |= {"GCTD_URL": project.system.url, "GATE_REPOSITORY": project.url}
    environment |= {"GATE_COMMIT": made.commit_sha, "GATE_BASE": inputs["base"]}
    found, said = await run("\n".join(TEMPLATE["script"]), tmp_path, environment)
    assert found == code, said
    assert (tmp_path / "gctd-gate.md").read_text()
    assert TEMPLATE["allow_failure"] == {"exit_codes": 8}
