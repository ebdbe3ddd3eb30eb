"""Coverage of a function as go-crap 0.5.1 finds it, faults included.

Columns are ignored, blocks on the same lines are one, functions of one name in a file share their blocks, profile paths are cut
without regard to a `/`, and a file without coverage takes the coverage of a file with the same last three path components.
"""

from __future__ import annotations

import functools
import itertools
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

import msgspec

from gctd.engines.golang.complexity import Declaration
from gctd.engines.golang.profile import Block, CoverProfile

_Place = tuple[str, str]
"""A profile path, and the file that go-crap takes it for."""
SourceOf = Callable[[str], Sequence[Declaration] | None]


class FunctionCoverage(msgspec.Struct, frozen=True, gc=False):
    """A function's coverage in percent, and the profile path that it was taken from."""

    percent: float
    profile_path: str


def gocrap_module_path(go_mod: bytes, directory: str) -> str:
    """The module path as go-crap reads it from a go.mod: quotes and comments stay in, tabs and blocks are not seen."""
    for line in go_mod.decode("utf-8", "surrogateescape").split("\n"):
        trimmed = line.strip()
        if trimmed.startswith("module "):
            return trimmed.removeprefix("module ").strip()
    return posixpath.basename(directory)


class GocrapCoverage:
    """A lazy index of a whole profile. Files are known by their absolute paths.

    `directory` is the module's absolute directory. `module_path` is the result of `gocrap_module_path`. `source_of` returns the
    declarations of a file, None if it cannot be read or parsed.
    """

    def __init__(self, profile: CoverProfile, directory: str, module_path: str, source_of: SourceOf) -> None:
        self._profile, self._source_of = profile, source_of
        self._by_file: dict[str, list[_Place]] = {}
        self._known: dict[str, Mapping[str, FunctionCoverage]] = {}
        self._known_by_suffix: dict[str, Mapping[str, FunctionCoverage]] = {}
        for path in profile.paths():
            if ":" not in path:
                relative = path.removeprefix(module_path).removeprefix("/")
                file = posixpath.normpath(posixpath.join(directory, relative))
                self._by_file.setdefault(file, []).append((path, file))

    def of(self, file: str) -> Mapping[str, FunctionCoverage]:
        """The coverage of the functions and methods of a file by their names; empty where go-crap finds none."""
        names = self._known.get(file)
        if names is None:
            names = self._known[file] = self._names(self._by_file.get(file, ())) or self._similar(_suffix(file))
        return names

    def _similar(self, suffix: str) -> Mapping[str, FunctionCoverage]:
        names = self._known_by_suffix.get(suffix)
        if names is None:
            names = self._known_by_suffix[suffix] = self._names(self._by_suffix.get(suffix, ()))
        return names

    @functools.cached_property
    def _by_suffix(self) -> Mapping[str, Sequence[_Place]]:
        """Places in order of their profile paths."""
        found: dict[str, list[_Place]] = {}
        for place in sorted(itertools.chain.from_iterable(self._by_file.values()), key=lambda place: os.fsencode(place[0])):
            found.setdefault(_suffix(place[1]), []).append(place)
        return found

    def _names(self, places: Iterable[_Place]) -> Mapping[str, FunctionCoverage]:
        """Return the coverage of each name in the blocks of some places. Of several places the first counts."""
        names: dict[str, FunctionCoverage] = {}
        for path, file in places:
            declarations = self._source_of(file)
            if declarations:
                percents = _by_name(declarations, self._profile.blocks_of(path))
                names = {name: FunctionCoverage(percent, path) for name, percent in percents.items()} | names
        return names


def _suffix(file: str) -> str:
    parts = file.split("\\" if "\\" in file else "/")
    return "/".join([part for part in parts if part][-3:])


def _by_name(declarations: Sequence[Declaration], blocks: Iterable[Block]) -> Mapping[str, float]:
    """The percentage under which each bare name is found."""
    merged: dict[tuple[int, int], bool] = {}
    for block in blocks:
        lines = block.start_line, block.end_line
        merged[lines] = block.counted or merged.get(lines, False)
    numbers, reached = [0] * len(declarations), [0] * len(declarations)
    for owner, covered in zip(owners_of_lines(declarations, [first for first, _ in merged]), merged.values(), strict=True):
        if owner is not None:
            numbers[owner] += 1
            reached[owner] += covered
    found = {own.name: _percent(n, r) for own, n, r in zip(declarations, numbers, reached, strict=True)}
    for name, indices in _namesakes(declarations).items() if len(found) < len(declarations) else ():
        if _astray([declarations[index] for index in indices]):
            found[name] = 0.0
        else:
            found[name] = _percent(sum(numbers[index] for index in indices), sum(reached[index] for index in indices))
    return found


def _percent(number: int, reached: int) -> float:
    return reached / number * 100 if number else 0.0


def _namesakes(declarations: Iterable[Declaration]) -> Mapping[str, Sequence[int]]:
    """The indices of the declarations of each name that several have."""
    found: dict[str, list[int]] = {}
    for index, declaration in enumerate(declarations):
        found.setdefault(declaration.name, []).append(index)
    return {name: indices for name, indices in found.items() if len(indices) > 1}


def _astray(namesakes: Sequence[Declaration]) -> bool:
    """Report whether the blocks of declarations of one name are filed and looked up under different declarations.

    They are filed under the first with a receiver that go-crap recognises, and looked up under the first of all.
    """
    return not _is_typed(namesakes[0]) and any(map(_is_typed, namesakes))


def _is_typed(declaration: Declaration) -> bool:
    return declaration.receiver is not None and declaration.receiver.coverage_key != ""


def owners_of_lines(declarations: Sequence[Declaration], lines: Iterable[int]) -> Iterator[int | None]:
    """Return the declaration around each line, in rising order of lines. None: the line is in no body.

    Of several bodies, the last to open counts. Of several that open on the same line, the first declared counts.
    """
    bodies = sorted([(*_braces(d), index) for index, d in enumerate(declarations) if d.opens])
    upcoming = 0
    open_bodies: list[tuple[int, int, int]] = []
    for line in lines:
        while upcoming < len(bodies) and bodies[upcoming][0] <= line:
            opens, closes, index = bodies[upcoming]
            heappush(open_bodies, (-opens, index, closes))
            upcoming += 1
        while open_bodies and open_bodies[0][2] < line:
            heappop(open_bodies)
        yield open_bodies[0][1] if open_bodies else None


def _braces(declaration: Declaration) -> tuple[int, int]:
    printed = declaration.printed
    return (declaration.opens, declaration.closes) if printed is None else (printed.opens, printed.closes)
