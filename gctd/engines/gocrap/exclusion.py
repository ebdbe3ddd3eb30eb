"""The files and functions that `--exclude` leaves out: files by their paths, functions by their names."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable

import attrs

from gctd.engines.engine import EngineInput
from gctd.engines.selection import printable


@attrs.frozen
class Exclusion:
    """Searches in absolute paths, which begin with `base`; `root` takes its place."""

    base: str
    root: str
    _searched: Callable[[str], bool] | None

    @classmethod
    def of(cls, given: EngineInput, *, compat: bool) -> Exclusion:
        """Return the exclusion for one module.

        Paths are relative to the checkout as the root of the file system. With `compat` they are absolute, as in go-crap.
        Raises BadInput.
        """
        base = os.path.abspath(given.repository)  # noqa: PTH100 - Path.resolve would follow links
        return cls(base, base if compat else "/", given.options.excludes())

    def file(self, path: str) -> bool:
        """Whether a file, by its absolute path, is left out."""
        if self._searched is None:
            return False
        inside = posixpath.relpath(path, self.base)
        return self._searched(printable(posixpath.normpath(posixpath.join(self.root, inside))))

    def function(self, name: str) -> bool:
        """Whether a function or method, by its name alone, is left out."""
        return self._searched is not None and self._searched(name)
