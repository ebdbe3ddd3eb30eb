"""Keys of functions: they name a function in addresses, at any commit.

A key has the directory, the receiver's type and the name: `internal:fsm:Machine.Next`. The colons replace slashes, because a
key is one segment of a path and no import path has a colon. A function of the module's directory has only its name. Go permits
several functions with one key, for example in files for different platforms, or `init`. Then the name of the file follows
(`@file.go`), and a number if one file has several.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import attrs


class LocatedFunction(Protocol):
    """A function and its place, with its receiver as in a report (`*T`, `T[K]`)."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def receiver(self) -> str: ...


P = TypeVar("P", bound=LocatedFunction)


@attrs.frozen
class KeyMatch:
    """A function found by its key: its position in the report, its full key, and the keys of the others with the same name."""

    index: int
    key: str
    others: tuple[str, ...] = ()


def short_key(entry: LocatedFunction) -> str:
    """Return the key of a function without its file."""
    kind = entry.receiver.strip("*() ").partition("[")[0]
    name = f"{kind}.{entry.name}" if kind else entry.name
    directory = posixpath.dirname(entry.file)
    return f"{directory.replace('/', ':')}:{name}" if directory else name


def keys_of(entries: Sequence[LocatedFunction]) -> list[str]:
    """Return the key of each function. All keys differ."""
    keys = [short_key(entry) for entry in entries]
    for alike in _alike(keys).values():
        if len(alike) > 1:
            _tell_apart(entries, keys, alike)
    return keys


def key_among(entry: P, entries: Sequence[P]) -> str:
    """Return the key of one of the entries."""
    alike = [one for one in entries if one.name == entry.name and short_key(one) == short_key(entry)]
    return keys_of(alike)[alike.index(entry)]


def find_key(entries: Sequence[P], key: str, *, known: Callable[[P], bool]) -> KeyMatch | None:
    """Return the function with this key, None if there is none.

    A key without a file that several functions have names the first one with known coverage, else the first one. `known` is true
    for a function with known coverage.
    """
    alike = [index for index, entry in enumerate(entries) if entry.name in key and _is_named(short_key(entry), key)]
    if not alike:
        return None
    keys = dict(zip(alike, keys_of([entries[index] for index in alike]), strict=True))
    alike.sort(key=lambda index: (not known(entries[index]), entries[index].file, entries[index].line))
    chosen = next((index for index in alike if keys[index] == key), alike[0])
    return KeyMatch(chosen, keys[chosen], tuple(sorted(keys[index] for index in alike if index != chosen)))


def _is_named(short: str, key: str) -> bool:
    return key == short or key.startswith(f"{short}@")


def _alike(keys: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        found[key].append(index)
    return found


def _tell_apart(entries: Sequence[LocatedFunction], keys: list[str], alike: Sequence[int]) -> None:
    for index in alike:
        keys[index] += f"@{posixpath.basename(entries[index].file)}"
    for same in _alike([keys[index] for index in alike]).values():
        if len(same) > 1:
            ordered = sorted((alike[at] for at in same), key=lambda index: entries[index].line)
            for number, index in enumerate(ordered, 1):
                keys[index] += f"@{number}"
