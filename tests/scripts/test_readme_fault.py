"""The README is short. Its commands and the commands of the tutorials print the shown output, in order, on the demonstration."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from markdown_it import MarkdownIt

from tests.support import ROOT
from tests.support.programs.supervised import supervised
from tests.support.waiting import wait_until

README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIALS = [ROOT / "docs" / "tutorials" / f"{name}.md" for name in ("analyse-a-repository", "gate-a-pull-request")]
PAGES = [README, *(page.read_text(encoding="utf-8") for page in TUTORIALS)]
"""Pages that a reader goes through in this order, on one system."""
MARK = "---- block ----"
PORTS = {"8080": "gctd", "8081": "pantry", "8082": "graphql"}


@attrs.frozen
class Block:
    """Commands, and the output that is shown below them: a line `…` is any number of lines, `…` in a line any text."""

    commands: str
    output: str | None


def blocks(page: str) -> Sequence[Block]:
    """The blocks `sh` of a page, each with the block `text` that follows it."""
    fences = [token for token in MarkdownIt().parse(page) if token.type == "fence"]
    following = [*fences[1:], None]
    return [
        Block(fence.content, after.content if after is not None and after.info == "text" else None)
        for fence, after in zip(fences, following, strict=True)
        if fence.info == "sh"
    ]


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return the pattern of a shown output. Columns may have another width, and ports another number."""
    lines = [r"(?:.*\n)*" if line == "…" else f"{_line(line)} *\n" for line in shown.splitlines()]
    return re.compile("".join(lines))


def _line(line: str) -> str:
    text = "…".join(re.escape(" ".join(part.split(" "))) for part in line.strip().split("…"))
    return r"\s*" + re.sub(r"127\\\.0\\\.0\\\.1:\d+", r"127\\.0\\.0\\.1:\\d+", re.sub(r"(?:\\ )+", r"[ \\t]+", text)).replace(
        "…", ".*"
    )


def test_it_has_at_most_700_words_and_three_pictures() -> None:
    assert len(README.split()) <= 700
    assert README.count("![") == 3


def test_an_output_is_compared_line_by_line() -> None:
    shown = pattern_of("…\nA  B\n 1  x at 127.0.0.1:80\nin …/shop\n")
    assert shown.fullmatch("before\nA\tB\n1\tx at 127.0.0.1:4711\nin /tmp/shop\n")
    assert not shown.fullmatch("before\nA\tB\n2\tx at 127.0.0.1:4711\nin /tmp/shop\n")
    assert not shown.fullmatch("A\tB\n1\tx at 127.0.0.1:4711\nin /tmp/shop\nmore\n")


def _shell(script: str, directory: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.fault
@pytest.mark.timeout(900)
async def test_each_command_prints_what_is_shown(tmp_path: Path) -> None:
    start, *others = (block for page in PAGES for block in blocks(page))
    assert start.commands.split("#")[0].split() == ["uvx", "gctd", "up", "--demo"]
    data = tmp_path / ".local" / "share" / "gctd"
    options = ["--data-dir", str(data), "--ready-file", str(tmp_path / "ready.json"), "--port-base", "0"]
    command = [sys.executable, "-m", "gctd", "up", "--demo", *options]
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    with supervised(command, tmp_path / "console.txt", environment) as running:
        ready = await running.ready(120)
        await wait_until(lambda: "Ctrl-C stops" in running.said or running.process.poll() is not None, 600)
        assert start.output is not None
        assert pattern_of(start.output).fullmatch(running.said), running.said
        script = "\n".join(["set -eo pipefail", *(f"{each.commands}\necho '{MARK}'" for each in others)])
        for port, service in PORTS.items():
            script = script.replace(f"http://127.0.0.1:{port}", ready[service])
        done = await asyncio.to_thread(_shell, script, tmp_path, environment)
        assert done.returncode == 0, done.stderr
        printed = done.stdout.split(f"{MARK}\n")[:-1]
        for block, output in zip(others, printed, strict=True):
            whole = output if output.endswith("\n") or not output else f"{output}\n"
            assert pattern_of(block.output or "").fullmatch(whole), f"{block.commands}\n{output}"
        assert await running.end(signal.SIGINT) == 130
