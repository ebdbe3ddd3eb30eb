"""The actions, the templates and the hook: their commands and options exist, and a build ends as the gate does."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
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
from gctd.cli.tasks.commands import task
from tests.support import ROOT
from tests.support.tracker.forge_double import TOKEN, forge_double
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

CI = ROOT / "deploy" / "ci"
ACTION = yaml.safe_load((CI / "github" / "action.yml").read_text())
CHECK_ACTION = yaml.safe_load((CI / "github-check" / "action.yml").read_text())
ACTIONS = {"github": ACTION, "github-check": CHECK_ACTION}
TEMPLATES = yaml.safe_load((CI / "gitlab" / "gctd.yml").read_text())
TEMPLATE = {**TEMPLATES[".gctd"], **TEMPLATES[".gctd-gate"]}
CHECK_TEMPLATE = {**TEMPLATES[".gctd"], **TEMPLATES[".gctd-check"]}
[HOOK] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BIN = Path(sys.executable).parent

OLD = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0})
RISKY = attrs.evolve(OLD, commit_sha="b" * 40, functions={**OLD.functions, "a.go:Added": 90.0})
CLEAN = attrs.evolve(OLD, commit_sha="c" * 40)


def scripts() -> dict[str, str]:
    """The scripts of all, by name."""
    steps = {
        f"{name}: {step['name']}": step["run"]
        for name, action in ACTIONS.items()
        for step in action["runs"]["steps"]
        if "run" in step
    }
    jobs = {
        name: "\n".join([*job["before_script"], *job["script"], *job["after_script"]])
        for name, job in (("gitlab", TEMPLATE), ("gitlab-check", CHECK_TEMPLATE))
    }
    files = {file.name: file.read_text() for file in CI.glob("*.sh")}
    return {**steps, **jobs, **files}


def commands(script: str) -> list[list[str]]:
    """The words of each `gctd` command in a script, up to a redirection."""
    found = []
    for line in script.splitlines():
        if line.strip().startswith("gctd "):
            words = shlex.split(re.split(r" > | \|\| ", line)[0])
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
        command: click.Command = click.Group(commands={"check": check, "gate": gate, "repo": repo, "task": task})
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


@pytest.mark.parametrize(("name", "step"), [("github", "Analyse and judge"), ("github-check", "Check")])
async def test_each_variable_of_an_action_is_an_input_and_each_input_is_used(name: str, step: str) -> None:
    text = (CI / name / "action.yml").read_text()
    action = ACTIONS[name]
    used = set(re.findall(r"inputs\.(\w+)", text))
    assert used == set(action["inputs"])
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert all(step["shell"] == "bash" for step in steps if "run" in step)
    others = [step["uses"] for step in steps if "uses" in step]
    assert others
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in others), "a tag can be moved to other code"
    outputs = set(re.findall(r'echo "(\w+)=', scripts()[f"{name}: {step}"]))
    assert outputs == set(action["outputs"])


async def test_builds_cache_the_programs_and_what_go_has_built_and_upload_the_risky_functions() -> None:
    steps = CHECK_ACTION["runs"]["steps"]
    cached = [step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/cache@")]
    [run_check] = [step for step in steps if step.get("id") == "check"]
    assert cached == ["${{ runner.temp }}/gctd", run_check["env"]["GCTD_CACHE_DIRECTORY"]]
    caches = [path for cache in CHECK_TEMPLATE["cache"] for path in cache["paths"]]
    assert caches == [".gctd-cache/tool", ".gctd-cache/go"]
    assert CHECK_TEMPLATE["variables"]["GCTD_CACHE_DIRECTORY"] == "$CI_PROJECT_DIR/.gctd-cache/go"
    for action, step in ((ACTION, "gate"), (CHECK_ACTION, "check")):
        [upload] = [each for each in action["runs"]["steps"] if "upload-sarif" in each.get("uses", "")]
        assert upload["with"]["sarif_file"] == f"${{{{ steps.{step}.outputs.sarif }}}}"


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
        (CLEAN, {"base": OLD.commit_sha, "options": "--max-new x"}, 2, ""),
    ],
)
async def test_the_action_ends_a_build_as_the_gate_says(
    project: Project, tmp_path: Path, made: MadeUp, inputs: dict[str, str], code: int, result: str
) -> None:
    await prepared(project)
    values: dict[str, Any] = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    values |= {"server": project.system.url, "repository": project.url, "commit": made.commit_sha, **inputs}
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    environment = {name: values[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()}
    ended, said = await run(step["run"], tmp_path, environment | runner(tmp_path))
    assert ended == code, said
    outputs = outputs_of(tmp_path)
    assert outputs.get("result", "") == result
    assert outputs["sarif"] == str(tmp_path / "gctd-sarif")
    [risky] = [json.loads(file.read_text()) for file in (tmp_path / "gctd-sarif").glob("*.sarif")]
    assert len(risky["runs"][0]["results"]) == (1 if made is RISKY else 0)
    if result:
        assert outputs["comment"] == str(tmp_path / "gctd-gate.md")
        assert (tmp_path / "summary").read_text() == (tmp_path / "gctd-gate.md").read_text() != ""
    else:
        assert "comment" not in outputs


@pytest.mark.real
@pytest.mark.parametrize(("made", "inputs", "code", "result"), CASES)
async def test_the_template_ends_a_job_as_the_gate_says(
    project: Project, tmp_path: Path, made: MadeUp, inputs: dict[str, str], code: int, result: str
) -> None:
    del result
    await prepared(project)
    environment = {name: value for name, value in TEMPLATE["variables"].items() if "$" not in value}
    environment |= {"GCTD_URL": project.system.url, "GATE_REPOSITORY": project.url}
    environment |= {"GATE_COMMIT": made.commit_sha, "GATE_BASE": inputs["base"]}
    (tmp_path / ".gctd-cache").mkdir()
    ended, said = await run("\n".join(TEMPLATE["script"]), tmp_path, environment)
    assert ended == code, said
    assert (tmp_path / ".gctd-cache" / "verdict.md").read_text()
    assert TEMPLATE["allow_failure"] == {"exit_codes": 8}


@pytest.mark.real
@pytest.mark.parametrize(("code", "result"), [(0, "passed"), (1, "failed"), (8, "unknown"), (2, ""), (6, "")])
async def test_the_action_without_a_tracker_ends_a_build_as_the_check_does(tmp_path: Path, code: int, result: str) -> None:
    """Also if the check could not be made, and has written no file."""
    writes = 'echo risk | tee "$6" > "$8"' if result else ":"
    program(tmp_path / "bin" / "gctd", f"{writes}; exit {code}")
    step = next(step for step in CHECK_ACTION["runs"]["steps"] if step.get("id") == "check")
    environment = {"BASE": "main", "DIRECTORY": ".", "OPTIONS": "--max-new 1", "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    ended, said = await run(step["run"], tmp_path, environment | runner(tmp_path))
    assert ended == code, said
    outputs = outputs_of(tmp_path)
    assert outputs.get("result", "") == result
    assert ("comment" in outputs, "sarif" in outputs, (tmp_path / "summary").exists()) == (bool(result),) * 3


@pytest.mark.real
@pytest.mark.parametrize(("code", "has_files"), [(0, True), (1, True), (8, True), (2, False)])
async def test_the_template_without_a_tracker_ends_a_job_as_the_check_does(tmp_path: Path, code: int, has_files: bool) -> None:
    writes = "echo risk > .gctd-cache/verdict.md; echo risk > .gctd-cache/verdict.sarif" if has_files else ":"
    program(tmp_path / "bin" / "gctd", f"{writes}; exit {code}")
    (tmp_path / ".gctd-cache").mkdir()
    environment = {"CHECK_BASE": "main", "CHECK_OPTIONS": "", "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    ended, said = await run("\n".join(CHECK_TEMPLATE["script"]), tmp_path, environment)
    assert ended == code, said
    ended, said = await run("\n".join(CHECK_TEMPLATE["after_script"]), tmp_path, environment)
    assert ended == 0, said
    for name in CHECK_TEMPLATE["artifacts"]["paths"]:
        assert (tmp_path / name).exists() == has_files


@pytest.mark.real
@pytest.mark.parametrize("forge", ["github", "gitlab"])
async def test_a_pull_request_has_one_comment_which_later_builds_update(tmp_path: Path, forge: str) -> None:
    async with forge_double() as double:
        double.comments[7] = [{"id": 1000 + number, "body": "by a person"} for number in range(120)]
        environment = {
            "github": {
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": double.url,
                "GITHUB_REPOSITORY": "shop/orders",
                "GITHUB_TOKEN": TOKEN,
                "PULL_REQUEST": "7",
            },
            "gitlab": {
                "CI_API_V4_URL": f"{double.url}/api/v4",
                "CI_MERGE_REQUEST_PROJECT_ID": "12",
                "CI_MERGE_REQUEST_IID": "7",
                "GCTD_COMMENT_TOKEN": TOKEN,
            },
        }[forge]
        for text in ("not passed", "passed"):
            (tmp_path / "verdict.md").write_text(text)
            ended, said = await run(f"python3 {CI}/comment.py check verdict.md", tmp_path, environment)
            assert ended == 0, said
        assert [comment["body"] for comment in double.comments[7][120:]] == ["<!-- gctd check -->\n\npassed"]
        wrong = {name: "wrong" if value == TOKEN else value for name, value in environment.items()}
        ended, said = await run(f"python3 {CI}/comment.py check verdict.md", tmp_path, wrong)
        assert (ended, "the token of the build has to be allowed to write comments" in said) == (1, True), said


@pytest.mark.real
async def test_programs_are_installed_from_a_checkout_and_its_lock_file_and_no_pages_are_built(tmp_path: Path) -> None:
    """By all builds and by the hook. A package that is asked for by its name could be anybody's."""
    root, done = tmp_path / "checkout", tmp_path / "calls"
    (root / "deploy").mkdir(parents=True)
    shutil.copytree(CI, root / "deploy" / "ci")
    program(tmp_path / "gctd", 'echo "run: $*"')
    program(tmp_path / "pip", f'echo "$GCTD_PAGES" "$@" >> {done}; cp {tmp_path}/gctd "${{0%/*}}/gctd"')
    program(tmp_path / "bin" / "python3", f'mkdir -p "$3/bin" && cp {tmp_path}/pip "$3/bin/python"')
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    for _ in range(2):
        ended, said = await run(f"{root}/{HOOK['entry']} --max-new 1", tmp_path, environment)
        assert (ended, said) == (0, "run: check --max-new 1\n")
    assert done.read_text().splitlines() == [
        f" -m pip install --quiet --require-hashes --no-deps --requirement {root}/requirements/runtime.lock",
        f"skip -m pip install --quiet --no-deps --no-build-isolation {root}",
    ]
    assert (HOOK["id"], HOOK["language"], HOOK["types"], HOOK["pass_filenames"]) == ("gctd-check", "script", ["go"], False)
    installs = [line for text in scripts().values() for line in text.splitlines() if re.search(r"\bpipx? |\buvx?\b", line)]
    assert len(installs) == 2, "install.sh has the only ones"


@pytest.mark.real
async def test_a_job_takes_the_programs_of_one_commit(tmp_path: Path) -> None:
    source, job = tmp_path / "source", tmp_path / "job"
    job.mkdir()
    program(source / "gctd", "echo installed")
    program(source / "deploy" / "ci" / "install.sh", f'mkdir -p "$1/bin" && cp {source}/gctd "$1/bin/gctd"')
    git = "git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main"
    made = f"cd {source} && git init --quiet && git add . && {git} commit --quiet -m one && git rev-parse HEAD"
    _, commit = await run(made, tmp_path, {})
    script = "\n".join([*TEMPLATE["before_script"], "gctd"])
    environment = {"GCTD_SOURCE": source.as_uri(), "GCTD_COMMIT": commit.strip()}
    assert await run(script, job, {**environment, "PATH": "/usr/bin:/bin"}) == (0, "installed\n")
    ended, said = await run(script, job, {**environment, "GCTD_COMMIT": "main"})
    assert (ended, "GCTD_COMMIT is 'main'" in said) == (2, True), said


def program(file: Path, script: str) -> None:
    """Write a shell script that can be run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def runner(directory: Path) -> dict[str, str]:
    """The variables of a runner of GitHub for a step."""
    places = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
    return {"RUNNER_TEMP": str(directory), **{name: str(directory / file) for name, file in places.items()}}


def outputs_of(directory: Path) -> dict[str, str]:
    """The outputs of a step."""
    file = directory / "output"
    return dict(line.split("=", 1) for line in file.read_text().splitlines()) if file.exists() else {}
