"""Finding the Go projects of a checkout: every go.mod, and which workspace it belongs to.

Symbolic links are never followed. What Go itself does not look into (`vendor`, `testdata`, names that begin with `.` or `_`) is
not looked into, and neither are `node_modules` and submodules, unless these are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import attrs

from gctd.domain.project import Project
from gctd.scan.errors import DiscoveryError, LimitExceeded
from gctd.scan.gomod import GoMod, GoWork, SyntaxProblem, parse_go_mod, parse_go_work

SKIPPED = frozenset({"vendor", "testdata", "node_modules"})


@attrs.frozen(kw_only=True)
class Bounds:
    """How much of a checkout is looked at; more is refused."""

    modules: int = 1000
    directories: int = 200_000
    file_bytes: int = 4 << 20


@attrs.define
class _Found:
    """What a walk of the tree found, by directory (repository-relative, `.` for the root)."""

    modules: dict[str, Path] = attrs.field(factory=dict)
    workspaces: dict[str, Path] = attrs.field(factory=dict)
    go_files: dict[str, bool] = attrs.field(factory=dict)
    """Directories with Go files; true where a file with tests is among them."""


def discover(root: Path, *, submodules: bool = False, bounds: Bounds = Bounds()) -> tuple[Project, ...]:
    """The projects of a checkout, by name, the root first.

    Raises DiscoveryError where there is none or where a workspace uses a directory outside the checkout, and LimitExceeded.
    """
    skipped = frozenset() if submodules else _submodules(root)
    found = _walk(root, skipped, bounds)
    if not found.modules:
        raise DiscoveryError("no go.mod found")
    if len(found.modules) > bounds.modules:
        raise LimitExceeded(f"{len(found.modules)} modules; at most {bounds.modules} are taken on")
    members = _members(root, found.workspaces, bounds)
    owners = {directory: _owner(directory, found.modules) for directory in found.go_files}
    projects = [_project(root, name, found, members, owners, bounds) for name in found.modules]
    return tuple(sorted(projects, key=lambda project: (project.name != ".", project.name)))


def nested_modules(name: str, names: Mapping[str, object] | tuple[str, ...]) -> tuple[str, ...]:
    """The modules inside a project's directory, relative to it: they are projects of their own."""
    prefix = "" if name == "." else f"{name}/"
    return tuple(sorted(other[len(prefix) :] for other in names if other not in {name, "."} and other.startswith(prefix)))


def _walk(root: Path, skipped: frozenset[str], bounds: Bounds) -> _Found:
    found = _Found()
    pending, seen = ["."], 0
    while pending:
        directory = pending.pop()
        seen += 1
        if seen > bounds.directories:
            raise LimitExceeded(f"more than {bounds.directories} directories")
        with os.scandir(root / directory) as entries:
            for entry in entries:
                name = entry.name if directory == "." else f"{directory}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith((".", "_")) and entry.name not in SKIPPED and name not in skipped:
                        pending.append(name)
                elif entry.name == "go.mod":
                    found.modules[directory] = Path(entry.path)
                elif entry.name == "go.work":
                    found.workspaces[directory] = Path(entry.path)
                elif _is_go_file(entry):
                    tests = entry.name.endswith("_test.go")
                    found.go_files[directory] = found.go_files.get(directory, False) or tests
    return found


def _is_go_file(entry: os.DirEntry[str]) -> bool:
    """Whether Go would compile it: a regular file, not hidden by its name."""
    return entry.name.endswith(".go") and not entry.name.startswith((".", "_")) and entry.is_file(follow_symlinks=False)


def _project(
    root: Path,
    name: str,
    found: _Found,
    members: Mapping[str, frozenset[str]],
    owners: Mapping[str, str | None],
    bounds: Bounds,
) -> Project:
    directories = [directory for directory, owner in owners.items() if owner == name]
    try:
        module = parse_go_mod(_read(found.modules[name], bounds))
    except SyntaxProblem as error:
        return Project(name=name, module_path="", problem=f"go.mod cannot be read: {error}")
    problem = _problem(root, name, module) or (None if directories else "there are no Go packages in it")
    workspace = _nearest(name, found.workspaces)
    return Project(
        name=name,
        module_path=module.module_path,
        go_version=module.go_version,
        toolchain=module.toolchain,
        in_workspace=workspace is not None and name in members[workspace],
        packages=len(directories),
        has_tests=any(found.go_files[directory] for directory in directories),
        problem=problem,
    )


def _problem(root: Path, name: str, module: GoMod) -> str | None:
    for replacement in module.local_replacements:
        if _inside(root, name, replacement) is None:
            return f"go.mod replaces a module by {replacement}, which is outside the repository"
    return None


def _members(root: Path, workspaces: Mapping[str, Path], bounds: Bounds) -> dict[str, frozenset[str]]:
    members: dict[str, frozenset[str]] = {}
    for directory, path in workspaces.items():
        where = f"{directory}/go.work".removeprefix("./")
        try:
            work: GoWork = parse_go_work(_read(path, bounds))
        except SyntaxProblem as problem:
            raise DiscoveryError(f"{where} cannot be read: {problem}") from problem
        used: set[str] = set()
        for use in work.uses:
            inside = _inside(root, directory, use)
            if inside is None:
                raise DiscoveryError(f"{where} uses {use}, which is outside the repository")
            used.add(inside)
        members[directory] = frozenset(used)
    return members


def _inside(root: Path, directory: str, path: str) -> str | None:
    """The repository-relative form of a path that a file in `directory` names; None where it leaves the repository."""
    if path.startswith(("/", "\\")) or "\0" in path or re.match(r"[A-Za-z]:", path):
        return None
    parts: list[str] = []
    for part in (*PurePosixPath(directory).parts, *PurePosixPath(path).parts):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part != ".":
            parts.append(part)
    # A link on the way leads wherever it likes.
    if any((root / Path(*parts[: length + 1])).is_symlink() for length in range(len(parts))):
        return None
    return "/".join(parts) or "."


def _nearest(name: str, candidates: Mapping[str, object]) -> str | None:
    """The closest directory at or above `name` that is among the candidates."""
    return next((directory for directory in _upwards(name) if directory in candidates), None)


def _owner(directory: str, modules: Mapping[str, object]) -> str | None:
    return _nearest(directory, modules)


def _upwards(name: str) -> Iterator[str]:
    path = PurePosixPath(name)
    yield str(path)
    for parent in path.parents:
        yield str(parent)


def _read(path: Path, bounds: Bounds) -> str:
    if path.is_symlink() or not path.is_file():
        raise SyntaxProblem("it is not a regular file")
    if path.stat().st_size > bounds.file_bytes:
        raise SyntaxProblem(f"it is larger than {bounds.file_bytes} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SyntaxProblem("it is not UTF-8 text") from error


def _submodules(root: Path) -> frozenset[str]:
    """The directories of submodules, as .gitmodules names them."""
    path = root / ".gitmodules"
    if path.is_symlink() or not path.is_file():
        return frozenset()
    text = path.read_text(encoding="utf-8", errors="replace")
    return frozenset(match.strip().strip('"').rstrip("/") for match in re.findall(r"(?m)^\s*path\s*=\s*(.+?)\s*$", text))
