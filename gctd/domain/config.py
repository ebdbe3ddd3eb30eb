"""Per-project settings of a repository: what is stored, and what holds for one project (specification, section 2)."""

from __future__ import annotations

import attrs

ROOT = ""
"""The key of the settings that hold for the repository itself."""


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

    def merged(self, changes: ProjectConfig) -> ProjectConfig:
        """These settings with what is set in `changes` in its place."""
        given = {name: value for name in _FIELDS if (value := getattr(changes, name)) is not None}
        return attrs.evolve(self, **given)


_FIELDS = tuple(field.name for field in attrs.fields(ProjectConfig))


def effective(configs: dict[str, ProjectConfig], project: str) -> ProjectConfig:
    """What holds for a project: its own settings, and the root's where it has none."""
    root = configs.get(ROOT, ProjectConfig())
    return root if project in (ROOT, ".") else root.merged(configs.get(project, ProjectConfig()))
