"""The values of one function over analyses of one branch, and the last change of its code.

An analysis keeps a digest of the tokens of each function, without comments and white space. So a change of the code is known
between two analysed commits. It is known to be of one commit only if that commit's parent was analysed as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Protocol, TypeVar

import attrs

from gctd.domain.analysis import CommitFacts
from gctd.engines.functions.keys import LocatedFunction, short_key
from gctd.engines.golang.identity import FEW_TOKENS

Change = Literal["added", "code", "moved", "coverage"]


class _Body(Protocol):
    @property
    def digest(self) -> str: ...
    @property
    def tokens(self) -> int: ...


class Recorded(LocatedFunction, Protocol):
    """A function of a report of the past."""

    @property
    def coverage(self) -> float | None: ...
    @property
    def identity(self) -> _Body | None: ...


@attrs.frozen(kw_only=True)
class LastChange:
    """The last change of a function's code.

    `commit`: it is of the commit `after`, with the author in `facts`. `between`: it is between the commits `before` (analysed
    first) and `after`. `unchanged`: the code is the same since `before` at least, the oldest analysed commit. `unknown`: an
    analysis does not have the digest. `added`: the function itself is new.
    """

    kind: Literal["commit", "between", "unchanged", "unknown"]
    added: bool = False
    before: str = ""
    after: str = ""
    facts: CommitFacts | None = None


R = TypeVar("R", bound=Recorded)


def found_again(entry: R, entries: Sequence[R]) -> R | None:
    """Return a function in the report of an earlier analysis: by its key, its file first, else by its unique content."""
    alike = [one for one in entries if one.name == entry.name and short_key(one) == short_key(entry)]
    if alike:
        return next((one for one in alike if one.file == entry.file), alike[0])
    body = entry.identity
    if body is None or body.tokens < FEW_TOKENS:
        return None
    same = [one for one in entries if one.identity is not None and one.identity.digest == body.digest]
    return same[0] if len(same) == 1 else None


def changes_of(entry: Recorded, earlier: Recorded | None) -> tuple[Change, ...]:
    """Return the changes of a function from an earlier analysis. Code whose digest is not known counts as unchanged."""
    if earlier is None:
        return ("added",)
    found: list[Change] = []
    if entry.identity is not None and earlier.identity is not None and entry.identity.digest != earlier.identity.digest:
        found.append("code")
    if (entry.file, entry.receiver, entry.name) != (earlier.file, earlier.receiver, earlier.name):
        found.append("moved")
    if entry.coverage != earlier.coverage:
        found.append("coverage")
    return tuple(found)


def last_change(points: Sequence[tuple[str, Recorded | None]], facts: CommitFacts | None) -> LastChange:
    """Return the last change of the code of a function.

    `points` are commits with the function, newest first. None ends them: the function is not in that commit. `facts` are the
    facts of the commit at which the change is found.
    """
    at = changed_at(points)
    if at is None:
        oldest = points[-1]
        return LastChange(kind="unchanged", before=oldest[0]) if _digest(oldest[1]) else LastChange(kind="unknown")
    after, before = points[at], points[at + 1]
    if _digest(after[1]) is None or (before[1] is not None and _digest(before[1]) is None):
        return LastChange(kind="unknown")
    exact = facts is not None and before[0] in facts.parents
    return LastChange(
        kind="commit" if exact else "between",
        added=before[1] is None,
        before=before[0],
        after=after[0],
        facts=facts if exact else None,
    )


def changed_at(points: Sequence[tuple[str, Recorded | None]]) -> int | None:
    """Return the index of the newest point whose code differs from the point before it; None if there is none."""
    pairs = pairwise(points)
    return next((index for index, (after, before) in enumerate(pairs) if _digest(after[1]) != _digest(before[1])), None)


def _digest(entry: Recorded | None) -> str | None:
    return None if entry is None or entry.identity is None else entry.identity.digest
