"""The API's answers about one project: its settings, its history, the difference of two of its analyses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from gctd.client.resources import KNOWN, Summary
from terminalkit.client import Resource


class RepoConfig(Resource, frozen=True, kw_only=True):
    """The settings of a project (`subdir` empty: of the root): the stored values, the effective values, and their origins."""

    url: str
    subdir: str = ""
    stored: Mapping[str, Any]
    effective: Mapping[str, Any]
    origin: Mapping[str, str]


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the measuring that differs between two analyses."""

    what: str
    before: str
    after: str


class Point(Resource, frozen=True, kw_only=True, rename={"breaks": "break"}):
    """One analysis of a project. `breaks` are the differences in the way of measuring from the previous analysis."""

    task_id: str
    commit_sha: str
    summary: Summary
    measured: Summary
    analyzed_at: datetime
    ref: str = ""
    engine: str = ""
    engine_version: str = ""
    go_version: str = ""
    duration_ms: int = 0
    breaks: tuple[Break, ...] = ()


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a function, its values, and the state of its coverage; `coverage` is in per cent, None if unknown."""

    file: str
    line: int
    crap: float
    cyclomatic: int
    coverage: float | None
    state: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether the coverage is known."""
        return self.state in KNOWN


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a function: `status` is new, fixed, worse, better or gone."""

    status: str
    function: str
    file: str
    line: int
    delta: float
    before: Values | None = None
    after: Values | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place and the name of a function."""

    file: str
    line: int
    function: str


class Kept(msgspec.Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """A function that moved, was renamed or has another signature; `similarity` (0 to 1) where only that share is the same."""

    kept: tuple[str, ...]
    before: Place
    after: Place
    similarity: float | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of the gate. `passed` is None without a base for the comparison, `value` is None if unknown."""

    name: str
    passed: bool | None
    limit: float
    value: float | None
    text: str


class Offender(msgspec.Struct, frozen=True, kw_only=True):
    """A function for which checks of the gate failed."""

    checks: tuple[str, ...]
    function: str
    before: Values | None = None
    after: Values


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the comparison of a commit. `task_id` is the task that analyses it, None if it has been analysed."""

    kind: str
    commit_sha: str
    task_id: str | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A function at the base and now."""

    function: str
    before: Values
    after: Values


class Unmeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose coverage is not known, here or at the base. `checks` are unknown because of it."""

    checks: tuple[str, ...]
    function: str
    before: Values | None = None
    after: Values
    reason: str


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """A function that left the measured set; `before` are its values at the base."""

    function: str
    file: str
    line: int
    before: Values | None = None
    reason: str


class Gate(Resource, frozen=True, kw_only=True, rename={"before": "from", "after": "to", "breaks": "break"}):
    """The gate's judgement of an analysis. `result` is `passed`, `failed` or `unknown`, with the cause of `unknown` in `reason`.

    The counts `offending`, `rising`, `no_longer_risky`, `lacking` and `leaving` are of all functions that fail a check, that are
    also worse, that were risky at the base, that are not measured, and that left the measured set. `functions`, `worsened`,
    `fixed`, `unmeasured` and `excluded` have some of them.
    """

    result: str
    reason: str = ""
    verdict: str | None = None
    base: Base
    no_longer_risky: int = 0
    fixed: tuple[Compared, ...] = ()
    rising: int
    worsened: tuple[Offender, ...]
    lacking: int
    unmeasured: tuple[Unmeasured, ...]
    leaving: int
    excluded: tuple[Excluded, ...]
    project: str
    before: Point | None
    after: Point
    breaks: tuple[Break, ...]
    threshold: float
    partial: bool
    checks: tuple[Check, ...]
    offending: int
    functions: tuple[Offender, ...]


class Diff(Resource, frozen=True, kw_only=True, rename={"before": "from", "after": "to", "breaks": "break"}):
    """The difference of two analyses of a project; `counts` are by status, and `unchanged`.

    `partial`: not all functions of both are shown.
    """

    project: str
    before: Point
    after: Point
    breaks: tuple[Break, ...]
    threshold: float
    partial: bool = False
    counts: Mapping[str, int]
    functions: tuple[Change, ...]
    kept: tuple[Kept, ...] = ()
