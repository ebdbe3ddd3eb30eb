"""What the API says of one project: its settings, its history, the difference of two of its analyses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from gctd.client.resources import Summary
from terminalkit.client.resources import Resource


class RepoConfig(Resource, frozen=True, kw_only=True):
    """The settings of a project (`subdir` empty: of the root): what is stored, what holds, and where each is set."""

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
    """One analysis of a project; `breaks` is how its measuring differs from that of the one before it in the history."""

    task_id: str
    commit_sha: str
    summary: Summary
    analyzed_at: datetime
    ref: str = ""
    engine: str = ""
    engine_version: str = ""
    go_version: str = ""
    duration_ms: int = 0
    breaks: tuple[Break, ...] = ()


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """Where a function stands, and its CRAP value."""

    file: str
    line: int
    crap: float


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a function: `status` is new, fixed, worse, better or gone."""

    status: str
    function: str
    file: str
    line: int
    delta: float
    before: Values | None = None
    after: Values | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of the gate; `passed` is None where there is nothing to compare with, `value` where it is not known."""

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


class Gate(Resource, frozen=True, kw_only=True, rename={"before": "from", "after": "to", "breaks": "break"}):
    """What the gate says of an analysis; `offending` functions are behind it, of which `functions` are some."""

    passed: bool
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
