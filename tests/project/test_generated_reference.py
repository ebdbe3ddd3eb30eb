"""The generated reference: it can be made from the code, and has a page or a file for each of its subjects."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from reference.json_documents import PROGRAMS
from reference.pages import pages

from gctd.cli.root import PROGRAM as GCTD
from graphql_fn.cli.root import PROGRAM as GRAPHQL
from pantry.cli.root import PROGRAM as PANTRY
from projections.cli import PROGRAM as PROJECTIONS
from terminalkit.program import Program
from tests.support.programs.commands import commands
from tests.support.programs.documents import LINES, misfits, validators

each_program = pytest.mark.parametrize("program", [GCTD, GRAPHQL, PANTRY, PROJECTIONS], ids=lambda program: program.name)


@pytest.fixture(scope="module")
def generated() -> Mapping[str, str]:
    return pages()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("events-and-tables.md", [f"\n| `{name}` | " for name in ("RepoRegistered", "TokenIssued", "tasks", "products")]),
        (
            "commands.md",
            ["\n### `gctd up`\n", "\n### `pantry product add`\n", "| `GCTD_NATS_URL` |", "| `--top INTEGER RANGE` |"],
        ),
        ("routes.md", ["\n### `GET /api/tasks`\n", "\n### `POST /api/v1/products`\n", "\nScope: `admin`. ", "| `min_seq` |"]),
        ("httpkit.md", ["# `httpkit`\n", "\n## `Route(", "\n## `Pages("]),
    ],
)
def test_the_pages_have_their_subjects(name: str, parts: list[str], generated: Mapping[str, str]) -> None:
    assert [part for part in parts if part not in generated[name]] == []


def test_each_program_has_a_file_of_schemas(generated: Mapping[str, str]) -> None:
    assert set(json.loads(generated["gctd.json"])) >= {"documents", "$defs"}
    assert {name.removesuffix(".json") for name in generated if name.endswith(".json")} == PROGRAMS.keys()
    assert set().union(*map(validators, PROGRAMS)) >= LINES


@each_program
def test_every_command_with_json_has_a_schema(program: Program) -> None:
    offering = {
        " ".join(path) for path, command in commands(program.group) if any("--json" in option.opts for option in command.params)
    }
    described = {name.partition(" --")[0] for name in validators(program.name)}
    without = PROGRAMS[program.name].NO_DOCUMENT
    assert offering == described | without
    assert not described & without


def test_a_document_that_does_not_fit_is_named() -> None:
    arguments = ("migrate", "version", "--json")
    assert misfits("projections", arguments, '{"version": 3, "dirty": false, "more": 1}\n') == []
    assert misfits("projections", arguments, '{"version": "3", "dirty": false}\n') == [
        "migrate version: $.version: '3' is not of type 'integer'"
    ]
    assert len(misfits("pantry", ("watch", "--count", "2", "--json"), '{"id": "1"}\n{"id": "2"}\n')) == 2
