"""The blocks of docs/tutorial.md, run in their order: they are the bank of `examples/`, and print what the page shows."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from eventlog.embedded.die_with_parent import attached
from eventlog.embedded.ports import free_port
from tests.support import ROOT
from tests.support.waiting import wait_until

PAGE = ROOT / "docs" / "tutorial.md"
EXAMPLE = ROOT / "examples" / "bank"
PORT = "8080"
"""The port on the page."""
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


async def test_the_commands_print_what_the_page_shows(tmp_path: Path, nats_url: str) -> None:
    write(code(), tmp_path)
    port = str(free_port())
    programs = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("BANK_", "NATS_"))},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BANK_PORT": port,
        "BANK_NATS_URL": nats_url,
        "BANK_DATABASE_URL": f"sqlite:{tmp_path / 'bank.db'}",
    }
    shell = [block for block in BLOCKS if block.language in {"sh", "text"}]
    broker, start, *rest = shell
    assert (broker.use, broker.text) == ("broker", "nats-server -js\n")
    assert start.use == "service"
    assert [block.language for block in rest] == ["sh", "text"] * (len(rest) // 2)
    async with started(start.text, tmp_path, environment, port):
        for commands, shown in zip(rest[::2], rest[1::2], strict=True):
            lines = commands.text.replace(PORT, port).splitlines()
            printed = [await printed_by(line, tmp_path, environment) for line in lines]
            assert "".join(printed).splitlines() == shown.text.splitlines(), commands.name


@asynccontextmanager
async def started(command: str, directory: Path, environment: Mapping[str, str], port: str) -> AsyncIterator[None]:
    program = await asyncio.create_subprocess_exec(
        *attached(["/bin/sh", "-c", f"exec {command}"]), cwd=directory, env=environment
    )
    try:

        async def is_ready() -> bool:
            assert program.returncode is None
            answer = await printed_by(f"curl -s http://127.0.0.1:{port}/readyz || true", directory, environment)
            return '"status":"ok"' in answer

        await wait_until(is_ready, timeout=60, every=0.1)
        yield
    finally:
        if program.returncode is None:
            program.terminate()
        assert await program.wait() == 0


async def printed_by(command: str, directory: Path, environment: Mapping[str, str]) -> str:
    """The output of a line, with a line break at the end, as a terminal shows it."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, cwd=directory, env=environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, command
    text = out.decode()
    return text if text.endswith("\n") or not text else f"{text}\n"
