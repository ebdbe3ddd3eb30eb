"""The README is short. Its commands, and the commands of tutorials and guides, print the shown output, in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from tests.support import ROOT
from tests.support.programs.command_blocks import NOT_RUN, Block, addresses, blocks, pattern_of, run_blocks
from tests.support.programs.supervised import supervised
from tests.support.tracker import go_library
from tests.support.waiting import wait_until

README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIALS = [ROOT / "docs" / "tutorials" / f"{name}.md" for name in ("analyse-a-repository", "gate-a-pull-request")]
PAGES = [README, *(page.read_text(encoding="utf-8") for page in TUTORIALS)]
"""Pages that a reader goes through in this order, on one system."""
GUIDES = ("pantry", "graphql", "operation")
"""Guides with commands, in the order in which they are run on one system."""


def guide(name: str) -> str:
    return (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")


def environment_of(home: Path) -> Mapping[str, str]:
    """An environment with a fresh home, and the programs of this set-up."""
    programs = str(Path(sys.executable).parent)
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("GCTD_", "PANTRY_", "GRAPHQL_", "NATS_"))}
    return {**bare, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def test_it_has_at_most_700_words_and_three_pictures() -> None:
    assert len(README.split()) <= 700
    assert README.count("![") == 3


def test_an_output_is_compared_line_by_line() -> None:
    shown = pattern_of("…\nA  B\n 1  x at 127.0.0.1:80\nin …/shop\n")
    assert shown.fullmatch("before\nA\tB\n1\tx at 127.0.0.1:4711\nin /tmp/shop\n")
    assert not shown.fullmatch("before\nA\tB\n2\tx at 127.0.0.1:4711\nin /tmp/shop\n")
    assert not shown.fullmatch("A\tB\n1\tx at 127.0.0.1:4711\nin /tmp/shop\nmore\n")


def test_a_json_document_is_compared_by_its_members() -> None:
    block = Block("curl …", '{"id": "…", "rows": [{"row": 1}]}', "json")
    assert block.problem_of('{"other": 1}{"rows":[{"row":1}],\n"id":"4711"}\n') is None
    assert block.problem_of('{"rows":[{"row":2}],"id":"4711"}')
    assert block.problem_of('{"rows":[{"row":1}],"id":"4711","more":1}')
    assert block.problem_of("")


def test_few_blocks_are_not_run_and_each_has_a_reason() -> None:
    pages = [*PAGES, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "guides").glob("*.md")))]
    found = [block for page in pages for block in blocks(page)]
    reasons = [block.commands.splitlines()[0].removeprefix(NOT_RUN).strip() for block in found if not block.is_run]
    assert all(reasons)
    assert len(reasons) <= 9
    assert len(found) >= 38
    assert {path.stem for path in (ROOT / "docs" / "guides").glob("*.md") if blocks(path.read_text(encoding="utf-8"))} == set(
        GUIDES
    )


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_each_command_prints_what_is_shown(tmp_path: Path) -> None:
    """A block without a shown output prints no line."""
    start, *others = (block for page in PAGES for block in blocks(page))
    others = [attrs.evolve(block, output=block.output or "") for block in others]
    assert start.commands.split("#")[0].split() == ["uvx", "gctd", "up", "--demo"]
    data = tmp_path / ".local" / "share" / "gctd"
    options = ["--data-dir", str(data), "--ready-file", str(tmp_path / "ready.json"), "--port-base", "0"]
    command = [sys.executable, "-m", "gctd", "up", "--demo", *options]
    environment = environment_of(tmp_path)
    await go_library.give(data / "cache")
    with supervised(command, tmp_path / "console.txt", environment) as running:
        ready = await running.ready(120)
        await wait_until(lambda: "Ctrl-C stops" in running.said or running.process.poll() is not None, 600)
        assert start.output is not None
        assert pattern_of(start.output).fullmatch(running.said), running.said
        assert await asyncio.to_thread(run_blocks, others, tmp_path, environment, addresses(ready), 300) == []
        assert await running.end(signal.SIGINT) == 130


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_each_command_of_the_guides_prints_what_is_shown(tmp_path: Path) -> None:
    """The data directory is in the working directory, as in a checkout. Backups are below it in place of the root."""
    shown = [block for name in GUIDES for block in blocks(guide(name)) if block.is_run]
    await go_library.give(tmp_path / ".data" / "cache")
    options = ["--data-dir", str(tmp_path / ".data"), "--ready-file", str(tmp_path / "ready.json"), "--port-base", "0"]
    environment = environment_of(tmp_path)
    with supervised([sys.executable, "-m", "gctd", "up", *options], tmp_path / "console.txt", environment) as running:
        ready = await running.ready(120)
        replaced = {**addresses(ready), " /backup/": f" {tmp_path}/backup/", " /keys/": f" {tmp_path}/keys/"}
        assert await asyncio.to_thread(run_blocks, shown, tmp_path, environment, replaced, 600) == []
        assert await running.end(signal.SIGINT) == 130
