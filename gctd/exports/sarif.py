"""An analysis in SARIF 2.1.0 (OASIS), as code hosts take it: the risky functions, and the gaps of the numbers.

Section numbers refer to the standard.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import msgspec

from gctd.domain.options import threshold_of
from gctd.engines.report import FunctionEntry, Report
from gctd.engines.score import coverage_needed
from gctd.readmodel.views import AnalysisView

MEDIA_TYPE = "application/sarif+json"
VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 25_000
"""Results in one file: what GitHub's code scanning takes; the worst come first."""

NOTES = 1_000
"""Limit of the functions with unknown coverage that are listed one by one."""

_ROOT = "SRCROOT"
_RISKY, _COVERABLE, _UNCOVERED, _LEFT_OUT = "crap/too-complex", "crap/too-little-coverage", "coverage/none", "analysis/left-out"
_RULES: Sequence[dict[str, Any]] = (
    {
        "id": _RISKY,
        "name": "TooComplex",
        "shortDescription": {"text": "The function is too complex to be safe to change."},
        "fullDescription": {"text": "Its CRAP value is over the threshold, and no coverage would bring it below: split it."},
        "help": {"text": "CRAP is complexity squared times (1 - coverage) cubed, plus complexity. Split the function."},
        "defaultConfiguration": {"level": "warning"},
    },
    {
        "id": _COVERABLE,
        "name": "TooLittleCoverage",
        "shortDescription": {"text": "The function is complex, and tests reach too little of it."},
        "fullDescription": {"text": "Its CRAP value is over the threshold; more coverage would bring it below."},
        "help": {"text": "CRAP is complexity squared times (1 - coverage) cubed, plus complexity. Test or split the function."},
        "defaultConfiguration": {"level": "warning"},
    },
    {
        "id": _UNCOVERED,
        "name": "PackageWithoutCoverage",
        "shortDescription": {"text": "No coverage of the package is known."},
        "fullDescription": {
            "text": "Its tests failed, could not be built, or there are none. Its functions have a state with the reason."
        },
        "help": {"text": "Read the log of the attempt to see why."},
        "defaultConfiguration": {"level": "note"},
    },
    {
        "id": _LEFT_OUT,
        "name": "LeftOut",
        "shortDescription": {"text": "Something is not in the numbers."},
        "fullDescription": {"text": "A file could not be read or parsed, or was left out for another reason."},
        "help": {"text": "Read the text of the notification to see why."},
        "defaultConfiguration": {"level": "note"},
    },
)
_INDEX = {rule["id"]: index for index, rule in enumerate(_RULES)}


def sarif(analysis: AnalysisView, report: Report, *, version: str) -> bytes:
    """The SARIF file of an analysis; `version` is this program's. Paths are relative to the root of the repository."""
    threshold = threshold_of(analysis.flags)
    over = [entry for entry in report.entries if entry.risky(threshold)]
    results = [*_results(analysis, over[:MOST], _ordinals(report.entries), threshold), *_packages(analysis)][:MOST]
    rule = {"id": _LEFT_OUT, "index": _INDEX[_LEFT_OUT]}
    notes = [
        {"level": "note", "message": {"text": text}, "associatedRule": rule}
        for text in _left_out(analysis, report, over, threshold)
    ]
    driver = {"name": "gctd", "version": version, "rules": _RULES}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        # 3.17.3: the id separates the runs of one project from the runs of others in the same repository.
        "automationDetails": {"id": f"gctd/{'' if analysis.project == '.' else analysis.project + '/'}"},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "versionControlProvenance": [
            {
                "repositoryUri": analysis.repo_url,
                "revisionId": analysis.commit_sha,
                "branch": analysis.ref,
                "mappedTo": {"uriBaseId": _ROOT},
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {
            "project": analysis.project,
            "task": analysis.task_id,
            "engine": f"{analysis.engine} {analysis.engine_version}",
            "goVersion": analysis.go_version,
            "flags": list(analysis.flags),
            "threshold": threshold,
            "average": analysis.summary.average,
            "combined": analysis.summary.combined,
            "exceeded": analysis.risky,
            "states": analysis.states,
            "totalFuncs": analysis.summary.total_funcs,
        },
    }
    return msgspec.json.encode({"$schema": SCHEMA, "version": VERSION, "runs": [run]})


def _left_out(analysis: AnalysisView, report: Report, over: Sequence[FunctionEntry], threshold: float) -> Iterator[str]:
    """Describe the gaps of the numbers and of the file: a code host takes a missing result for one that is fixed."""
    for warning in report.warnings:
        yield f"{warning.path}: {warning.reason}" if warning.path else warning.reason
    unmeasured = [entry for entry in report.entries if entry.crap > threshold and not entry.state.known]
    for one in unmeasured[:NOTES]:
        yield f"{one.file}:{one.line} {one.function} is not measured ({one.state.value}): {one.reason}"
    if len(unmeasured) > NOTES:
        yield f"{len(unmeasured) - NOTES} more functions are not measured"
    if hidden := report.summary.total_funcs - len(report.entries):
        risky = report.measured.exceeded - len(over)
        yield f"the report was shortened (--min, --top): {hidden} functions are not in it, {risky} of them over {threshold:g}"
    if len(over) > MOST:
        yield f"{len(over) - MOST} more functions are over {threshold:g}"
    if (packages := len(analysis.uncovered) - max(MOST - len(over), 0)) > 0:
        yield f"{packages} more packages without coverage"


def _key(entry: FunctionEntry) -> tuple[str, str, str, str]:
    return entry.file, entry.package, entry.receiver, entry.name


def _ordinals(entries: Sequence[FunctionEntry]) -> Mapping[tuple[str, int, str], int]:
    """Return by file, line and function its number among the functions of its name in its file.

    `init` and `_` may occur several times.
    """
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found = {}
    for entry in sorted(entries, key=lambda entry: (entry.file, entry.line)):
        seen[_key(entry)] += 1
        found[entry.file, entry.line, entry.function] = seen[_key(entry)]
    return found


def _results(
    analysis: AnalysisView, entries: Sequence[FunctionEntry], ordinals: Mapping[tuple[str, int, str], int], threshold: float
) -> Iterator[dict[str, Any]]:
    for entry in entries:
        ordinal = ordinals[entry.file, entry.line, entry.function]
        name = "\n".join((analysis.project, *_key(entry), str(ordinal)))
        needed = coverage_needed(entry.cyclomatic, threshold)
        rule = _RISKY if needed is None else _COVERABLE
        way = "no coverage is enough: split it" if needed is None else f"{_enough(needed):.1f}% coverage would do"
        known = "not known" if entry.coverage is None else f"{entry.coverage:.1f}%"
        text = f"{entry.function} has a CRAP value of {entry.crap:.2f}, over {threshold:g}"
        yield {
            "ruleId": rule,
            "ruleIndex": _INDEX[rule],
            "level": "warning",
            "message": {"text": f"{text}: complexity {entry.cyclomatic}, coverage {known}; {way}."},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(analysis.project, entry.file), "uriBaseId": _ROOT},
                        "region": {"startLine": max(entry.line, 1), "endLine": max(entry.line, entry.end_line, 1)},
                    },
                    "logicalLocations": [
                        {"name": entry.name, "fullyQualifiedName": f"{entry.package}.{entry.function}", "kind": "function"}
                    ],
                }
            ],
            # 3.27.17: without the line, so that it stays the same where code above is changed.
            "partialFingerprints": {"function/v1": sha256(name.encode()).hexdigest()[:32]},
            "properties": {"crap": entry.crap, "cyclomatic": entry.cyclomatic, "coverage": entry.coverage},
        }


def _enough(percent: float) -> float:
    """Round up to a tenth: slightly less would not do."""
    return math.ceil(percent * 10) / 10


def _packages(analysis: AnalysisView) -> Iterator[dict[str, Any]]:
    for package in analysis.uncovered:
        yield {
            "ruleId": _UNCOVERED,
            "ruleIndex": _INDEX[_UNCOVERED],
            "level": "note",
            "message": {"text": f"No coverage of {package.path} is known: {package.reason}."},
            "locations": [
                {
                    # Code hosts show a result at a file only; the module's is the one that is surely there.
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(analysis.project, "go.mod"), "uriBaseId": _ROOT},
                        "region": {"startLine": 1},
                    },
                    "logicalLocations": [{"fullyQualifiedName": package.path, "kind": "package"}],
                }
            ],
            "partialFingerprints": {"package/v1": sha256(f"{analysis.project}\n{package.path}".encode()).hexdigest()[:32]},
        }


def _uri(project: str, file: str) -> str:
    """A relative reference (RFC 3986, section 4.2), so without a colon."""
    return quote(posixpath.normpath(posixpath.join(project, file)), safe="/~!$&'()*+,;=@")
