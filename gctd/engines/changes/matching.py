"""Matching the functions of two reports: by key, by content, then by the share of equal content.

The steps go from certain to likely matches. Each step takes the remaining functions, and gives pairs of one and one.
The result depends on the two reports alone, and not on random numbers, hashes of the process or time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from posixpath import dirname

import attrs
import msgspec

from gctd.engines.golang.identity import FEW_TOKENS, SKETCH, VALUE
from gctd.engines.report import FunctionEntry

LIKE = 0.6
"""The least share of equal content by which a function is known again under another name."""
LIKE_BY_NAME = 0.4
"""The same share for a function that has kept its name."""
COMMON = 20
"""A piece of content that more functions have says nothing about any."""

_IN_MANY_PLACES = frozenset({"init", "main", "_"})
"""Names that many functions have: such a function is found again by its content, never by its name alone."""
_BASE = re.compile(r"[\w.]+")


@attrs.frozen(kw_only=True)
class Match:
    """A function before and after; None if it has no counterpart.

    `similarity` is the share of equal content (0 to 1), if the match was made by it.
    """

    before: FunctionEntry | None = None
    after: FunctionEntry | None = None
    similarity: float | None = None

    @property
    def moved(self) -> bool:
        """Whether it is in another file."""
        return self.before is not None and self.after is not None and self.before.file != self.after.file

    @property
    def renamed(self) -> bool:
        """Whether it, or its receiver's type, has another name."""
        before, after = self.before, self.after
        if before is None or after is None:
            return False
        return (base_of(before.receiver), before.name) != (base_of(after.receiver), after.name)

    @property
    def signature_changed(self) -> bool:
        """Whether types of its parameters or results differ, or whether its receiver is a pointer."""
        if self.before is None or self.after is None:
            return False
        old, new = self.before.identity, self.after.identity
        return old is not msgspec.UNSET and new is not msgspec.UNSET and old.signature != new.signature

    @property
    def body_changed(self) -> bool:
        """Report whether parameters, results or body differ, apart from format, comments and names of the function and its types.

        True if unknown.
        """
        if self.before is None or self.after is None:
            return True
        old, new = self.before.identity, self.after.identity
        return old is msgspec.UNSET or new is msgspec.UNSET or old.digest != new.digest


def base_of(receiver: str) -> str:
    """The name of a receiver's type, without `*` and type parameters; empty for a function."""
    found = _BASE.search(receiver)
    return found[0] if found else ""


class _Function(msgspec.Struct, frozen=True, eq=False, gc=False):
    entry: FunctionEntry
    directory: str
    base: str
    digest: str
    telling: bool
    """Whether its content is long enough that no other function is equal by chance."""


_Pair = tuple[_Function, _Function]
_Key = Callable[[_Function], Hashable | None]
_Group = tuple[str, ...]
"""A directory, or a type in it."""


def match(before: Iterable[FunctionEntry], after: Iterable[FunctionEntry]) -> Sequence[Match]:
    """All functions of both reports, each once: the pairs, then what is only in one of them."""
    old, new = _functions(before), _functions(after)
    pairs: list[_Pair] = []
    for key, in_order in _BY_PLACE_OR_CONTENT:
        old, new = _paired(key, old, new, pairs, in_order=in_order)
    for kind in (_directory, _type):
        old, new = _paired_by_majority(kind, old, new, pairs)
    old, new = _paired(_anywhere, old, new, pairs, in_order=False)
    matches = [Match(before=one.entry, after=other.entry) for one, other in pairs]
    alike = list(_alike(old, new))
    matches += [Match(before=one.entry, after=other.entry, similarity=score) for one, other, score in alike]
    paired = {id(side) for one, other, _ in alike for side in (one, other)}
    matches += [Match(before=one.entry) for one in old if id(one) not in paired]
    matches += [Match(after=one.entry) for one in new if id(one) not in paired]
    return matches


def _functions(entries: Iterable[FunctionEntry]) -> list[_Function]:
    directories: dict[str, str] = {}
    bases: dict[str, str] = {"": ""}
    found = []
    for entry in sorted(entries, key=_place):
        file, receiver, identity = entry.file, entry.receiver, entry.identity
        if (directory := directories.get(file)) is None:
            directory = directories[file] = dirname(file)
        if (base := bases.get(receiver)) is None:
            base = bases[receiver] = base_of(receiver)
        if identity is msgspec.UNSET:
            found.append(_Function(entry, directory, base, "", telling=False))
        else:
            found.append(_Function(entry, directory, base, identity.digest, telling=identity.tokens >= FEW_TOKENS))
    return found


def _place(entry: FunctionEntry) -> tuple[str, int, str, float]:
    return entry.file, entry.line, entry.function, entry.crap


def _unless_common(key: Callable[[_Function], Hashable]) -> _Key:
    return lambda one: None if one.entry.name in _IN_MANY_PLACES else key(one)


_anywhere = _unless_common(lambda one: (one.entry.package, one.base, one.entry.name))

_BY_PLACE_OR_CONTENT: Sequence[tuple[_Key, bool]] = (
    (lambda one: (one.entry.file, one.base, one.entry.name, one.digest) if one.digest else None, True),
    (lambda one: (one.entry.file, one.base, one.entry.name), True),
    (lambda one: (one.directory, one.base, one.entry.name, one.digest) if one.digest else None, True),
    (lambda one: (one.directory, one.base, one.entry.name), False),
    (lambda one: (one.base, one.entry.name, one.digest) if one.digest else None, False),
    (lambda one: (one.directory, one.digest) if one.telling else None, False),
    (lambda one: one.digest if one.telling else None, False),
)
"""Keys of pairs, and whether several functions of the same key are paired in order, or not at all."""


def _paired(
    key: _Key,
    old: Sequence[_Function],
    new: Sequence[_Function],
    pairs: list[_Pair],
    *,
    in_order: bool,
    other_key: _Key | None = None,
) -> tuple[list[_Function], list[_Function]]:
    """Add the pairs of equal keys. Return the remaining functions, in order. `other_key` is the key after, if it differs."""
    groups: defaultdict[Hashable, list[_Function]] = defaultdict(list)
    left: tuple[list[_Function], list[_Function]] = ([], [])
    for one in old:
        name = key(one)
        if name is None:
            left[0].append(one)
        else:
            groups[name].append(one)
    theirs: defaultdict[Hashable, list[_Function]] = defaultdict(list)
    for one in new:
        name = (other_key or key)(one)
        if name is None or name not in groups:
            left[1].append(one)
        else:
            theirs[name].append(one)
    for name, ours in groups.items():
        others = theirs.get(name, [])
        common = min(len(ours), len(others)) if in_order or len(ours) + len(others) == 2 else 0
        pairs.extend(zip(ours[:common], others[:common], strict=True))
        left[0].extend(ours[common:])
        left[1].extend(others[common:])
    return left


def _directory(one: _Function) -> _Group:
    return (one.directory,)


def _type(one: _Function) -> _Group | None:
    return (one.directory, one.base) if one.base else None


def _paired_by_majority(
    group: Callable[[_Function], _Group | None], old: Sequence[_Function], new: Sequence[_Function], pairs: list[_Pair]
) -> tuple[list[_Function], list[_Function]]:
    """Match functions by name between a directory (a type) and the place of most of its functions."""
    if not old or not new:
        return list(old), list(new)
    goes = _majorities(group, pairs)

    def key(one: _Function) -> Hashable | None:
        where = group(one)
        target = None if where is None else goes.get(where)
        if target is None or one.entry.name in _IN_MANY_PLACES:
            return None
        # A directory keeps the names of its types; of a type only the methods' own names are left.
        return (target, one.entry.name, one.base if len(target) == 1 else "")

    def other_key(one: _Function) -> Hashable | None:
        where = group(one)
        if where is None or one.entry.name in _IN_MANY_PLACES:
            return None
        return (where, one.entry.name, one.base if len(where) == 1 else "")

    return _paired(key, old, new, pairs, in_order=False, other_key=other_key)


def _majorities(group: Callable[[_Function], _Group | None], pairs: Sequence[_Pair]) -> Mapping[_Group, _Group]:
    """Return the new group of each old group: the target of most of its functions, if most functions there come from it."""
    counted: Counter[tuple[_Group, _Group]] = Counter()
    for one, other in pairs:
        before, after = group(one), group(other)
        if before is not None and after is not None:
            counted[before, after] += 1
    there = _most(counted)
    back = _most({(after, before): count for (before, after), count in counted.items()})
    return {before: after for before, after in there.items() if back.get(after) == before}


def _most(counted: Mapping[tuple[_Group, _Group], int]) -> dict[_Group, _Group]:
    """The counterpart that is counted most often; none where two are equal."""
    best: dict[_Group, tuple[int, _Group | None]] = {}
    for (one, other), count in counted.items():
        most, _ = best.get(one, (0, None))
        if count >= most:
            best[one] = (count, None if count == most else other)
    return {one: other for one, (_, other) in best.items() if other is not None}


def _alike(old: Sequence[_Function], new: Sequence[_Function]) -> Iterator[tuple[_Function, _Function, float]]:
    """The pairs of most equal content, the likest first."""
    ours, theirs = [list(_sketched(side)) for side in (old, new)]
    owners: defaultdict[int, list[int]] = defaultdict(list)
    for index, (_, sketch) in enumerate(theirs):
        for value in sketch:
            owners[value].append(index)
    counted = Counter(value for _, sketch in ours for value in sketch)
    found = []
    for number, (one, sketch) in enumerate(ours):
        shared: Counter[int] = Counter()
        for value in sketch:
            holders = owners.get(value, ())
            if len(holders) <= COMMON and counted[value] <= COMMON:
                shared.update(holders)
        for index in shared:
            other, others = theirs[index]
            score = _similarity(sketch, others)
            if score >= (LIKE_BY_NAME if one.entry.name == other.entry.name not in _IN_MANY_PLACES else LIKE):
                places = sorted((_place(one.entry)[:3], _place(other.entry)[:3]))
                found.append((-score, places, number, index))
    taken: tuple[set[int], set[int]] = (set(), set())
    for negative, _, number, index in sorted(found):
        if number not in taken[0] and index not in taken[1]:
            taken[0].add(number)
            taken[1].add(index)
            yield ours[number][0], theirs[index][0], -negative


def _sketched(functions: Iterable[_Function]) -> Iterator[tuple[_Function, Sequence[int]]]:
    for one in functions:
        identity = one.entry.identity
        if identity is not msgspec.UNSET and identity.sketch:
            text = identity.sketch
            yield one, [int.from_bytes(text[at : at + VALUE], "big") for at in range(0, len(text), VALUE)]


def _similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """About the share of content that both have, of all that either has."""
    both = sorted({*one, *other})[:SKETCH]
    common = set(one).intersection(other)
    return sum(value in common for value in both) / len(both)
