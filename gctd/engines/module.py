"""One module, read: its files parsed, and the coverage of each declaration."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from gctd.engines import coverage
from gctd.engines.complexity import Declaration, SourceFile, analyse_source
from gctd.engines.coverage import Coverage
from gctd.engines.engine import EngineFailed, EngineInput
from gctd.engines.profile import Profile, ProfileTooLarge, read_profile
from gctd.engines.selection import Warnings, read_source
from gctd.engines.syntax import Unparsable

STANDARD_LIBRARY = "std"


class Sources:
    """Reads and parses the files of a module, each once; what cannot be read or parsed is left out with a warning."""

    def __init__(self, given: EngineInput, warnings: Warnings, *, follow_links: bool) -> None:
        self._given = given
        self._root = given.module_dir
        self._repository = given.repository.resolve()
        self._warnings = warnings
        self._follow_links = follow_links
        self._parsed: dict[str, SourceFile | None] = {}
        self._others: dict[str, SourceFile | None] = {}
        if not self._root.resolve().is_relative_to(self._repository):
            raise EngineFailed("the module's directory is not in the repository")

    @property
    def directory(self) -> str:
        """The module's directory, absolute."""
        return os.path.abspath(self._root)  # noqa: PTH100 (Path.resolve would follow links)

    def parse(self, path: str) -> SourceFile | None:
        """A file by its path relative to the module; None, with a warning at the first call, where it cannot be had."""
        if path not in self._parsed:
            file = self._root / path
            self._parsed[path] = self._parse(path, file.resolve() if self._follow_links else file, self._warnings)
        return self._parsed[path]

    def declarations_at(self, file: str) -> Sequence[Declaration] | None:
        """The declarations of a file by its absolute path, also of one that is not among the module's.

        None, without a warning, where the file cannot be had or lies outside the repository.
        """
        path = posixpath.relpath(file, self.directory)
        if path in self._parsed:
            parsed = self._parsed[path]
        else:
            if path not in self._others:
                real = self._inside(Path(file))
                self._others[path] = None if real is None else self._parse(path, real, Warnings(0))
            parsed = self._others[path]
        return None if parsed is None else parsed.declarations

    def _parse(self, path: str, file: Path, warnings: Warnings) -> SourceFile | None:
        source = read_source(file, path, self._given.limits, warnings)
        if source is None:
            return None
        try:
            return analyse_source(path, source, nesting=self._given.limits.nesting)
        except Unparsable as error:
            warnings.add("syntax", path, str(error))
            return None

    def _inside(self, file: Path) -> Path | None:
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return real if real.is_relative_to(self._repository) else None


def load_profile(given: EngineInput, warnings: Warnings) -> Profile | None:
    """The module's cover profile, None where it has none. Raises EngineFailed."""
    if given.profile is None:
        return None
    limits = given.limits
    try:
        profile = read_profile(given.profile, max_bytes=limits.profile_bytes, max_blocks=limits.profile_blocks)
    except OSError as error:
        raise EngineFailed(f"the cover profile cannot be read: {error.strerror}") from error
    except ProfileTooLarge as error:
        raise EngineFailed(str(error)) from error
    if profile.malformed:
        reason = f"{profile.malformed} lines are no blocks, the first is line {profile.first_malformed}"
        warnings.add("profile", "", reason)
    if not profile.blocks:
        warnings.add("profile", "", "the cover profile has no blocks")
    return profile


def profile_path(module_path: str, path: str) -> str:
    """The name of a module's file in cover profiles; the packages of the standard library have no module path before them."""
    return path if module_path == STANDARD_LIBRARY else f"{module_path}/{path}"


@attrs.frozen
class _Candidates:
    declarations: list[Declaration] = attrs.field(factory=list)
    places: list[tuple[str, int]] = attrs.field(factory=list)


def cover(
    files: Mapping[str, SourceFile], profile: Profile, module_path: str, warnings: Warnings
) -> dict[str, list[Coverage | None]]:
    """The coverage of each declaration of each file, None where the profile does not have its file.

    A file with `//line` directives is in the profile under the names that they give, in the directory of the package.
    """
    result: dict[str, list[Coverage | None]] = {}
    printed: dict[str, _Candidates] = {}
    known = set[str]()
    for path, file in files.items():
        if any(declaration.printed is not None for declaration in file.declarations):
            result[path] = [None] * len(file.declarations)
            _gather(path, file.declarations, printed)
        elif (name := profile_path(module_path, path)) in profile:
            known.add(name)
            result[path] = list(coverage.attribute(file.declarations, profile.blocks_of(name)))
    for path, candidates in printed.items():
        name = profile_path(module_path, path)
        if name not in profile or name in known:
            continue
        known.add(name)
        found, left_out = coverage.attribute_printed(candidates.declarations, profile.blocks_of(name))
        if left_out:
            warnings.add("profile", path, f"{left_out} blocks cannot be told apart by their //line directives")
        for (source, index), own in zip(candidates.places, found, strict=True):
            result[source][index] = own
    _warn_of_unknown(profile.paths(), known, warnings)
    return result


def _gather(path: str, declarations: Iterable[Declaration], printed: dict[str, _Candidates]) -> None:
    for index, declaration in enumerate(declarations):
        named = declaration.printed and declaration.printed.file
        name = posixpath.join(posixpath.dirname(path), posixpath.basename(named or path))
        candidates = printed.setdefault(name, _Candidates())
        candidates.declarations.append(declaration)
        candidates.places.append((path, index))


def _warn_of_unknown(paths: Sequence[str], known: set[str], warnings: Warnings) -> None:
    unknown = [path for path in paths if path not in known]
    if unknown:
        warnings.add("profile", "", f"{len(unknown)} files of the cover profile were not analysed, the first is {unknown[0]}")
