"""Functions for which go-crap 0.5.1 has another number, and the reason for each."""

from __future__ import annotations

import functools
import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from gctd.domain.options import Missing
from gctd.engines.gocrap.coverage import FunctionCoverage, GocrapCoverage
from gctd.engines.gocrap.walk import is_seen_by_gocrap
from gctd.engines.golang.complexity import Declaration
from gctd.engines.report import Difference
from gctd.engines.score import crap_of, shown_coverage

UNSEEN = "go-crap does not look into this directory: it takes the name for a pattern"
MODULE_LINE = "go-crap misreads the module line of go.mod"
LINE_DIRECTIVE = "go-crap cannot follow the //line directive back to this file"
LOOK_ALIKE = "go-crap takes the coverage of a file with a similar path: "
LITERAL = "go-crap leaves function literals in variables out"
COLON = "go-crap cannot read a path with a colon in the profile"
SAME_NAME = "go-crap gives all functions of this name in the file one number"
OVERFLOW = "go-crap takes a count of 64 bits or more for zero"
ONE_LINE = "go-crap looks at lines only: blocks with the same lines are one block to it"


@attrs.frozen
class GocrapView:
    """A module as go-crap sees it: its index of the profile, the module's directory, and its score for missing coverage.

    `misreads_module`: the module path that go-crap reads is wrong. `overflows`: a count is too large for go-crap.
    """

    index: GocrapCoverage
    directory: str
    missing: Missing
    misreads_module: bool
    overflows: bool

    def file(self, path: str) -> str:
        """The absolute path of a file that is named relative to the module."""
        return posixpath.join(self.directory, path)

    def find(self, file: str, declarations: Iterable[Declaration]) -> list[FunctionCoverage | None]:
        """Return go-crap's coverage of the declarations of a file (absolute path)."""
        names = self.index.of(file)
        return [
            None
            if declaration.literal
            else (names if declaration.printed is None else self.index.of(self.file_of(file, declaration))).get(declaration.name)
            for declaration in declarations
        ]

    def file_of(self, file: str, declaration: Declaration) -> str:
        """The absolute path under which go-crap looks a declaration of a file up: the one that `//line` directives give."""
        printed = declaration.printed
        return file if printed is None or printed.file is None else self.file(printed.file)


class FileDifferences:
    """Compares the declarations of one file with go-crap's numbers; `path` is relative to the module."""

    def __init__(self, view: GocrapView, path: str, profile_path: str, declarations: Sequence[Declaration]) -> None:
        self._view = view
        self._profile_path = profile_path
        self._declarations = declarations
        self._seen = is_seen_by_gocrap(path)

    def difference(
        self, declaration: Declaration, found: FunctionCoverage | None, coverage: float | None, crap: float
    ) -> Difference | None:
        """Return go-crap's result in place of `coverage` (percent) and `crap`; None if the score is the same.

        `found` is go-crap's coverage of the declaration.
        """
        if not self._seen or declaration.literal:
            return Difference(reason=LITERAL if declaration.literal else UNSEEN, coverage=None, crap=None)
        theirs = None if found is None else found.percent
        if theirs == coverage:
            return None
        score = crap_of(declaration.cyclomatic, theirs, self._view.missing)
        if score == crap:
            return None
        shown = shown_coverage(theirs, self._view.missing)
        return Difference(reason=self._reason(declaration, found), coverage=shown, crap=score)

    def _reason(self, declaration: Declaration, found: FunctionCoverage | None) -> str:
        if declaration.printed is not None and declaration.printed.file is not None:
            return LINE_DIRECTIVE
        if found is not None and found.profile_path != self._profile_path:
            return LOOK_ALIKE + found.profile_path
        if ":" in self._profile_path:
            return COLON
        if self._view.misreads_module:
            return MODULE_LINE
        if self._times[declaration.name] > 1:
            return SAME_NAME
        return OVERFLOW if self._view.overflows else ONE_LINE

    @functools.cached_property
    def _times(self) -> Counter[str]:
        return Counter(one.name for one in self._declarations if not one.literal)
