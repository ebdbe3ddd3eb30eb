"""Submodules of a repository: their paths and their addresses. Each address has to obey the rules for repositories."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.remote.refs import parse_subdir
from gctd.domain.remote.urls import RepoUrl
from gctd.scan.errors import GitError

ParseUrl = Callable[[str], RepoUrl]


@attrs.frozen
class Submodule:
    """A submodule: its directory, its repository, the commit that is wanted."""

    path: str
    url: RepoUrl
    commit: str


def read_submodules(
    config: Iterable[tuple[str, str]], commits: Mapping[str, str], parent: RepoUrl, parse: ParseUrl
) -> list[Submodule]:
    """Return the submodules with an address in .gitmodules (as pairs of key and value) and a path in the tree (path to commit).

    Raises GitError if an address or a path is refused.
    """
    settings: dict[str, dict[str, str]] = {}
    for key, value in config:
        section, _, name = key.rpartition(".")
        if section.startswith("submodule."):
            settings.setdefault(section.removeprefix("submodule."), {})[name] = value
    found: list[Submodule] = []
    for values in settings.values():
        path, address = values.get("path", ""), values.get("url", "")
        if path not in commits or not address:
            continue
        try:
            directory = parse_subdir(path, field=f"submodule {path!r}")
            found.append(Submodule(directory, parse(_absolute(address, parent)), commits[path]))
        except BadInput as error:
            raise GitError(f"the submodule {path} is refused: {error.reason}", permanent=True) from error
    return found


def _absolute(address: str, parent: RepoUrl) -> str:
    """A relative address (`../other.git`) seen from its parent."""
    if not address.startswith(("./", "../")):
        return address
    base = parent.canonical.removesuffix(parent.path.removesuffix(".git"))
    path = posixpath.normpath(posixpath.join(parent.path, address))
    return f"{base}{path}"
