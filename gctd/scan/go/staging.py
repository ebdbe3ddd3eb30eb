"""The staged coverage profile: `.go-crap-cover.out` in the module's directory, for as long as it is needed.

It has to be there because go-crap derives the module from where the profile is (specification, section 1).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

STAGED = ".go-crap-cover.out"

_log = structlog.get_logger(__name__)


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
    """Remove what is there: a repository, or a test, may have put a link or a directory of that name in its place."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except (OSError, RecursionError) as error:
        _log.warning("staged profile stays until the job's folder is removed", path=str(path), error=str(error))
