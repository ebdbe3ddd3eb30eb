"""The interface of engines: from a module directory and its cover profile to a report."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Protocol

import attrs

from gctd.domain.errors import GctdError
from gctd.domain.options import DEFAULTS, CrapOptions
from gctd.engines.measurement import TestFacts
from gctd.engines.report import Report


class EngineFailed(GctdError):
    """The module cannot be analysed at all: it is not readable, or larger than a limit that the text names."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class EngineLost(Exception):
    """A process of the engine was ended from outside: another attempt may do better."""


@attrs.frozen(kw_only=True)
class EngineLimits:
    """Bounds on the work that a repository can cause in an engine.

    `file_bytes`, `nesting` (levels of the syntax tree) and `warnings` are per file or per report. Beyond them, a part is left out
    with a warning. Beyond `files`, `directories`, `profile_bytes` or `profile_blocks` the analysis fails. The parser may need
    some 500 bytes of memory for a byte of hostile source.
    """

    file_bytes: int = 8 << 20
    nesting: int = 50_000
    files: int = 200_000
    directories: int = 200_000
    profile_bytes: int = 1 << 30
    profile_blocks: int = 4_000_000
    warnings: int = 1_000


@attrs.frozen(kw_only=True)
class EngineInput:
    """One module to analyse.

    `module_dir` holds the go.mod of `module_path`. `repository` is the checkout around it: no file outside is read. `profile` is
    the cover profile of the module's tests, or None. `nested` are the directories of other modules inside, relative to
    `module_dir`; directories with a go.mod are left out even if they are not in the list. `cache` is the project's private file
    for results of parsing, outside of the repository; None: they are not kept. `processes` is the number of processes for
    parsing; more than one is allowed only from a process without threads. `tests`: the results of the module's tests, None if
    they are unknown. `uploaded`: the profile was uploaded, and is checked against the source first.
    """

    module_dir: Path
    repository: Path
    module_path: str
    profile: Path | None = None
    nested: tuple[str, ...] = ()
    options: CrapOptions = DEFAULTS
    limits: EngineLimits = EngineLimits()
    cache: Path | None = None
    processes: int = 1
    tests: TestFacts | None = None
    uploaded: bool = False


class Engine(Protocol):
    """Scores the functions of a module. Synchronous and bound by the CPU: run it in a process pool."""

    @property
    def name(self) -> str:
        """The name that tasks and configuration use."""

    @property
    def version(self) -> str:
        """`major.minor.patch`. Another version may have other numbers."""

    def analyse(self, given: EngineInput) -> Report:
        """The report of one module. Raises EngineFailed, EngineLost."""
