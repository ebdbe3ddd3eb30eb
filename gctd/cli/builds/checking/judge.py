"""The gate's judgement of a measured project, against a measured base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gctd.cli.builds.checking.measure import MeasuredProject
from gctd.cli.builds.checking.working_copy import NotAWorkingCopy
from gctd.control.comparing.judging import verdict_on
from gctd.control.comparing.pairs import AnalysisPair
from gctd.domain.verdict import Rules
from gctd.engines.changes.gate import GateVerdict, Offender, Unmeasured
from gctd.exports.coverage import StatementCoverage
from gctd.exports.markdown import Comment, says
from gctd.exports.sarif import sarif

SCHEMA = "gctd.check/1"


@attrs.frozen(kw_only=True)
class ProjectJudgement:
    """The judgement of a project. `base` describes the compared commit."""

    rules: Rules
    after: MeasuredProject
    pair: AnalysisPair
    base: str
    verdict: GateVerdict

    def comment(self) -> str:
        """Return the judgement as a comment for a pull request."""
        return Comment(
            after=self.after.analysis,
            entries=self.after.report.entries,
            before=self.pair.before,
            changes=self.pair.changes,
            breaks=self.pair.breaks,
            partial=self.pair.partial,
            limits=self.rules,
            verdict=self.verdict,
        ).markdown()

    def sarif_document(self) -> Mapping[str, Any]:
        """Return the risky functions as a SARIF document."""
        found: Mapping[str, Any] = msgspec.json.decode(sarif(self.after.analysis, self.after.report, version=version("gctd")))
        return found

    def document(self) -> Mapping[str, object]:
        """Return the judgement with its measurement, which serves as a baseline later."""
        return {
            "project": self.after.analysis.project,
            "result": self.verdict.result.value,
            "reason": self.verdict.reason,
            "base": self.base,
            "checks": [
                {
                    "name": check.name.value,
                    "text": says(check, self.rules),
                    "passed": check.passed,
                    "limit": check.limit,
                    "value": check.value,
                }
                for check in self.verdict.checks
            ],
            "functions": [_judged_function(one) for one in self.verdict.offenders],
            "worsened": [_judged_function(one) for one in self.verdict.worsened],
            "unmeasured": [{**_judged_function(one), "reason": one.reason} for one in self.verdict.unmeasured],
            "excluded": [
                {"file": one.entry.file, "line": one.entry.line, "function": one.entry.function, "reason": one.reason}
                for one in self.verdict.excluded
            ],
            "fixed": [
                {
                    "file": one.entry.file,
                    "line": one.entry.line,
                    "function": one.entry.function,
                    "before": one.before.crap if one.before else None,
                    "crap": one.entry.crap,
                }
                for one in self.verdict.fixed
            ],
            **msgspec.to_builtins(self.after),
        }


def _judged_function(one: Offender | Unmeasured) -> Mapping[str, object]:
    """Return a function with the checks that failed for it, or that are unknown because of it. Values need known coverage."""
    before, after = one.before, one.after
    return {
        "file": after.file,
        "line": after.line,
        "function": after.function,
        "before": before.crap if before is not None and before.state.known else None,
        "crap": after.crap if after.state.known else None,
        "checks": [name.value for name in one.checks],
    }


def judged(
    rules: Rules, after: MeasuredProject, before: MeasuredProject | None, *, base: str, missing: str = ""
) -> ProjectJudgement:
    """Judge a project by the rules of the gate. `missing` is the reason if there is no base."""
    older = None if before is None else (before.analysis, before.report)
    pair = AnalysisPair.of(after.analysis, after.report, older, rules.threshold)
    coverage = StatementCoverage(percent=after.coverage, complete=after.coverage_complete)
    verdict = verdict_on(pair, rules, coverage)
    if rules.compares and before is None:
        verdict = verdict.unknown(missing)
    return ProjectJudgement(rules=rules, after=after, pair=pair, base=base, verdict=verdict)


def stored(file: Path) -> Mapping[str, MeasuredProject]:
    """Return the projects of a file that `gctd check --output FILE.json` wrote, by name. Raises NotAWorkingCopy."""
    try:
        content = msgspec.json.decode(file.read_bytes())
        if content["schema"] != SCHEMA:
            raise NotAWorkingCopy(f"{file} has the form {content['schema']!r}, and {SCHEMA!r} is needed")
        return {one["project"]: msgspec.convert(one, type=MeasuredProject) for one in content["projects"]}
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError) as error:
        raise NotAWorkingCopy(f"{file} is not a report of `gctd check --output FILE.json`: {error}") from error


def written(found: Sequence[ProjectJudgement]) -> bytes:
    """Return the document of a run."""
    return msgspec.json.encode({"schema": SCHEMA, "projects": [one.document() for one in found]}) + b"\n"


def combined_sarif(found: Sequence[ProjectJudgement]) -> bytes:
    """Return one SARIF file with a run for each project."""
    documents = [one.sarif_document() for one in found]
    return msgspec.json.encode({**documents[0], "runs": [run for one in documents for run in one["runs"]]}) + b"\n"
