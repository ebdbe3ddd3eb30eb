"""The staged coverage profile: `.go-crap-cover.out` in the module's directory, for as long as it is needed.

It has to be there because go-crap derives the module from where the profile is (specification, section 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STAGED = ".go-crap-cover.out"


@contextmanager
def staged(module_dir: Path) -> Iterator[Path]:
    """The path for the profile; whatever is there before and after is removed.

    After a crash it goes with the job's folder, which a worker removes when it starts.
    """
    path = module_dir / STAGED
    _remove(path)
    try:
        yield path
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    # A repository may come with a link or a directory of that name.
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
