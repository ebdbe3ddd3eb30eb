"""The output of `gctd up` from its first second: on a terminal a line that is redrawn, elsewhere plain lines."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gctd.cli.root import PROGRAM
from gctd.cli.up import starts as module
from gctd.cli.up.console import Console
from gctd.cli.up.starts import Starts
from gctd.scan.errors import NoGo
from gctd.scan.go.toolchain import Toolchain
from tests.support.waiting import wait_until

SECONDS = re.compile(r"\d+(\.\d)? s")


@pytest.fixture
def terminal() -> Iterator[tuple[Console, int]]:
    """A console on a pseudo terminal, and the descriptor that shows its output."""
    shown, theirs = os.openpty()
    os.set_blocking(shown, False)
    with os.fdopen(theirs, "w") as stream:
        yield Console(verbose=False, stream=stream), shown
    os.close(shown)


def why(name: str) -> str:
    return "applying events" if name == "serve" else ""


async def test_a_terminal_has_one_line_with_the_parts_that_are_waited_for(
    terminal: tuple[Console, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REDRAWN", 0.01)
    console, shown = terminal
    output = ""

    async def drawn(text: str) -> None:
        def look() -> bool:
            nonlocal output
            try:
                output += os.read(shown, 65536).decode()
            except BlockingIOError:
                return False
            return text in output

        await wait_until(look)

    starts = Starts(console, why)
    async with starts.of(["serve", "pantry"]):
        await drawn("\r\x1b[Kup: waiting for serve (applying events), pantry ... 0 s")
        starts.ready("pantry")
        await drawn("\r\x1b[Kup: waiting for serve (applying events) ... 0 s")
    console.say("the end")
    await drawn("\r\x1b[Kup: the end")
    lines = [line.rpartition("\x1b[K")[2] for line in output.split("\r\n")]
    assert [SECONDS.sub("N s", line) for line in lines] == [
        "up: starting serve, pantry",
        "up: pantry is ready: N s",
        "up: the end",
        "",
    ]


async def test_a_pipe_has_plain_lines_and_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGN_OF_LIFE", 0.02)
    stream = io.StringIO()
    starts = Starts(Console(verbose=False, stream=stream), why)
    async with starts.of(["serve", "pantry"]):
        await wait_until(lambda: "waiting for" in stream.getvalue())
        starts.ready("pantry")
        starts.ready("serve")
    lines = [SECONDS.sub("N s", line) for line in stream.getvalue().splitlines()]
    assert (lines[0], lines[1]) == ("up: starting serve, pantry", "up: waiting for serve (applying events), pantry ... N s")
    assert lines[-2:] == ["up: pantry is ready: N s", "up: serve is ready: N s"]
    assert "\x1b" not in stream.getvalue()


def test_a_long_warning_of_a_service_has_a_line_for_each_value() -> None:
    stream = io.StringIO()
    console = Console(verbose=False, stream=stream)
    entry = {"level": "warning", "event": "no sandbox", "reason": "r" * 80, "remedy": "m" * 80, "timestamp": "now"}
    console.relay("worker-1", json.dumps(entry))
    assert stream.getvalue().splitlines() == [
        "worker-1: warning: no sandbox",
        f"worker-1:   reason: {'r' * 80}",
        f"worker-1:   remedy: {'m' * 80}",
    ]


def test_the_last_words_of_services_that_are_ended_are_no_errors_of_the_system() -> None:
    stream = io.StringIO()
    console = Console(verbose=False, stream=stream)
    console.ending = True
    console.relay("serve", "error: serve: terminated")
    console.relay("serve", '{"level": "warning", "event": "a warning"}')
    assert stream.getvalue() == "serve: warning: a warning\n"


@pytest.mark.real
@pytest.mark.parametrize("program", ["git", "go"])
def test_a_missing_program_is_named_with_the_remedy_before_anything_starts(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def no_go(_: Path) -> Toolchain:
        raise NoGo("this machine has no go")

    if program == "go":
        monkeypatch.setattr("gctd.cli.doctor.host.find_toolchain", no_go)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GCTD_GO_TOOLCHAINS", "local")
    data = tmp_path / "data"
    assert PROGRAM.run(["up", "--port-base", "0", "--data-dir", str(data)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["up", "error", "hint"]
    assert f"no {program}" in lines[1]
    assert "no worker can run here" in lines[1]
    assert "install" in lines[2]
    assert not data.exists()
