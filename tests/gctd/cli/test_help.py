"""Help is complete and fast, and has examples. Also the version and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from gctd.cli.root import PROGRAM as GCTD
from pantry.cli.root import PROGRAM as PANTRY
from tests.gctd.cli.conftest import Here
from tests.support.programs.cli import environment, gctd
from tests.support.programs.commands import commands, leaves
from tests.support.tracker.fake_api import REPO_URL, FakeApi, Reply, repo_document, task_document
from tests.support.waiting import wait_until

HEAVY = {"aiohttp", "rich", "nats", "msgspec", "yaml", "cattrs", "structlog", "sqlite3", "httpkit", "eventlog", "asyncio"}
LIGHT = {"eventlog", "eventlog.facade"}
"""Every package has its names from there, without importing them."""


PROGRAMS = {"gctd": GCTD, "pantry": PANTRY}
EVERY = {(name, *path): command for name, program in PROGRAMS.items() for path, command in commands(program.group)}


def test_the_commands_are_the_documented_ones() -> None:
    assert leaves(GCTD.group) == {
        *("serve", "up", "completion", "config show", "doctor", "gate", "check"),
        *("repo add", "repo show", "repo list", "repo analyze", "repo rm"),
        *("repo check-updates", "repo rescore", "repo history", "repo diff", "repo export"),
        *("repo config set", "repo config get", "repo config rm", "coverage upload"),
        *("task list", "task show", "task result", "task watch"),
        *("task attempts", "task log", "task export", "task cancel", "task retry", "task delete", "task hide-all"),
        *("worker list", "worker pause", "worker unpause"),
        *("token create", "token list", "token revoke"),
    }
    assert leaves(PANTRY.group) == {
        *("serve", "run", "up", "completion", "config show", "scan", "stock", "watch"),
        *("migrate up", "migrate down", "migrate version", "migrate force"),
        *("product list", "product show", "product add", "product edit"),
        *("product deactivate", "product activate", "product count", "product import"),
        *("category list", "category add", "category edit"),
        *("code list", "code show", "code assign", "code remove", "takeover"),
        *("movement add", "movement list", "movement show", "movement undo", "movement import"),
        *("token create", "token list", "token revoke", "pair"),
        *("person erase", "report stock", "report low-stock", "report consumption", "report shopping-list"),
        "report stocktakes",
    }


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_has_help_with_examples_of_itself(path: tuple[str, ...]) -> None:
    command = EVERY[path]
    assert command.get_short_help_str().endswith((".", "..."))
    context = click.Context(command)
    for param in command.params:
        if isinstance(param, click.Option):
            record = param.get_help_record(context)
            assert record is not None
            assert len(record[1]) > len("[default: ]")
    if not isinstance(command, click.Group):
        lines = (command.epilog or "").splitlines()
        assert lines[1] == "Examples:"
        named = ("pantry", "serve") if path == ("pantry", "run") else path  # the same command
        assert sum(" ".join(named) in line for line in lines) >= 3


def test_the_help_of_the_program_has_the_summary_of_each_command() -> None:
    same = {("pantry", "run"): "The same as `serve`."}
    for program in PROGRAMS.values():
        for name, command in program.commands.items():
            own = EVERY[program.name, name].help
            assert own is not None
            assert same.get((program.name, name), own.split("\n\n")[0].replace("\n", " ")) == command.summary


@pytest.mark.real
@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_help_imports_nothing_heavy(tmp_path: Path, program: str, arguments: tuple[str, ...]) -> None:
    script = (
        f"import sys; from {program}.cli import main; code = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment(None, tmp_path), check=True
    )
    assert done.stdout
    assert {name.partition(".")[0] for name in done.stderr.split() if name not in LIGHT} & HEAVY == set()


@pytest.mark.real
@pytest.mark.parametrize(("program", "arguments"), [("gctd", ["task", "list"]), ("pantry", ["product", "list"])])
def test_a_command_that_asks_the_server_imports_no_server(tmp_path: Path, program: str, arguments: list[str]) -> None:
    """It has to be there in a third of a second."""
    script = (
        f"import sys; from {program}.cli import main; code = main({arguments});"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment("http://127.0.0.1:1", tmp_path, {"PANTRY_URL": "http://127.0.0.1:1"}),
        check=False,
    )
    assert done.returncode == 6
    assert {f"{program}.client.api"} <= set(done.stderr.split())
    assert set(done.stderr.split()) & {"aiohttp.web", "yaml", "rich", "nats", "structlog", "sqlite3", "eventlog.commit"} == set()


def test_the_version_is_the_package_s(here: Here) -> None:
    result = here("--version")
    assert (result.code, result.out) == (0, f"gctd {version('gctd')}\n")


@pytest.mark.real
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(here: Here, shell: str) -> None:
    result = here("completion", shell)
    assert (result.code, result.err) == (0, "")
    assert f"_GCTD_COMPLETE={shell}_complete" in result.out


@pytest.mark.real
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("gctd re", ["repo"]),
        ("gctd task ", ["attempts", "cancel", "delete", "export", "hide-all", "list", "log", "result", "retry", "show", "watch"]),
        ("gctd task list --status f", ["failed"]),
        ("gctd task show task-1", ["task-1", "task-10"]),
        ("gctd repo show ", [REPO_URL]),
        ("gctd worker pause w", ["worker-1"]),
    ],
)
async def test_completion_offers_commands_and_names_of_the_server(
    api: FakeApi, tmp_path: Path, words: str, offered: list[str]
) -> None:
    api.tasks = {f"task-{number}": task_document(number) for number in (1, 2, 10)}
    api.repos = {REPO_URL: repo_document()}

    async def answered() -> list[str] | None:
        result = await gctd(url=api.url, home=tmp_path, env=_asking(words))
        assert result.code == 0
        return [line.rpartition(",")[2] for line in result.out.splitlines()] if result.out.strip() else None

    found = await wait_until(answered, 60)  # on a busy machine the server may not answer in time
    assert found == offered


@pytest.mark.real
async def test_completion_does_not_wait_for_a_slow_server_and_is_silent_without_one(api: FakeApi, tmp_path: Path) -> None:
    api.always["GET", "/api/workers"] = Reply(200, [], delay=30)
    slow = await gctd(url=api.url, home=tmp_path, env=_asking("gctd worker pause "))
    none = await gctd(url="http://127.0.0.1:1", home=tmp_path, env=_asking("gctd worker pause "))
    for result in (slow, none):
        assert (result.out.strip(), result.err) == ("", "")


def _asking(words: str) -> dict[str, str]:
    split = words.split(" ")
    return {"_GCTD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(split) - 1), "PATH": os.defpath}
