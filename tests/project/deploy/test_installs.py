"""No document, template or message installs gctd by its name: until a release, anybody could have that name in the index.

Installed are lock files, which have digests, and directories and files of the reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.layers import PACKAGES

INSTALLER = re.compile(
    r"\b(uvx|uv tool (?:install|run)|uv pip install|uv add|pipx (?:install|run)|pip3? install)((?: +[^\s`|&;]+)*)"
)
WITH_VALUE = {"-r", "--requirement", "-c", "--constraint", "--python", "--target"}
"""Options that a value follows."""


def texts() -> Iterator[Path]:
    """The documents, the templates, and the programs with their messages and help texts."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".pre-commit-hooks.yaml"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from (file for file in sorted((ROOT / "deploy").rglob("*")) if file.is_file())
    for package in PACKAGES:
        yield from sorted(file for file in (ROOT / package).rglob("*") if file.suffix in {".py", ".yaml", ".md", ".sh"})


def names(text: str) -> Sequence[str]:
    """The commands of a text that install by a name of an index."""
    found = []
    for installer, rest in INSTALLER.findall(text):
        words = [word.strip("'\"") for word in rest.split(" #")[0].split()]
        values = {number + 1 for number, word in enumerate(words) if word in WITH_VALUE}
        targets = [word for number, word in enumerate(words) if number not in values and not word.startswith("-")]
        by_name = [word for word in targets if not re.match(r"[./~$]", word)]
        found += [f"{installer} {word}" for word in by_name[:1]]
    return found


def test_nothing_is_installed_by_a_name() -> None:
    found = {str(file.relative_to(ROOT)): names(file.read_text(encoding="utf-8")) for file in texts()}
    assert len(found) >= 500
    assert {file: hits for file, hits in found.items() if hits} == {}


@pytest.mark.parametrize(
    ("text", "by_name"),
    [
        ("uvx gctd up --demo    # the whole system", ["uvx gctd"]),
        ("after `uv tool install gctd`:", ["uv tool install gctd"]),
        ("pip install 'gctd[otel]'", ["pip install gctd[otel]"]),
        ('- pip install --quiet "gctd"', ["pip install gctd"]),
        ("pipx install --python 3.12 gctd", ["pipx install gctd"]),
        ("pip install --require-hashes -r requirements/runtime.lock", []),
        ("python -m pip install --editable '.[otel]'", []),
        ('"$1/bin/python" -m pip install --quiet --no-deps "$root"', []),
        ("`uv tool install` of the wheel", []),
        ("a release will bring a start by `uvx`", []),
    ],
)
def test_a_name_is_told_from_a_file(text: str, by_name: Sequence[str]) -> None:
    assert names(text) == by_name
