"""Finding the Go projects of a checkout: every go.mod, and the workspace that it belongs to.

Symbolic links are never followed. Directories that Go itself skips (`vendor`, `testdata`, names that begin with `.` or `_`) are
skipped, as are `node_modules`, unless a workspace uses a module in them. The directories of submodules are empty if submodules
were not requested.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

import attrs
import structlog

from gctd.domain.errors import BadInput
from gctd.domain.remote.refs import parse_subdir
from gctd.domain.repo.project import Project
from gctd.engines.golang.modfile import NoDirectives, SyntaxProblem, parse_go_mod, parse_go_work
from gctd.scan.errors import DiscoveryError, LimitExceeded

SKIPPED = frozenset({"vendor", "testdata", "node_modules"})

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class Bounds:
    """Bounds of the search in a checkout. A larger checkout is refused."""

    modules: int = 1000
    directories: int = 200_000
    file_bytes: int = 4 << 20


@attrs.frozen
class _Workspace:
    """A go.work: the directories that it uses, and its replacement of a module by a directory outside the checkout, if any."""

    members: frozenset[str] = frozenset()
    outside: str | None = None


def discover(root: Path, *, refused_links: Collection[str] = (), bounds: Bounds = Bounds()) -> tuple[Project, ...]:
    """Return the projects of a checkout, by name, the root first.

    `refused_links` are paths of symbolic links that point out of the checkout (see `Checkout`). `Project.problem` is set if a
    project cannot be analysed. An empty go.mod keeps its directory out of the module around it, as in Go, and defines no project.
    Raises DiscoveryError if no project exists, or if a workspace uses a directory outside the checkout. Raises LimitExceeded.
    """
    return _Discovery(root, frozenset(refused_links), bounds).projects()


def nested_modules(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules inside a project's directory, relative to it. Each of them is a separate project."""
    prefix = "" if name == "." else f"{name}/"
    return tuple(sorted(other[len(prefix) :] for other in names if other not in {name, "."} and other.startswith(prefix)))


@attrs.define
class _Discovery:
    """A walk of the tree, with its findings by directory (repository-relative, `.` for the root)."""

    _root: Path
    _refused_links: frozenset[str]
    _bounds: Bounds
    _modules: set[str] = attrs.field(factory=set)
    _workspaces: set[str] = attrs.field(factory=set)
    _go_files: dict[str, bool] = attrs.field(factory=dict)
    """Directories with Go files; true if one of the files has tests."""
    _seen: int = 0

    def projects(self) -> tuple[Project, ...]:
        self._walk(".")
        workspaces = dict[str, _Workspace]()
        while unread := self._workspaces - workspaces.keys():
            for directory in unread:
                workspaces[directory] = self._workspace(directory)
                for member in workspaces[directory].members - self._modules:
                    if os.path.lexists(self._root / _join(member, "go.mod")):  # outside of the walk
                        self._walk(member)
        if len(self._modules) > self._bounds.modules:
            raise LimitExceeded(f"the repository has {len(self._modules)} modules; at most {self._bounds.modules} are taken on")
        packages: dict[str | None, list[str]] = {}
        for directory in self._go_files:
            packages.setdefault(_nearest(directory, self._modules), []).append(directory)
        projects = []
        for name in self._modules:
            project = self._project(name, packages.get(name, []), workspaces)
            if project is not None:
                projects.append(project)
        if not projects:
            raise DiscoveryError("no go.mod found")
        return tuple(sorted(projects, key=lambda project: (project.name != ".", project.name)))

    def _walk(self, start: str) -> None:
        pending = [start]
        while pending:
            directory = pending.pop()
            self._seen += 1
            if self._seen > self._bounds.directories:
                raise LimitExceeded(f"the repository has more than {self._bounds.directories} directories")
            with os.scandir(self._root / directory) as entries:
                for entry in entries:
                    name = _join(directory, entry.name)
                    if not entry.is_dir(follow_symlinks=False):
                        self._take(directory, entry)
                    elif entry.name not in SKIPPED and not entry.name.startswith((".", "_")):
                        pending.append(name)

    def _take(self, directory: str, entry: os.DirEntry[str]) -> None:
        if entry.name == "go.mod" and _addressable(directory):
            self._modules.add(directory)
        elif entry.name == "go.work":
            self._workspaces.add(directory)
        elif entry.name.endswith(".go") and not entry.name.startswith((".", "_")) and entry.is_file():
            tests = entry.name.endswith("_test.go")
            self._go_files[directory] = self._go_files.get(directory, False) or tests

    def _project(self, name: str, packages: list[str], workspaces: Mapping[str, _Workspace]) -> Project | None:
        try:
            module = parse_go_mod(self._read(_join(name, "go.mod")))
        except NoDirectives:
            return None
        except SyntaxProblem as problem:
            return Project(name=name, module_path="", problem=f"go.mod cannot be used: {problem}")
        outside = self._outside(name, module.local_replacements)
        above = _nearest(name, workspaces)
        workspace = workspaces[above] if above is not None else _Workspace()
        in_workspace = name in workspace.members
        problem_found = None
        if outside is not None:
            problem_found = f"go.mod replaces a module by {outside}, which is outside the repository"
        elif in_workspace and workspace.outside is not None:
            problem_found = f"go.work replaces a module by {workspace.outside}, which is outside the repository"
        elif not packages:
            problem_found = "there are no Go packages in it"
        return Project(
            name=name,
            module_path=module.module_path,
            go_version=module.go_version,
            toolchain=module.toolchain,
            in_workspace=in_workspace,
            packages=len(packages),
            has_tests=any(self._go_files[directory] for directory in packages),
            problem=problem_found,
        )

    def _workspace(self, directory: str) -> _Workspace:
        """Read a workspace. An unreadable one has no members, so its modules run without a workspace."""
        where = _join(directory, "go.work")
        if where in self._refused_links:
            raise DiscoveryError(f"{where} is a symbolic link that leads out of the repository")
        try:
            work = parse_go_work(self._read(where))
        except SyntaxProblem as problem:
            _log.warning("workspace left aside", path=where, reason=str(problem))
            return _Workspace()
        used = {use: self._inside(directory, use) for use in work.uses}
        for use, inside in used.items():
            if inside is None:
                raise DiscoveryError(f"{where} uses {use}, which is outside the repository or reached by a symbolic link")
        members = frozenset(inside for inside in used.values() if inside is not None)
        return _Workspace(members, self._outside(directory, work.local_replacements))

    def _outside(self, directory: str, replacements: tuple[str, ...]) -> str | None:
        """The first of the directories that a file in `directory` replaces modules by that is not in the repository."""
        return next((path for path in replacements if self._inside(directory, path) is None), None)

    def _inside(self, directory: str, path: str) -> str | None:
        """Return the repository-relative form of a path in a file of `directory`; None if the path leaves the repository."""
        if path.startswith("/") or re.search(r"[\0\\]|^[A-Za-z]:", path):
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
        for length in range(1, len(parts) + 1):
            step = "/".join(parts[:length])
            if step in self._refused_links or (self._root / step).is_symlink():
                return None
        return "/".join(parts) or "."

    def _read(self, name: str) -> str:
        path = self._root / name
        if name in self._refused_links:
            raise SyntaxProblem("it is a symbolic link that leads out of the repository")
        if path.is_symlink() or not path.is_file():
            raise SyntaxProblem("it is not a regular file")
        if path.stat().st_size > self._bounds.file_bytes:
            raise SyntaxProblem(f"it is larger than {self._bounds.file_bytes} bytes")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SyntaxProblem("it is not UTF-8 text") from error


def _join(directory: str, name: str) -> str:
    return name if directory == "." else f"{directory}/{name}"


def _addressable(directory: str) -> bool:
    """Whether a project can have this name; one with control characters, say, cannot."""
    try:
        return parse_subdir(directory) == directory
    except BadInput:
        _log.warning("module left aside: its directory's name cannot be a project's", directory=ascii(directory))
        return False


def _nearest(name: str, candidates: Collection[str]) -> str | None:
    """The closest directory at or above `name` that is among the candidates."""
    path = PurePosixPath(name)
    return next((directory for directory in map(str, (path, *path.parents)) if directory in candidates), None)
