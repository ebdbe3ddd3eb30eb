"""The schemas of the documents of `gctd ... --json` follow from the code, cover every command, and keep their fields."""

from __future__ import annotations

import json

import json_schemas

from gctd.cli.root import PROGRAM
from tests.support.programs.commands import commands


def test_the_file_is_up_to_date() -> None:
    assert json_schemas.FILE.read_text(encoding="utf-8") == json_schemas.text(), "run: python scripts/json_schemas.py"


def test_every_command_with_json_has_a_schema() -> None:
    offering = {
        " ".join(path) for path, command in commands(PROGRAM.group) if any("--json" in option.opts for option in command.params)
    }
    assert offering == json_schemas.schemas()["documents"].keys() | json_schemas.NO_DOCUMENT


def test_a_field_that_has_gone_is_named() -> None:
    before = json.loads(json_schemas.text())
    after = json.loads(json_schemas.text())
    del after["documents"]["task log"]["properties"]["log"]
    after["documents"]["task log"]["properties"]["more"] = {}
    assert list(json_schemas.lost(before, after)) == ["/documents/task log/properties/log"]
    assert list(json_schemas.lost(before, before)) == []
