"""Per-project settings of a repository: what is stored, and what holds for one project (specification, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, Protocol

import attrs

from gctd.domain.errors import BadInput, BadSettings, NotFound, Refused
from gctd.domain.options import parse_crap_args, parse_duration, parse_go_flags, parse_test_args
from gctd.domain.project import Project
from gctd.domain.refs import parse_ref, parse_subdir

ROOT = ""
"""The key of the settings that hold for the repository itself."""


class Origin(StrEnum):
    """Where a setting that holds for a project comes from."""

    PROJECT = "project"
    ROOT = "root"
    DEFAULT = "default"


@attrs.frozen(kw_only=True)
class ProjectConfig:
    """Overrides for one project, or for the repository's root. None: not set.

    `timeout` and `git_timeout` are duration texts (`30m`), `test_args` and `go_flags` are flags separated by spaces.
    """

    ref: str | None = None
    test_args: str | None = None
    crap_args: tuple[str, ...] | None = None
    submodules: bool | None = None
    timeout: str | None = None
    git_timeout: str | None = None
    go_flags: str | None = None

    def merged(self, changes: ProjectConfig, *, without: Collection[str] = ()) -> ProjectConfig:
        """These settings less those named in `without`, and with what is set in `changes` in its place."""
        given = {name: value for name in FIELDS if (value := getattr(changes, name)) is not None}
        return attrs.evolve(self, **(dict.fromkeys(without) | given))


FIELDS = tuple(field.name for field in attrs.fields(ProjectConfig))
"""The names of the settings."""

_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "ref": parse_ref,
    "test_args": parse_test_args,
    "crap_args": parse_crap_args,
    "timeout": lambda text: parse_duration(text, field="timeout"),
    "git_timeout": lambda text: parse_duration(text, field="git_timeout"),
    "go_flags": parse_go_flags,
}


def checked(config: ProjectConfig) -> ProjectConfig:
    """The settings as they are stored: as they are given, a commit id in lower case.

    Raises BadSettings with all that cannot be right.
    """
    problems = []
    for name, check in _CHECKS.items():
        value = getattr(config, name)
        if value is not None:
            try:
                check(value)
            except BadInput as problem:
                problems.append(problem)
    if problems:
        raise BadSettings(problems)
    return config if config.ref is None else attrs.evolve(config, ref=parse_ref(config.ref))


def config_key(subdir: str | None) -> str:
    """The key of a project's settings: its path, ROOT for the repository's root. Raises BadInput that names `subdir`."""
    project = parse_subdir(subdir or "", field="subdir")
    return ROOT if project == "." else project


def effective(configs: Mapping[str, ProjectConfig], project: str) -> ProjectConfig:
    """What holds for a project: its own settings, and the root's where it has none."""
    root = configs.get(ROOT, ProjectConfig())
    return root if project in (ROOT, ".") else root.merged(configs.get(project, ProjectConfig()))


def origins(configs: Mapping[str, ProjectConfig], project: str) -> dict[str, Origin]:
    """Where each of the settings that hold for a project comes from, by name."""
    layers = [(Origin.ROOT, configs.get(ROOT))]
    if project not in (ROOT, "."):
        layers.insert(0, (Origin.PROJECT, configs.get(project)))
    return {
        name: next((origin for origin, config in layers if getattr(config, name, None) is not None), Origin.DEFAULT)
        for name in FIELDS
    }


class Configurable(Protocol):
    """A repository, as far as it says for which of its directories there can be settings."""

    @property
    def url(self) -> str: ...
    @property
    def profiled_at(self) -> object: ...
    @property
    def status(self) -> str: ...
    @property
    def projects(self) -> tuple[Project, ...]: ...
    @property
    def configs(self) -> dict[str, ProjectConfig]: ...


def require_configurable(repo: Configurable, key: str) -> None:
    """Refuse settings for anything but the root, the projects that were found, and what has settings already.

    Raises NotFound, and Refused while the projects are looked for the first time.
    """
    names = {project.name for project in repo.projects}
    if key == ROOT or key in names or key in repo.configs:
        return
    if repo.profiled_at is None and repo.status == "registering":
        raise Refused(f"{repo.url} is still registering: before its projects are known only its root can have settings")
    raise NotFound(f"{repo.url} has no project {key!r}; it has: {', '.join(sorted(names)[:20]) or 'none'}")
