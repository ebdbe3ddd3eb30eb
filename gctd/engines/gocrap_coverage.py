"""Coverage of a function as go-crap 0.5.1 finds it, faults included.

Columns are ignored, blocks on the same lines are one, functions of one name in a file share their blocks, profile paths are cut
without regard to a `/`, and a file without coverage takes that of one with the same last three path components.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush

import msgspec

from gctd.engines.complexity import Declaration
from gctd.engines.profile import Block, Profile

SourceOf = Callable[[str], Sequence[Declaration] | None]


class Found(msgspec.Struct, frozen=True, gc=False):
    """A function's coverage in percent, and the profile path and the file that it was taken from."""

    percent: float
    profile_path: str
    file: str


def gocrap_module_path(go_mod: bytes, directory: str) -> str:
    """The module path as go-crap reads it from a go.mod: quotes and comments stay in, tabs and blocks are not seen."""
    for line in go_mod.decode("utf-8", "surrogateescape").split("\n"):
        trimmed = line.strip()
        if trimmed.startswith("module "):
            return trimmed.removeprefix("module ").strip()
    return posixpath.basename(directory)


class GocrapCoverage:
    """An index of a whole profile; files are known by their absolute paths.

    `directory` is the module's, absolute; `module_path` as `gocrap_module_path` gives it; `source_of` gives the declarations of a
    file, None where it cannot be read or parsed.
    """

    def __init__(self, profile: Profile, directory: str, module_path: str, source_of: SourceOf) -> None:
        self._by_file: dict[str, dict[str, Found]] = {}
        self._by_suffix: dict[str, dict[str, Found]] = {}
        for path in profile.paths():
            relative = path.removeprefix(module_path).removeprefix("/")
            file = posixpath.normpath(posixpath.join(directory, relative))
            declarations = source_of(file)
            if not declarations or ":" in path:
                continue
            in_file = self._by_file.setdefault(file, {})
            with_suffix = self._by_suffix.setdefault(_suffix(file), {})
            for name, percent in _by_name(declarations, profile.blocks_of(path)).items():
                found = Found(percent, path, file)
                in_file.setdefault(name, found)
                with_suffix.setdefault(name, found)

    def of(self, file: str, name: str) -> Found | None:
        """The coverage of a function or method called `name` in `file`; None where go-crap finds none."""
        names = self._by_file.get(file)
        if names is None:
            names = self._by_file[file] = self._by_suffix.get(_suffix(file), {})
        return names.get(name)


def _suffix(file: str) -> str:
    parts = file.split("\\" if "\\" in file else "/")
    return "/".join([part for part in parts if part][-3:])


def _by_name(declarations: Sequence[Declaration], blocks: Iterable[Block]) -> Mapping[str, float]:
    """The percentage under which each bare name is found: that of the first declaration of the name."""
    merged: dict[tuple[int, int], bool] = {}
    for start_line, _, end_line, _, _, _, counted in blocks:
        lines = start_line, end_line
        merged[lines] = counted or merged.get(lines, False)
    owners = owners_of_lines(declarations, sorted({line for line, _ in merged}))
    typed = {d.name: _key(d) for d in reversed(declarations) if d.receiver is not None and d.receiver.coverage_key}
    totals: dict[str, list[int]] = {}
    for (line, _), covered in merged.items():
        name = owners.get(line)
        if name is not None:
            total = totals.setdefault(typed.get(name, name), [0, 0])
            total[0] += 1
            total[1] += covered
    result: dict[str, float] = {}
    for declaration in declarations:
        if declaration.name not in result:
            number, reached = totals.get(_key(declaration), (0, 0))
            result[declaration.name] = reached / number * 100 if number else 0.0
    return result


def _key(declaration: Declaration) -> str:
    receiver = declaration.receiver
    return f"{receiver.coverage_key}.{declaration.name}" if receiver and receiver.coverage_key else declaration.name


def owners_of_lines(declarations: Sequence[Declaration], lines: Iterable[int]) -> Mapping[int, str]:
    """For each line, in rising order, the function whose body has it: the last to open, of those the first declared."""
    bodies = sorted((*_braces(d), index) for index, d in enumerate(declarations) if d.opens)
    upcoming = 0
    open_bodies: list[tuple[int, int, int]] = []
    owners = {}
    for line in lines:
        while upcoming < len(bodies) and bodies[upcoming][0] <= line:
            opens, closes, index = bodies[upcoming]
            heappush(open_bodies, (-opens, index, closes))
            upcoming += 1
        while open_bodies and open_bodies[0][2] < line:
            heappop(open_bodies)
        if open_bodies:
            owners[line] = declarations[open_bodies[0][1]].name
    return owners


def _braces(declaration: Declaration) -> tuple[int, int]:
    printed = declaration.printed
    return (declaration.opens, declaration.closes) if printed is None else (printed.opens, printed.closes)
