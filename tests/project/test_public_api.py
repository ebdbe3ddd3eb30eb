"""The public surface: documented, used by examples and pages alone, and reduced after a release only with a note."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import public_api
import pytest
from house import FACES, SERVICES
from reference.names import PACKAGES, Member, surface

from eventlog.facade import facade
from tests.support import ROOT


@pytest.mark.parametrize("face", FACES)
def test_a_package_gives_each_name_that_it_says_it_has(face: str) -> None:
    module = import_module(face)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module)), "completion reads it there"
    for name in module.__all__:
        assert getattr(module, name) is getattr(import_module(_places(face)[name]), name), "type checkers read it from there"
        assert not (ROOT / f"{face}.{name}".replace(".", "/")).with_suffix(".py").exists(), "a module hides it"


@pytest.mark.parametrize("package", PACKAGES)
def test_pydoc_shows_the_public_names_of_a_package(package: str) -> None:
    module = import_module(package)
    text = pydoc.plain(pydoc.render_doc(module))
    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)] == []


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


def test_a_face_has_the_names_that_services_and_teaching_texts_import_and_errors() -> None:
    files = (file for service in SERVICES for file in (ROOT / service).rglob("*.py"))
    services = (name for file in files for name in _imports(file.read_text(encoding="utf-8")))
    taught = (name for _, source in _sources() for name in _imports(source))
    in_prose = {("eventlog.testing", "MemoryLog")}
    used = {*services, *taught, *in_prose}
    values = ((face, name, getattr(import_module(face), name)) for face in FACES for name in import_module(face).__all__)
    unused = [
        f"{face}.{name}"
        for face, name, value in values
        if (face, name) not in used and not (inspect.isclass(value) and issubclass(value, Exception))
    ]
    assert unused == [], "take it out of the face: its modules are for the core"


def test_a_name_that_a_package_does_not_have_is_none_of_its_attributes() -> None:
    assert facade("tests", {"tests.support": "ROOT"})("ROOT") == ROOT
    with pytest.raises(AttributeError, match="'tests' has no attribute 'ROUTE'"):
        facade("tests", {"tests.support": "ROOT"})("ROUTE")


def test_everything_public_has_a_docstring() -> None:
    assert [member.name for member in surface() if not member.text] == []
    assert Member("nothing", lambda: None).text == ""


def test_what_has_gone_since_the_last_release_is_noted_for_users() -> None:
    assert public_api.since_release() == []


def test_a_release_promises_names_routes_and_members_of_documents() -> None:
    promised = public_api.promised()
    assert len(promised) == len(set(promised)) > 1000
    kinds = {
        "httpkit.Pages(package, directory, *, index=..., paths=..., answers_all=..., wasm=..., built=...)",
        *("gctd GET /api/tasks", "pantry POST /api/v1/products", "graphql-fn GET /function/{name}"),
        *("gctd task log", "gctd task log: attempt", "gctd task show: id", "projections status: head"),
    }
    assert kinds <= set(promised)


@pytest.mark.parametrize(
    ("released", "note", "gone"),
    [
        ("a.B(x)", "", []),
        ("a.B(x, y)", "", ["a.B(x, y)"]),
        ("a.B(x, y)", "`B` takes y", []),
        ("a.c", "`cat`", ["a.c"]),
        ("a.c", "`a.c` goes", []),
        ("a.B.d", "`B` goes", ["a.B.d"]),
        ("a.B.d", "`B.d` goes", []),
        ("gctd task log: end", "`gctd task log: ending`", ["gctd task log: end"]),
        ("gctd task log: end", "`gctd task log: end` goes", []),
        ("gctd GET /api/old", "`gctd GET /api/old` goes", []),
    ],
)
def test_a_released_line_that_has_gone_needs_a_note(released: str, note: str, gone: list[str]) -> None:
    changelog = f"# Changes\n\n## [2]\n\n{note}\n\n## [1]\n\n`a.c`, `B.d`, `B`, `gctd GET /api/old`\n"
    assert public_api.gone([released], ["a.B(x)"], changelog) == gone


def test_members_of_a_schema_are_named_by_their_path() -> None:
    task = {"properties": {"id": {}, "at": {"properties": {"day": {}}}, "before": {"$ref": "#/$defs/Task"}}}
    tasks = {"items": {"anyOf": [{"$ref": "#/$defs/Task"}, {"type": "null"}]}}
    schemas = {"documents": {"task list": {"properties": {"tasks": tasks}}}, "$defs": {"Task": task}}
    assert list(public_api.members_of(schemas)) == [
        *("task list", "task list: tasks", "task list: tasks.id"),
        *("task list: tasks.at", "task list: tasks.at.day", "task list: tasks.before"),
    ]


def _imports(source: str) -> Iterator[tuple[str, str]]:
    """The names that a text of Python imports or reads from our packages, with the modules that it names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names if alias.name not in PACKAGES)
            yield from ((name, "") for name in names if name.partition(".")[0] in PACKAGES)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in PACKAGES:
            yield node.value.id, node.attr
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
    assert [_is_public(*found) for found in _imports("import httpkit\nhttpkit.Edge(httpkit.edge)")] == [True, False]
