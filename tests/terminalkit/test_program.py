"""A program made with the kit: the features that it gets without code."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from http import HTTPStatus
from types import ModuleType

import click
import pytest

from terminalkit.client.transport import Unavailable
from terminalkit.config.flags import SettingFlags, SettingSources
from terminalkit.config.loading import SettingsSource, setting, settings
from terminalkit.coroutine import command, completes, completion_command
from terminalkit.display.table import Column
from terminalkit.failure import MEANINGS, ExitCode, code_of
from terminalkit.invocation import Invocation
from terminalkit.program import Command, Program
from tests.support.programs.cli import Result

DEFECT = "internal error, a defect of the program"
Run = Callable[..., Result]


@settings
class Settings:
    """The settings of the program."""

    port: int = setting(default=80, ge=1, help="Port to listen on.")
    wait: float = setting(default=5.0, duration=True, help="How long to wait.")


FLAGS = SettingFlags.of(SettingsSource(Settings, "SHOP", ".shop.yaml"))

PROGRAM = Program(
    name="shop-till",
    summary="Sell things.",
    epilog="\b\nExamples:\n  shop-till list",
    commands={
        "list": Command("shop_commands", "List things."),
        "serve-till": Command("shop_commands", "Serve."),
        "completion": Command("shop_commands", "Complete."),
    },
    meanings={ExitCode.CONFLICT: "conflict: sold out"},
    hints={ExitCode.CONFLICT: "come back tomorrow"},
    asking={ExitCode.UNAVAILABLE: "open the shop"},
)


class Away(Exception):
    """The shop is closed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Unsure(Exception):
    """An error that says itself what to do."""

    status = HTTPStatus.NOT_FOUND
    hint = "look again"


class Sold(Exception):
    """There is none left."""

    status = HTTPStatus.CONFLICT


ERRORS: dict[str, Exception] = {
    "away": Away("it is night"),
    "sold": Sold("no cup"),
    "unreachable": Unavailable("nobody answers"),
    "unsure": Unsure("no tea"),
    "defect": ZeroDivisionError("oh"),
    "disk": OSError(28, "No space left on device", "/x"),
}


async def _values(known: list[str]) -> list[str]:
    return known


@click.command("list")
@click.argument("fault", required=False, shell_complete=completes(lambda: nullcontext(["away", "defect", "disk"]), _values))
@command(not_found="shop-till list --all # {fault}")
async def list_(invocation: Invocation, *, fault: str | None) -> int:
    if fault is not None:
        raise ERRORS[fault]
    if invocation.output.json:
        invocation.output.document([{"name": "tea"}])
    else:
        invocation.output.table([Column("NAME", "id")], [["tea"]])
    return ExitCode.OK


@click.command("serve-till")
@FLAGS.options("port", "wait")
def serve_till(*, sources: SettingSources[Settings]) -> None:
    click.echo(sources.load().values)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    module = ModuleType("shop_commands")
    commands = {"list": list_, "serve_till": serve_till, "completion": completion_command("shop-till", "all")}
    module.__dict__.update(commands)
    monkeypatch.setitem(sys.modules, "shop_commands", module)
    before = signal.getsignal(signal.SIGTERM)

    def call(*arguments: str) -> Result:
        code = PROGRAM.run(arguments)
        written = capsys.readouterr()
        return Result(code, written.out, written.err)

    yield call
    signal.signal(signal.SIGTERM, before)


def test_help_has_the_commands_and_every_exit_code_in_the_program_s_words(run: Run) -> None:
    told = run("--help")
    assert told.code == 0
    assert "serve-till" in told.out
    assert "conflict: sold out" in told.out
    assert [code for code in MEANINGS if f"  {int(code)} " not in told.out] == []


def test_data_is_a_document_or_lines(run: Run) -> None:
    assert run("list") == Result(0, "NAME\ntea\n")
    assert run("list", "--json").json == [{"name": "tea"}]


@pytest.mark.parametrize(
    ("fault", "code", "message", "hint"),
    [
        ("away", 6, "list: it is night", None),
        ("unreachable", 6, "list: nobody answers", "open the shop"),
        ("sold", 5, "list: no cup", "come back tomorrow"),
        ("unsure", 3, "list: no tea", "look again"),
        ("disk", 1, "list: /x: No space left on device", None),
        (
            "defect",
            1,
            "list: internal error, a defect of the program: ZeroDivisionError('oh')",
            "--verbose shows the traceback",
        ),
    ],
)
def test_an_error_says_what_why_and_what_to_do(run: Run, fault: str, code: int, message: str, hint: str | None) -> None:
    told = run("list", fault, "--json")
    assert (told.code, told.out, told.error["message"], told.error.get("hint")) == (code, "", message, hint)
    assert run("list", fault).err.splitlines()[0] == f"error: {message}"


def test_an_error_that_is_not_found_leads_to_the_command_s_own_advice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Unsure, "hint")
    assert run("list", "unsure", "--json").error["hint"] == "shop-till list --all # unsure"


@pytest.mark.parametrize("arguments", [("list", "--timeout", "0s"), ("list", "--timeout", "soon"), ("serve-till", "--port", "x")])
def test_a_wrong_command_line_names_the_help(run: Run, arguments: tuple[str, ...]) -> None:
    told = run(*arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith(f"hint: shop-till {arguments[0]} --help\n")


def test_a_setting_is_a_flag_with_the_help_that_it_has(run: Run) -> None:
    assert "Settings(port=81, wait=90.0)" in run("serve-till", "--port", "81", "--wait", "1m30s").out
    told = " ".join(run("serve-till", "--help").out.split())
    assert "--wait DURATION How long to wait. [env: SHOP_WAIT; default: 5s]" in told
    wrong = run("serve-till", "--port", "0")
    assert (wrong.code, wrong.err.splitlines()[1]) == (2, "hint: shop-till config show --help")


def test_a_variable_that_has_no_effect_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHOP_PROT", "SHOP_SOMETHING", "SHOP_SERVICE_HOST", "SHOP_PORT_80_TCP_ADDR", "SHOPPING_PORT"):
        monkeypatch.setenv(name, "1")
    told = run("serve-till")
    assert told.code == 0
    assert told.err.splitlines() == [
        "warning: SHOP_PROT is unknown and has no effect; did you mean SHOP_PORT?",
        "warning: SHOP_SOMETHING is unknown and has no effect",
    ]


def test_completion_is_the_program_s(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "_SHOP_TILL_COMPLETE=zsh_complete" in run("completion", "zsh").out
    for name, value in {"_SHOP_TILL_COMPLETE": "bash_complete", "COMP_WORDS": "shop-till list d", "COMP_CWORD": "2"}.items():
        monkeypatch.setenv(name, value)
    assert run().out == "plain,defect\nplain,disk\n"


def test_the_exit_code_of_an_error_is_its_own_or_that_of_its_status() -> None:
    assert code_of(ValueError("x")) is None
    assert code_of(Away("x")) is ExitCode.UNAVAILABLE
    assert json.dumps({"code": ExitCode.PARTIAL}) == '{"code": 7}'
