"""The blocks of docs/tutorial.md, run in their order: they are the bank of `examples/`, and print what the page shows."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.support import ROOT
from tests.support.programs.checkout import set_up_checkout
from tests.support.programs.command_blocks import blocks as command_blocks
from tests.support.programs.loopback import own_loopback
from tests.support.programs.reader import Reader

PAGE = ROOT / "docs" / "tutorial.md"
EXAMPLE = ROOT / "examples" / "bank"
FILES = {"html": "index.html", "js": "bank.js"}
"""The files of the bank's page, by the language of their blocks."""


@attrs.frozen
class Block:
    """A block of the page: its language, the rest of its first line, its text, its line."""

    language: str
    use: str
    text: str
    line: int

    @property
    def name(self) -> str:
        return f"line {self.line}: {self.language} {self.use}".rstrip()


def blocks() -> Iterator[Block]:
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w+) ?(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        language, use, inside = found.groups()
        yield Block(language, use, inside, text.count("\n", 0, found.start()) + 2)


BLOCKS = tuple(blocks())
CODE = tuple(block for block in BLOCKS if block.language == "python" and not block.use)


def code(until: int | None = None) -> str:
    """The Python of the page, up to a line."""
    return "\n\n".join(block.text for block in CODE if until is None or block.line < until)


def statements(source: str) -> tuple[set[str], list[str]]:
    """The imports, and the other statements in order."""
    imports: set[str] = set()
    others = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            others.append(ast.unparse(node))
    return imports, others


def test_the_page_builds_the_example() -> None:
    assert statements(code()) == statements((EXAMPLE / "service.py").read_text(encoding="utf-8"))
    files = {FILES[block.language]: block.text for block in BLOCKS if block.language in FILES}
    assert files == {file.name: file.read_text(encoding="utf-8") for file in (EXAMPLE / "page").iterdir()}


@pytest.mark.parametrize("step", CODE, ids=lambda block: block.name)
def test_each_step_can_be_imported(step: Block, tmp_path: Path) -> None:
    """And the tests that follow it on the page pass."""
    names = load(code(step.line + 1), tmp_path)
    following = [block for block in BLOCKS if block.line > step.line and block.language == "python"]
    for block in following[: next((i for i, one in enumerate(following) if not one.use), len(following))]:
        exec(compile(block.text, block.name, "exec"), names)


def load(source: str, directory: Path) -> dict[str, object]:
    """The names of a module with this source and the page next to it."""
    package = write(source, directory)
    names: dict[str, object] = {"__name__": "bank_of_the_tutorial", "__file__": str(package / "service.py")}
    module = type(sys)("bank_of_the_tutorial")
    module.__dict__.update(names)
    sys.modules["bank_of_the_tutorial"] = module  # handlers' annotations are looked up there
    exec(compile(source, str(package / "service.py"), "exec"), module.__dict__)
    return module.__dict__


def write(source: str, directory: Path) -> Path:
    """The package `bank` in a directory."""
    package = directory / "bank"
    (package / "page").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "service.py").write_text(source, encoding="utf-8")
    for block in BLOCKS:
        if block.language in FILES:
            (package / "page" / FILES[block.language]).write_text(block.text, encoding="utf-8")
    return package


@pytest.mark.real
@pytest.mark.long
async def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """Typed by a reader who has a checkout that is set up, a bare PATH, and no variable."""
    home = tmp_path / "home"
    write(code(), home / "tutorial")
    await set_up_checkout(tmp_path / "gctd")
    shown = command_blocks(PAGE.read_text(encoding="utf-8"))
    assert [block.use for block in shown] == ["each terminal", "server", "server", "", ""]
    with own_loopback() as network:
        reader = Reader(home, tmp_path / "gctd", network)
        assert await asyncio.to_thread(reader.type, shown, 120) == []
    broker = shown[1]
    assert "-a 127.0.0.1" in broker.commands, "a broker without a password answers this machine only"
