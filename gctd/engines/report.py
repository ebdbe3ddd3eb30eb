"""The result of an analysis: a scored entry for each function, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
import msgspec

from gctd.engines.functions.keys import keys_of
from gctd.engines.golang.profile import CoverProfile
from gctd.engines.state import State

FORMAT = "1.1.0"

WarningKind = Literal["syntax", "too-large", "unreadable", "link", "nested-module", "ignored", "profile", "more"]


class ReportSummary(msgspec.Struct, frozen=True):
    """The module in four numbers: mean and sum of the CRAP values, functions above the threshold, functions."""

    average: float
    combined: float
    exceeded: int
    total_funcs: int


@attrs.frozen(kw_only=True)
class Difference:
    """go-crap's result for the function, if it differs, with the reason.

    `coverage` (percent) and `crap` are go-crap's numbers; None if it has no entry for the function.
    """

    reason: str
    coverage: float | None
    crap: float | None


class Identity(msgspec.Struct, frozen=True, gc=False):
    """Content of a function, to find it again (see `gctd.engines.golang.identity`). Digests in hex, the sketch in base64."""

    digest: str
    signature: str
    tokens: int
    sketch: bytes


class FunctionEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One function or method.

    `file` is relative to the module, with forward slashes; `function` has the receiver before the name (`*T.Name`). Lines
    count from 1. `coverage` is the percentage of covered blocks, `stmt_coverage` the percentage of covered statements as `go tool
    cover -func` counts them; both are None if unknown. `crap` follows from `cyclomatic` and `coverage`. `state` is the state of
    the measurement, `reason` its cause. `key` names the function in addresses (`gctd.engines.functions.keys`). It is in answers,
    not in stored reports, because it follows from the other entries.
    """

    file: str
    package: str
    function: str
    name: str
    receiver: str
    line: int
    end_line: int
    cyclomatic: int
    coverage: float | None
    stmt_coverage: float | None
    crap: float
    state: State
    differs: Difference | None = None
    reason: str = ""
    identity: Identity | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def known(self) -> bool:
        """Whether its coverage is known."""
        return self.state.known

    def risky(self, threshold: float) -> bool:
        """Whether its value is over the threshold, by a coverage that is known."""
        return self.crap > threshold and self.known


@attrs.frozen(kw_only=True)
class ExcludedFile:
    """A file whose functions a rule leaves out without reading it."""

    file: str
    rule: str


@attrs.frozen(kw_only=True)
class ReportWarning:
    """Something that the numbers do not include. `path` is relative to the module, empty if the warning has no path."""

    kind: WarningKind
    path: str
    reason: str

    @property
    def unread(self) -> bool:
        """Whether it is about a file whose functions are not known."""
        return self.kind in ("syntax", "too-large", "unreadable")


@attrs.frozen(kw_only=True)
class Counts:
    """Counts of files read and left out, of functions with known coverage, and of functions that differ from go-crap's."""

    files: int
    files_skipped: int
    covered_functions: int
    differing: int


@attrs.frozen(kw_only=True)
class ProfileFacts:
    """The cover profile behind the numbers: sha-256 of its bytes, size in bytes, mode, distinct blocks."""

    digest: str
    size: int
    mode: str
    blocks: int

    @classmethod
    def of(cls, profile: CoverProfile) -> ProfileFacts:
        """Return the facts of a profile that was read."""
        return cls(digest=profile.digest, size=profile.size, mode=profile.mode, blocks=profile.blocks)


@attrs.frozen(kw_only=True)
class Report:
    """The analysis of one module.

    `entries` are in order of falling CRAP value, then file, then line. `engine_version` is the engine's own version,
    `crap_version` the version of the go-crap whose rules it follows (`v<major>.<minor>.<patch>`). `summary` covers all functions,
    `measured` the functions with known coverage. `states` counts all functions by state. `excluded` are the
    functions that a rule leaves out (their `reason`): they are in no figure but `states`.
    """

    engine: str
    engine_version: str
    crap_version: str
    summary: ReportSummary
    measured: ReportSummary
    states: Mapping[str, int]
    entries: tuple[FunctionEntry, ...]
    counts: Counts
    profile: ProfileFacts | None = None
    warnings: tuple[ReportWarning, ...] = ()
    excluded: tuple[FunctionEntry, ...] = ()
    excluded_files: tuple[ExcludedFile, ...] = ()

    @property
    def is_shortened(self) -> bool:
        """Whether it lacks functions (--min, --top)."""
        return len(self.entries) < self.summary.total_funcs


class RawEntry(msgspec.Struct, frozen=True):
    """A function in go-crap's JSON report, keys in its order; without a baseline `delta` is the score (go-crap 0.5.1)."""

    baseline_crap: float
    coverage: float | msgspec.UnsetType
    delta: float
    coverage_warning: str | msgspec.UnsetType
    file: str
    function: str
    package: str
    receiver: str | msgspec.UnsetType
    crap: float
    cyclomatic: int
    effective_crap: float
    line: int
    mutation_score: float
    coverage_untrusted: bool


class RawOutput(msgspec.Struct, frozen=True):
    """The report as go-crap writes it: `raw_output` of an analysis. `version` is the version of the report format."""

    version: str
    summary: Mapping[str, float]
    entries: tuple[RawEntry, ...]


def raw_output(report: Report) -> RawOutput:
    """The report in go-crap's JSON shape; whole numbers as Go writes them (30, not 30.0)."""
    summary = {key: _as_go(value) for key, value in msgspec.structs.asdict(report.summary).items()}
    return RawOutput(FORMAT, summary, tuple(map(_raw_entry, report.entries)))


def _raw_entry(entry: FunctionEntry) -> RawEntry:
    crap = _as_go(entry.crap)
    known = entry.coverage is not None
    return RawEntry(
        baseline_crap=0,
        coverage=msgspec.UNSET if entry.coverage is None else _as_go(entry.coverage),
        delta=crap,
        coverage_warning=msgspec.UNSET if known else "no coverage data for this function",
        file=entry.file,
        function=entry.function,
        package=entry.package,
        receiver=entry.receiver or msgspec.UNSET,
        crap=crap,
        cyclomatic=entry.cyclomatic,
        effective_crap=crap,
        line=entry.line,
        mutation_score=0,
        coverage_untrusted=False,
    )


def _as_go(value: float) -> float:
    return int(value) if float(value).is_integer() else value


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Report)


def keyed(report: Report) -> Report:
    """Return a report whose entries have their keys. The report must have all entries that are stored."""
    keys = keys_of(report.entries)
    entries = (msgspec.structs.replace(entry, key=key) for entry, key in zip(report.entries, keys, strict=True))
    return attrs.evolve(report, entries=tuple(entries))


def encode(report: Report) -> bytes:
    """The report as a JSON document."""
    return _encoder.encode(report)


def decode(document: bytes) -> Report:
    """A report from its JSON document. Raises msgspec.DecodeError (of which msgspec.ValidationError is one)."""
    return _decoder.decode(document)
