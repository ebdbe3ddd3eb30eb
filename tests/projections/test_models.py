"""Read models are found by entry points or by their place; the package itself names no service."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gctd.readmodel import MODEL as TRACKER
from pantry.readmodel import MODEL as PANTRY
from projections import models
from projections.cli import PROGRAM
from projections.errors import ModelUnknown
from tests.support import ROOT
from tests.support.readside import ledger

SERVICE = re.compile(r"\b(gctd|pantry|graphql|tracker)", re.IGNORECASE)
LEDGER = "tests.support.readside.ledger:MODEL"


def test_the_installed_models_are_found_by_name() -> None:
    assert models.names() == ("pantry", "tracker")
    assert models.load("tracker") is TRACKER
    assert models.load("pantry") is PANTRY
    assert models.default_name() == "tracker"


def test_any_other_model_is_loaded_by_its_place() -> None:
    assert models.load(LEDGER) is ledger.MODEL


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bank", "no read model 'bank' is installed (installed: pantry, tracker)"),
        ("nowhere:MODEL", "No module named 'nowhere'"),
        ("tests.support.readside.ledger:NONE", "has no attribute 'NONE'"),
        (":MODEL", "cannot be loaded"),
        ("tests.support.readside.ledger:REGISTRY", "is a Registry, not a ReadModel"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_refused_with_the_reason(name: str, text: str) -> None:
    with pytest.raises(ModelUnknown, match=re.escape(text)):
        models.load(name)


def test_a_name_that_two_distributions_use_is_refused() -> None:
    found = [EntryPoint("bank", place, models.GROUP) for place in ("a:MODEL", "b:MODEL")]
    with pytest.raises(ModelUnknown, match="a:MODEL and b:MODEL"):
        models.unique(found)
    assert models.unique([found[0], found[0]]) == {"bank": "a:MODEL"}


@pytest.mark.parametrize("arguments", [["status", "--model", "bank"], ["rebuild", "bank"], ["parked", "--model", "bank:MODEL"]])
def test_commands_refuse_an_unknown_model_as_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert PROGRAM.run([*arguments, "--database", "sqlite:none.db"]) == 2
    assert "bank" in capsys.readouterr().err


def test_the_package_names_no_service() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text!r}"
        for file in sorted((ROOT / "projections").rglob("*.py"))
        for line, text in _texts(file)
        if SERVICE.search(text) and (file.name, text) != ("root.py", "gctd")  # the distribution
    ]
    assert found == []


def _texts(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
