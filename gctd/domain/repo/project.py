"""A Go project found in a repository: a directory with a go.mod."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Project:
    """One Go module of a repository.

    `name` is its path in the repository with forward slashes, `.` for the root. `packages` counts the directories with Go
    files that belong to it (nested modules do not). `problem` is the reason if the project cannot be analysed, else None.
    """

    name: str
    module_path: str
    go_version: str = ""
    toolchain: str = ""
    in_workspace: bool = False
    packages: int = 0
    has_tests: bool = False
    problem: str | None = None
