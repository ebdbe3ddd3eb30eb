"""What an engine is: from a module directory and its cover profile to a report."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Literal, Protocol

import attrs

from gctd.domain.errors import GctdError
from gctd.engines.report import Report

Missing = Literal["pessimistic", "optimistic", "skip"]


class EngineFailed(GctdError):
    """The module cannot be analysed at all: not readable, or larger than the limits; the text says which."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


@attrs.frozen(kw_only=True)
class Options:
    """How functions are counted and scored.

    `threshold` is the CRAP value above which a function counts as exceeding. `missing` says how a function is scored whose
    coverage is not known: as 0 %, as 100 %, or by its complexity alone. `include_tests` takes in `_test.go` files.
    """

    threshold: float = 30.0
    missing: Missing = "pessimistic"
    include_tests: bool = False


@attrs.frozen(kw_only=True)
class Limits:
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
    """One module to analyse; can be pickled, for a process pool.

    `module_dir` holds the go.mod of `module_path`, `repository` is the checkout that contains it: nothing outside is read.
    `profile` is the cover profile of the module's tests, None where there is none. `nested` are the directories of other
    modules inside, relative to `module_dir`; directories with a go.mod of their own are left out without being named.
    """

    module_dir: Path
    repository: Path
    module_path: str
    profile: Path | None = None
    nested: tuple[str, ...] = ()
    options: Options = Options()
    limits: Limits = Limits()


class Engine(Protocol):
    """Scores the functions of a module. Synchronous and bound by the CPU: run it in a process pool."""

    @property
    def name(self) -> str:
        """The name that tasks and configuration use."""

    @property
    def version(self) -> str:
        """`major.minor.patch`; another version may give other numbers."""

    def analyse(self, given: EngineInput) -> Report:
        """The report of one module. Raises EngineFailed."""
