"""One module, read: its files parsed, and the coverage of each declaration."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gctd.engines import coverage
from gctd.engines.coverage import Coverage
from gctd.engines.engine import EngineFailed, EngineInput
from gctd.engines.gocrap.exclusion import Exclusion
from gctd.engines.golang.complexity import Declaration, SourceFile
from gctd.engines.golang.parsing import Parser, ParseResult
from gctd.engines.golang.profile import Block, CoverProfile, ProfileTooLarge, read_profile
from gctd.engines.golang.uploaded import check_uploaded
from gctd.engines.selection import Warnings

STANDARD_LIBRARY = "std"


class ModuleSources:
    """The parsed files of a module. Unreadable and unparsable files are left out with a warning."""

    def __init__(self, given: EngineInput, warnings: Warnings, exclusion: Exclusion, *, follow_links: bool) -> None:
        self._root = given.module_dir
        self._exclusion = exclusion
        self._repository = given.repository.resolve()
        self._processes = given.processes
        self._warnings = warnings
        self._parsed: dict[str, SourceFile | None] = {}
        self._others: dict[str, SourceFile | None] = {}
        if not self._root.resolve().is_relative_to(self._repository):
            raise EngineFailed("the module's directory is not in the repository")
        self._parser = Parser.of(given, follow_links=follow_links)
        self.directory = os.path.abspath(self._root)  # noqa: PTH100 (Path.resolve would follow links)
        """The module's directory, absolute."""
        self._prefix = posixpath.join(self.directory, "")

    def absolute(self, path: str) -> str:
        """The absolute path of a file that is named relative to the module."""
        return posixpath.join(self.directory, path)

    @contextmanager
    def parsing(self, paths: Sequence[str]) -> Iterator[Callable[[], list[tuple[str, SourceFile]]]]:
        """Begin to parse. The provided call returns the parsed files (relative to the module), in the given order.

        The caller can do other work in between. Raises EngineLost.
        """
        with self._parser.parsing(paths, self._processes) as parsed:
            yield lambda: list(self._taken(paths, parsed()))

    def _taken(self, paths: Sequence[str], found: Sequence[ParseResult]) -> Iterator[tuple[str, SourceFile]]:
        for path, parsed in zip(paths, found, strict=True):
            self._parsed[path] = parsed.file
            if parsed.file is None:
                self._warnings.add(parsed.kind, path, parsed.reason)
            else:
                yield path, parsed.file

    def declarations_at(self, file: str) -> Sequence[Declaration] | None:
        """Return the declarations of a file by its absolute path. The file may be outside the module.

        None, without a warning, if the file cannot be read, is excluded or lies outside the repository.
        """
        if self._exclusion.file(file):
            return None
        inside = file.startswith(self._prefix)
        path = file[len(self._prefix) :] if inside else posixpath.relpath(file, self.directory)
        if path in self._parsed:
            parsed = self._parsed[path]
        else:
            if path not in self._others:
                real = self._inside(Path(file))
                self._others[path] = None if real is None else self._parser.parse(path, real).file
            parsed = self._others[path]
        return None if parsed is None else parsed.functions

    def _inside(self, file: Path) -> Path | None:
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return real if real.is_relative_to(self._repository) else None


def load_profile(given: EngineInput, warnings: Warnings) -> CoverProfile | None:
    """Return the module's cover profile, None if it has none. Raises EngineFailed, also if an uploaded one is of other source."""
    if given.profile is None:
        return None
    limits = given.limits
    try:
        profile = read_profile(given.profile, max_bytes=limits.profile_bytes, max_blocks=limits.profile_blocks)
    except OSError as error:
        raise EngineFailed(f"the cover profile cannot be read: {error.strerror}") from error
    except ProfileTooLarge as error:
        raise EngineFailed(str(error)) from error
    if given.uploaded:
        check_uploaded(given, profile)
    if profile.malformed:
        reason = f"{profile.malformed} lines are no blocks, the first is line {profile.first_malformed}"
        warnings.add("profile", "", reason)
    if not profile.blocks:
        warnings.add("profile", "", "the cover profile has no blocks")
    return profile


def profile_path(module_path: str, path: str) -> str:
    """The name of a module's file in cover profiles; the packages of the standard library have no module path before them."""
    return path if module_path == STANDARD_LIBRARY else f"{module_path}/{path}"


_Candidates = list[tuple[Declaration, str, int]]
"""Declarations that may have a name in a profile, each with its file and its place among the declarations of the file."""


class ModuleCoverage:
    """The coverage of each declaration of a module's files.

    `excluded` are files that may be in the profile although they are not analysed.
    A file with `//line` directives is in the profile under the names that they give, in the directory of the package.
    """

    def __init__(
        self,
        files: Mapping[str, SourceFile],
        profile: CoverProfile,
        module_path: str,
        warnings: Warnings,
        *,
        excluded: Collection[str] = (),
    ) -> None:
        self._profile, self._module_path, self._warnings = profile, module_path, warnings
        self._printed: dict[str, list[Coverage | None]] = {}
        known = {profile_path(module_path, path) for path in excluded}
        candidates: dict[str, _Candidates] = {}
        for path, file in files.items():
            if any(declaration.printed is not None for declaration in file.declarations):
                self._printed[path] = [None] * len(file.declarations)
                _gather(path, file.declarations, candidates)
            else:
                known.add(profile_path(module_path, path))
        for path, named in candidates.items():
            name = profile_path(module_path, path)
            if name in profile and name not in known:
                known.add(name)
                self._attribute(path, named, profile.blocks_of(name))
        _warn_of_unknown(profile.paths(), known, warnings)

    def _attribute(self, path: str, candidates: _Candidates, blocks: Sequence[Block]) -> None:
        found, left_out = coverage.attribute_printed([declaration for declaration, _, _ in candidates], blocks)
        if left_out:
            self._warnings.add("profile", path, f"the //line directives do not distinguish {left_out} blocks")
        for (_, source, index), own in zip(candidates, found, strict=True):
            self._printed[source][index] = own

    def of(self, path: str, file: SourceFile) -> Sequence[Coverage | None]:
        """Return the coverage of each declaration of a file, None each if the profile does not have the file."""
        printed = self._printed.get(path)
        if printed is not None:
            return printed
        name = profile_path(self._module_path, path)
        if name not in self._profile:
            return [None] * len(file.declarations)
        return coverage.attribute(file.declarations, self._profile.blocks_of(name))


def _gather(path: str, declarations: Iterable[Declaration], printed: dict[str, _Candidates]) -> None:
    for index, declaration in enumerate(declarations):
        named = declaration.printed and declaration.printed.file
        name = posixpath.join(posixpath.dirname(path), posixpath.basename(named or path))
        printed.setdefault(name, []).append((declaration, path, index))


def _warn_of_unknown(paths: Sequence[str], known: set[str], warnings: Warnings) -> None:
    unknown = [path for path in paths if path not in known]
    if unknown:
        warnings.add("profile", "", f"{len(unknown)} files of the cover profile were not analysed, the first is {unknown[0]}")
