"""The public surface: documented, in the reference as it is, used by examples and pages alone, and changed only with a note."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import public_api
import pytest
from house import FACES
from public_api import FOLDER, LIST, PACKAGES, Member, surface

from eventlog.facade import facade
from tests.support import ROOT

NEWS = "CHANGELOG.md"


@pytest.mark.parametrize("face", FACES)
def test_a_package_gives_each_name_that_it_says_it_has(face: str) -> None:
    module = import_module(face)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is getattr(import_module(_places(face)[name]), name), "type checkers read it from there"
        assert not (ROOT / f"{face}.{name}".replace(".", "/")).with_suffix(".py").exists(), "a module hides it"


def _places(face: str) -> dict[str, str]:
    """The modules of the names of a face, as type checkers see them."""
    tree = ast.parse((ROOT / face.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return {alias.name: str(node.module) for node in nodes for alias in node.names}


@pytest.mark.parametrize("face", FACES)
def test_type_checkers_do_not_see_the_lookup_that_gives_any_name(face: str) -> None:
    tree = ast.parse((ROOT / face.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    assert "__getattr__" not in {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}


def test_a_package_has_few_faces_besides_its_own() -> None:
    assert [face for face in FACES if "." not in face] == list(PACKAGES)
    assert len(FACES) <= len(PACKAGES) + 8


def test_a_name_that_a_package_does_not_have_is_none_of_its_attributes() -> None:
    assert facade("tests", {"tests.support": "ROOT"})("ROOT") == ROOT
    with pytest.raises(AttributeError, match="'tests' has no attribute 'ROUTE'"):
        facade("tests", {"tests.support": "ROOT"})("ROUTE")


def test_everything_public_has_a_docstring() -> None:
    assert [member.name for member in surface() if not member.text] == []
    assert Member("nothing", lambda: None).text == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_is_that_of_the_code(package: str) -> None:
    written = (FOLDER / f"{package}.md").read_text(encoding="utf-8")
    assert written == public_api.reference(package), "run: python scripts/public_api.py"


@pytest.mark.parametrize("name", public_api.PAGES)
def test_a_page_of_the_reference_is_that_of_the_code(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == public_api.PAGES[name].text(), "run: python scripts/public_api.py"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("events-and-tables.md", [f"\n| `{name}` | " for name in ("RepoRegistered", "TokenIssued", "tasks", "products")]),
        (
            "commands.md",
            ["\n### `gctd up`\n", "\n### `pantry product add`\n", "| `GCTD_NATS_URL` |", "| `--top INTEGER RANGE` |"],
        ),
        ("routes.md", ["\n### `GET /api/tasks`\n", "\n### `POST /api/v1/products`\n", "\nScope: `admin`. ", "| `min_seq` |"]),
    ],
)
def test_the_pages_of_the_reference_have_their_subjects(name: str, parts: list[str]) -> None:
    page = public_api.PAGES[name].text()
    assert [part for part in parts if part not in page] == []


def test_a_change_of_the_public_surface_is_noted_for_users() -> None:
    """The list is from the release before. Names that came, went or take other parameters since then are in the CHANGELOG."""
    newest = (ROOT / NEWS).read_text(encoding="utf-8").partition("\n## [")[2].partition("\n## [")[0]
    assert _not_noted(LIST.read_text(encoding="utf-8"), public_api.listed(), newest) == []


@pytest.mark.parametrize(
    ("now", "note", "found"),
    [
        ("a.B(x)\na.c\n", "", []),
        ("a.B(x, y)\na.c\n", "", ["a.B"]),
        ("a.B(x, y)\na.c\n", "`B` takes y", []),
        ("a.B(x)\n", "`cat`", ["a.c"]),
        ("a.B(x)\na.c\na.B.d\n", "`B.d` is new", []),
        ("a.B(x)\na.c\na.B.d\n", "`B` is new", ["a.B.d"]),
    ],
)
def test_a_change_is_found(now: str, note: str, found: list[str]) -> None:
    assert _not_noted("a.B(x)\na.c\n", now, note) == found


def _not_noted(before: str, now: str, note: str) -> list[str]:
    changed = set(before.splitlines()) ^ set(now.splitlines())
    names = {line.partition("(")[0] for line in changed}
    return sorted(name for name in names if not re.search(rf"`[\w.]*\b{re.escape(name.partition('.')[2])}\b[^`\n.]*`", note))


def _imports(source: str) -> Iterator[tuple[str, str]]:
    """The names that a text of Python imports from our packages, with the modules that it names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] in PACKAGES)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PACKAGES:
            yield from ((node.module, alias.name) for alias in node.names)


def _is_public(module: str, name: str) -> bool:
    return module in FACES and name in import_module(module).__all__


def _sources() -> Iterator[tuple[Path, str]]:
    for file in sorted((ROOT / "examples").rglob("*.py")):
        yield file, file.read_text(encoding="utf-8")
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in re.findall(r"^```python.*?\n(.*?)^```$", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            yield file, block.replace("…", "...")


def test_examples_and_pages_use_public_names_only() -> None:
    used = [(file.name, *found) for file, source in _sources() for found in _imports(source)]
    assert len(used) >= 30
    assert [f"{file}: {module}.{name}" for file, module, name in used if not _is_public(module, name)] == []


def test_a_private_name_is_found() -> None:
    assert [_is_public(*found) for found in _imports("import httpkit.edge\nfrom httpkit import Edge, edge")] == [
        False,
        True,
        False,
    ]
