"""The README is short. Its commands, and the commands of tutorials and guides, are typed as their reader does, in order.

The reader has a checkout that is set up, an empty home, a bare PATH, and no variable that the page does not set.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from tests.support import ROOT
from tests.support.programs.checkout import set_up_checkout
from tests.support.programs.command_blocks import Block, blocks, pattern_of
from tests.support.programs.loopback import own_loopback
from tests.support.programs.reader import Reader
from tests.support.programs.supervised import supervised
from tests.support.waiting import wait_until

README = "README.md"
PAGES = {
    README: "./scripts/up --demo",
    "docs/tutorials/analyse-a-repository.md": "./scripts/up --demo",
    "docs/tutorials/gate-a-pull-request.md": "./scripts/up --demo",
    "docs/guides/pantry.md": "gctd up",
    "docs/guides/graphql.md": "gctd up",
    "docs/guides/operation.md": "gctd up",
}
"""The pages that are typed while one system runs, in this order, and the command for the system that each of them names."""
TUTORIAL = "docs/tutorial.md"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_readme_has_at_most_700_words_besides_commands_and_three_pictures() -> None:
    text = text_of(README)
    assert len(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).split()) <= 700
    assert text.count("![") == 3


def test_the_readme_starts_with_a_clone_and_two_commands() -> None:
    clone, start, *_ = blocks(text_of(README))
    assert clone.commands.startswith("git clone ")
    assert [line.split(" #")[0].strip() for line in start.commands.splitlines()] == ["./scripts/up --demo", "./scripts/test"]


def test_an_output_is_compared_line_by_line() -> None:
    shown = pattern_of("…\nA  B\n 1  x at 127.0.0.1:80\nin …/shop\n")
    assert shown.fullmatch("before\nA\tB\n1\tx at 127.0.0.1:80\nin /tmp/shop\n")
    assert not shown.fullmatch("before\nA\tB\n2\tx at 127.0.0.1:80\nin /tmp/shop\n")
    assert not shown.fullmatch("A\tB\n1\tx at 127.0.0.1:80\nin /tmp/shop\nmore\n")


def test_a_json_document_is_compared_by_its_members() -> None:
    block = Block("curl …", '{"id": "…", "rows": [{"row": 1}]}', "json")
    assert block.problem_of('{"other": 1}{"rows":[{"row":1}],\n"id":"4711"}\n') is None
    assert block.problem_of('{"rows":[{"row":2}],"id":"4711"}')
    assert block.problem_of('{"rows":[{"row":1}],"id":"4711","more":1}')
    assert block.problem_of("")


def test_every_page_with_commands_is_typed_and_few_blocks_are_not() -> None:
    """The reasons are a network, root, a program or data that a test does not have, or another test."""
    folders = [ROOT / "docs" / "tutorials", ROOT / "docs" / "guides"]
    pages = [README, TUTORIAL, *(str(page.relative_to(ROOT)) for folder in folders for page in sorted(folder.glob("*.md")))]
    shown = {page: blocks(text_of(page)) for page in pages}
    assert {page for page in pages if shown[page]} == {*PAGES, TUTORIAL}
    assert all(text_of(page).find(command) >= 0 for page, command in PAGES.items())
    reasons = [block.reason for page in pages for block in shown[page] if block.reason is not None]
    assert len(reasons) == 8
    assert all(reasons)
    assert sum(map(len, shown.values())) >= 45


@asynccontextmanager
async def reading(tmp_path: Path) -> AsyncIterator[Reader]:
    """A reader with a checkout that is set up."""
    (tmp_path / "home").mkdir()
    await set_up_checkout(tmp_path / "gctd")
    with own_loopback() as network:
        yield Reader(tmp_path / "home", tmp_path / "gctd", network)


@pytest.mark.real
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_each_command_prints_what_is_shown(tmp_path: Path) -> None:
    """A block of the README or a tutorial without a shown output prints no line."""
    start = blocks(text_of(README))[1]
    assert start.output is not None
    async with reading(tmp_path) as reader:
        command = reader.terminal(f"exec {start.commands.splitlines()[0]}")
        with supervised(command, tmp_path / "console.txt", {"PATH": "/usr/bin:/bin"}, reader.directory) as running:
            await wait_until(lambda: "Ctrl-C stops" in running.said or running.process.poll() is not None, 600)
            assert pattern_of(start.output).fullmatch(running.said), running.said
            problems = []
            for page in PAGES:
                shown = [
                    block for block in blocks(text_of(page)) if block.reason is None and block is not start and block != start
                ]
                if page == README or "tutorials" in page:
                    shown = [attrs.evolve(block, output=block.output or "") for block in shown]
                problems += [f"{page}: {problem}" for problem in await asyncio.to_thread(reader.type, shown, 600)]
            assert problems == []
            assert await running.end(signal.SIGINT) == 130


@pytest.mark.real
@pytest.mark.long
async def test_a_command_that_needs_a_variable_of_the_test_or_another_host_fails(tmp_path: Path) -> None:
    with own_loopback() as network:
        reader = Reader(tmp_path, tmp_path, network)
        assert reader.type([Block('echo "$GCTD_URL"\n', "\n"), Block("pwd\n", f"{tmp_path}\n")], 20) == []
        [problem] = reader.type([Block("true\n"), Block("curl -sS http://192.0.2.1/\n")], 20)
        assert problem.startswith("exit code 7: curl -sS http://192.0.2.1/\n")
        server = Block("echo ready; sleep 1000\n", "ready\n", use="server")
        assert reader.type([server, Block("echo done\n", "done\n")], 20) == []
        [problem] = reader.type([attrs.evolve(server, commands="echo no; exit 3\n")], 20)
        assert "no\n" in problem
        assert reader.type([Block("while sleep 0.1; do echo id; done\n", "id\n…\n", use="stream")], 20) == []
