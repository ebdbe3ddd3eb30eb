"""What an engine is: from a module directory and its cover profile to a report."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Protocol

import attrs

from gctd.domain.errors import GctdError
from gctd.domain.options import DEFAULTS, CrapOptions
from gctd.engines.report import Report


class EngineFailed(GctdError):
    """The module cannot be analysed at all: not readable, or larger than the limits; the text says which."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class EngineLost(Exception):
    """A process of the engine was ended from outside: another attempt may do better."""


@attrs.frozen(kw_only=True)
class EngineLimits:
    """Bounds on what a repository can make an engine do.

    `file_bytes`, `nesting` (levels of the syntax tree) and `warnings` are per file or per report and only leave something out
    with a warning; over `files`, `directories`, `profile_bytes` or `profile_blocks` the analysis fails. The parser may need
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

    `module_dir` holds the go.mod of `module_path`, `repository` is the checkout that contains it: nothing outside is read.
    `profile` is the cover profile of the module's tests, None where there is none. `nested` are the directories of other
    modules inside, relative to `module_dir`; directories with a go.mod of their own are left out without being named.
    `cache` is a file of the project's own, outside of the repository, for what parsing gave; None: nothing is kept. `processes`
    is how many may parse; more than one only from a process without threads.
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


class Engine(Protocol):
    """Scores the functions of a module. Synchronous and bound by the CPU: run it in a process pool."""

    @property
    def name(self) -> str:
        """The name that tasks and configuration use."""

    @property
    def version(self) -> str:
        """`major.minor.patch`; another version may give other numbers."""

    def analyse(self, given: EngineInput) -> Report:
        """The report of one module. Raises EngineFailed, EngineLost."""
