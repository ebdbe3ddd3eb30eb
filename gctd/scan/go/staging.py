"""The staged coverage profile: `.go-crap-cover.out` in the module's directory, during the run of the engine.

It has to be there because go-crap derives the module from the place of the profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from gctd.scan.errors import ScanError
from gctd.scan.isolation.files import Directory

STAGED = ".go-crap-cover.out"

_log = structlog.get_logger(__name__)


@contextmanager
def staged(source: Directory, root: Path, project: str, profile: bytes | None) -> Iterator[Path | None]:
    """Write the profile and provide its path. Any file of that name is removed before and after.

    Without a profile it provides None, and writes an empty file: go-crap needs one, and the sandbox of the engine writes none.
    `source` is the checkout, opened before any test ran, `root` its path; `project` is the directory of the module in it. No
    symbolic link on the way is followed. After a crash the profile is removed with the job's folder. Raises ScanError.
    """
    with _opened(source, project) as module:
        try:
            module.remove(STAGED)
            with module.create(STAGED) as file:
                file.write(profile or b"")
        except OSError as error:
            raise ScanError(f"the profile cannot be written to {project}: {error.strerror}") from error
        try:
            yield None if profile is None else root / project / STAGED
        finally:
            _clean(module, project)


def _opened(source: Directory, project: str) -> Directory:
    try:
        return source.inside(project)
    except OSError as error:
        raise ScanError(f"{project} cannot be opened: {error.strerror}") from error


def _clean(module: Directory, project: str) -> None:
    try:
        module.remove(STAGED)
    except (OSError, ScanError) as error:
        _log.warning("staged profile stays until the job's folder is removed", project=project, reason=str(error))
