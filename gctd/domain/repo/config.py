"""Settings of a repository and its projects: the stored values, and the effective values of one project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, Protocol

import attrs

from gctd.domain.errors import BadInput, BadSettings, NotFound, Refused
from gctd.domain.options import covers_others, parse_crap_args, parse_duration, parse_go_flags, parse_test_args
from gctd.domain.remote.refs import parse_ref, parse_subdir
from gctd.domain.repo.project import Project

ROOT = ""
"""The key of the settings that hold for the repository itself."""


STORE_SOURCE = ("always", "never")
"""Values of `store_source`."""


class Origin(StrEnum):
    """Source of a setting that applies to a project."""

    PROJECT = "project"
    ROOT = "root"
    DEFAULT = "default"


@attrs.frozen(kw_only=True)
class ProjectConfig:
    """Overrides for one project, or for the repository's root. None: not set.

    `timeout` and `git_timeout` are duration texts (`30m`), `test_args` and `go_flags` are flags separated by spaces. `coverpkg`:
    the tests of each package count for all packages of the module, not for their own only. `store_source`: whether the source of
    functions is kept with an analysis, `always` or `never`.
    """

    ref: str | None = None
    test_args: str | None = None
    crap_args: tuple[str, ...] | None = None
    submodules: bool | None = None
    timeout: str | None = None
    git_timeout: str | None = None
    go_flags: str | None = None
    coverpkg: bool | None = None
    store_source: str | None = None

    def merged(self, changes: ProjectConfig, *, without: Collection[str] = ()) -> ProjectConfig:
        """Return these settings without the names in `without`, and with the values that `changes` sets."""
        given = {name: value for name in FIELDS if (value := getattr(changes, name)) is not None}
        return attrs.evolve(self, **(dict.fromkeys(without) | given))


FIELDS = tuple(field.name for field in attrs.fields(ProjectConfig))
"""The names of the settings."""


def _check_store_source(text: str) -> None:
    if text not in STORE_SOURCE:
        raise BadInput("store_source", f"must be {' or '.join(STORE_SOURCE)}")


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "ref": parse_ref,
    "test_args": parse_test_args,
    "crap_args": parse_crap_args,
    "timeout": lambda text: parse_duration(text, field="timeout"),
    "git_timeout": lambda text: parse_duration(text, field="git_timeout"),
    "go_flags": parse_go_flags,
    "store_source": _check_store_source,
}


def checked(config: ProjectConfig) -> ProjectConfig:
    """Return the settings in their stored form: commit ids are in lower case.

    Raises BadSettings with all invalid values.
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
    """Return the settings that apply to a project: its private settings, and the root's for all others."""
    root = configs.get(ROOT, ProjectConfig())
    return root if project in (ROOT, ".") else root.merged(configs.get(project, ProjectConfig()))


def tracked_ref(configs: Mapping[str, ProjectConfig], default_ref: str, project: str) -> str:
    """Return the ref that a project tracks: a setting, or the default branch. Its latest analysis is of this ref."""
    return own_ref(configs, project) or default_ref


def own_ref(configs: Mapping[str, ProjectConfig], project: str) -> str | None:
    """Return the ref that the settings give a project, None for the default branch."""
    ref = effective(configs, project).ref
    return None if ref == "HEAD" else ref


def origins(configs: Mapping[str, ProjectConfig], project: str) -> dict[str, Origin]:
    """Return the origin of each effective setting of a project, by name."""
    layers = [(Origin.ROOT, configs.get(ROOT))]
    if project not in (ROOT, "."):
        layers.insert(0, (Origin.PROJECT, configs.get(project)))
    return {
        name: next((origin for origin, config in layers if getattr(config, name, None) is not None), Origin.DEFAULT)
        for name in FIELDS
    }


def go_test_flags(config: ProjectConfig, engine: str) -> tuple[str, ...]:
    """The flags of `go test` for an analysis with these settings, one argument each.

    `coverpkg` holds for the engine `native` only: `native-compat` gives the numbers of go-crap, which runs the tests without
    it. A `-coverpkg` among `test_args` comes first. Raises BadInput.
    """
    flags = parse_test_args(config.test_args or "")
    if not config.coverpkg or engine != "native" or covers_others(flags):
        return flags
    return (*flags, "-coverpkg=./...")


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
    """Refuse settings, except for the root, for found projects, and for keys that have settings already.

    Raises NotFound. Raises Refused during the first search for projects.
    """
    names = {project.name for project in repo.projects}
    if key == ROOT or key in names or key in repo.configs:
        return
    if repo.profiled_at is None and repo.status == "registering":
        raise Refused(f"{repo.url} is still registering: before its projects are known only its root can have settings")
    raise NotFound(f"{repo.url} has no project {key!r}; it has: {', '.join(sorted(names)[:20]) or 'none'}")
