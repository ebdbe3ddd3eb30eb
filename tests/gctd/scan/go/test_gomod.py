"""go.mod and go.work are read as `go mod edit -json` and `go work edit -json` read them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gctd.engines.golang.modfile import GoMod, NoDirectives, SyntaxProblem, parse_go_mod, parse_go_work

FULL = """// A comment before
module example.com/m/v2 // and after

go 1.22.1

toolchain go1.23.4
require example.com/a v1.0.0
require (
	example.com/b v1.0.0 // indirect
	"example.com/c" v1.0.0
)
exclude example.com/d v1.0.0
retract [v1.0.0, v1.1.0] // oops
replace (
	example.com/a => ../a
	example.com/b v1.0.0 => ./b
	example.com/c => example.com/other v1.2.3
)
replace example.com/e => "../with space"
tool example.com/b/cmd
ignore ./node_modules
godebug default=go1.21
"""

MODS = [
    FULL,
    "module a.b/c",
    'module "a.b/c"',
    "module\ta.b/c",
    "module   a.b/c   \r\ngo 1.21\r\n",
    "module (\n\ta.b/c\n)\n",
    "module a.b/c//x\n",
    'module "a\\x2eb/c"\n',
    'module "a\\u002eb/c"\n',
    'module "a\\056b/c"\n',
    "module a.b/c;\n",
    "module a.b/c\nrequire ( )\n",
    "module a.b/c\nrequire()\n",
    "module a.b/c\nrequire(\n)\n",
]

BROKEN_MODS = [
    "module `a.b/c`\n",
    "module 'a.b/c'\n",
    'module "a.b/c\n',
    'module "a\\qb"\n',
    "module\n",
    "module a.b/c d\n",
    "module a.b/c\nmodule a.b/d\n",
    "module a.b/c\ngo 1.21\ngo 1.22\n",
    "module a.b/c\n/* x */\n",
    "module a.b/c\nrequire (\n",
    "module a.b/c\ngo\n",
]

WORKS = [
    "go 1.21\nuse ./a\n",
    'go 1.21\nuse (\n\t./a // first\n\tb\n\n\t"./with space"\n)\nuse ../c\n',
    "go 1.21\nuse .\nuse ..\nuse /abs\nreplace example.com/x => ./x\n",
    "go 1.21\n",
    "",
]


def edit(kind: str, directory: Path, text: str) -> dict[str, Any] | None:
    """Return go's reading of a file, or None if it refuses the file."""
    path = directory / f"go.{kind}"
    path.write_text(text, newline="")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOENV": "off"}
    command = ["go", kind, "edit", "-json", str(path)]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def local_replacements(document: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry["New"]["Path"] for entry in document.get("Replace") or [] if "Version" not in entry["New"])


@pytest.mark.real
@pytest.mark.parametrize("text", MODS)
def test_a_go_mod_is_read_as_go_reads_it(tmp_path: Path, text: str) -> None:
    expected = edit("mod", tmp_path, text)
    assert expected is not None
    assert parse_go_mod(text) == GoMod(
        module_path=expected["Module"]["Path"],
        go_version=expected.get("Go", ""),
        toolchain=expected.get("Toolchain", ""),
        local_replacements=local_replacements(expected),
        ignored=tuple(one["Path"] for one in expected.get("Ignore") or ()),
    )


@pytest.mark.real
@pytest.mark.parametrize("text", BROKEN_MODS)
def test_a_go_mod_that_go_refuses_is_refused(tmp_path: Path, text: str) -> None:
    assert edit("mod", tmp_path, text) is None
    with pytest.raises(SyntaxProblem):
        parse_go_mod(text)


@pytest.mark.parametrize("text", ["", "\n\n", "// only this\n"])
def test_a_go_mod_without_a_directive_is_told_apart(text: str) -> None:
    with pytest.raises(NoDirectives):
        parse_go_mod(text)


def test_a_directive_of_a_newer_go_is_passed_over() -> None:
    assert parse_go_mod("module a\nnovel thing\nblock (\n\tx y z\n)\n").module_path == "a"


@pytest.mark.real
@pytest.mark.parametrize("text", WORKS)
def test_a_go_work_is_read_as_go_reads_it(tmp_path: Path, text: str) -> None:
    expected = edit("work", tmp_path, text)
    assert expected is not None
    work = parse_go_work(text)
    assert work.uses == tuple(entry["DiskPath"] for entry in expected.get("Use") or [])
    assert work.local_replacements == local_replacements(expected)


@pytest.mark.real
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("ab/.\"\\`'()[], \t//\n=>v1x"), max_size=24))
def test_any_module_line_is_read_as_go_reads_it_or_refused_too(tmp_path: Path, tail: str) -> None:
    """A line that go accepts is accepted with the same result. A line that is refused here is also refused by go."""
    text = f"module {tail}\n"
    expected = edit("mod", tmp_path, text)
    try:
        found = parse_go_mod(text).module_path
    except SyntaxProblem:
        assert expected is None or not expected["Module"]["Path"]
    else:
        assert expected is None or expected["Module"]["Path"] == found
