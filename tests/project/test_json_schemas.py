"""The schemas of the documents of `--json` follow from the code, cover every command of every program, and keep their fields."""

from __future__ import annotations

import json

import json_schemas
import pytest

from gctd.cli.root import PROGRAM as GCTD
from graphql_fn.cli.root import PROGRAM as GRAPHQL
from pantry.cli.root import PROGRAM as PANTRY
from projections.cli import PROGRAM as PROJECTIONS
from terminalkit.commands.program import Program
from tests.support.programs.commands import commands
from tests.support.programs.documents import LINES, misfits, validators

each_program = pytest.mark.parametrize("program", [GCTD, GRAPHQL, PANTRY, PROJECTIONS], ids=lambda program: program.name)


@each_program
def test_the_file_is_up_to_date(program: Program) -> None:
    written = json_schemas.file_of(program.name).read_text(encoding="utf-8")
    assert written == json_schemas.text(program.name), "run: python scripts/json_schemas.py"


@each_program
def test_every_command_with_json_has_a_schema(program: Program) -> None:
    offering = {
        " ".join(path) for path, command in commands(program.group) if any("--json" in option.opts for option in command.params)
    }
    described = {name.partition(" --")[0] for name in validators(program.name)}
    without = json_schemas.PROGRAMS[program.name].NO_DOCUMENT
    assert offering == described | without
    assert not described & without


def test_there_is_a_file_for_each_program() -> None:
    assert {file.stem for file in json_schemas.FOLDER.iterdir()} == json_schemas.PROGRAMS.keys()
    assert set().union(*map(validators, json_schemas.PROGRAMS)) >= LINES


def test_a_field_that_has_gone_is_named() -> None:
    before = json.loads(json_schemas.text("gctd"))
    after = json.loads(json_schemas.text("gctd"))
    del after["documents"]["task log"]["properties"]["log"]
    after["documents"]["task log"]["properties"]["more"] = {}
    assert list(json_schemas.lost(before, after)) == ["/documents/task log/properties/log"]
    assert list(json_schemas.lost(before, before)) == []


def test_a_document_that_does_not_fit_is_named() -> None:
    arguments = ("migrate", "version", "--json")
    assert misfits("projections", arguments, '{"version": 3, "dirty": false, "more": 1}\n') == []
    assert misfits("projections", arguments, '{"version": "3", "dirty": false}\n') == [
        "migrate version: $.version: '3' is not of type 'integer'"
    ]
    assert len(misfits("pantry", ("watch", "--count", "2", "--json"), '{"id": "1"}\n{"id": "2"}\n')) == 2
