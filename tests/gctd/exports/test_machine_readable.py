"""SARIF and CSV of an analysis keep to their standards, whatever the repository's names are."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from gctd.domain.options import CrapOptions
from gctd.engines.report import Report
from gctd.engines.score import shortened
from gctd.exports.functions import functions_csv
from gctd.exports.sarif import sarif
from gctd.readmodel.views import AnalysisView
from tests.support.tracker.analyses import COMMIT, REPORT, VIEW, analysis, entry, report


def sarif_of(view: AnalysisView, of: Report) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sarif(view, of, version="1.2.3"))
    # Made from the standard's own JSON schema; members that it does not name are refused.
    Sarif.model_validate({name: value for name, value in document.items() if name != "$schema"})
    return document


def test_sarif_keeps_to_the_schema_and_declares_every_rule() -> None:
    document = sarif_of(VIEW, REPORT)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert {rule["defaultConfiguration"]["level"] for rule in rules} <= {"warning", "note"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for note in run["invocations"][0]["toolExecutionNotifications"]:
        assert rules[note["associatedRule"]["index"]]["id"] == note["associatedRule"]["id"]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in rules} - {"analysis/left-out"}


def test_sarif_names_the_place_of_each_function_and_the_remedy() -> None:
    (run,) = sarif_of(VIEW, REPORT)["runs"]
    texts = {result["message"]["text"]: result["locations"][0]["physicalLocation"] for result in run["results"]}
    assert texts["Huge has a CRAP value of 40.00, over 30: complexity 40, coverage 100.0%; no coverage is enough: split it."] == {
        "artifactLocation": {"uri": "svc/api/lib/a.go", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 50, "endLine": 59},
    }
    put = "Store.Put has a CRAP value of 90.00, over 30: complexity 9, coverage 0.0%; 36.3% coverage would do."
    assert texts[put]["region"] == {"startLine": 3, "endLine": 12}
    assert not any(text.startswith("Fine") for text in texts)
    unknown = next(place for text, place in texts.items() if text.startswith("Unknown"))
    assert unknown["artifactLocation"]["uri"] == "svc/api/a%20b/%C3%BC%3A%25%7C%60.go"
    assert "No coverage of example.com/shop/x is known: build failed: undefined: y." in texts
    assert run["automationDetails"]["id"] == "gctd/svc/api/"
    assert run["versionControlProvenance"][0]["revisionId"] == COMMIT


def test_sarif_counts_the_results_that_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A code host takes a result that is missing for one that is fixed."""

    def notes(of: Report) -> list[str]:
        (run,) = sarif_of(VIEW, of)["runs"]
        return [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]

    whole = notes(REPORT)
    short = "the report was shortened (--min, --top): {} functions are not in it, {} of them over 30"
    assert short.format(4, 3) in notes(shortened(REPORT, CrapOptions(top=2)))
    assert short.format(1, 0) in notes(shortened(REPORT, CrapOptions(least=5)))
    monkeypatch.setattr("gctd.exports.sarif.MOST", 5)
    assert notes(REPORT) == [*whole, "1 more packages without coverage"]
    monkeypatch.setattr("gctd.exports.sarif.MOST", 4)
    assert notes(REPORT) == [*whole, "1 more functions are over 30", "1 more packages without coverage"]


def test_a_fingerprint_is_the_function_s_own_and_outlives_a_move_within_the_file() -> None:
    def fingerprints(of: Report, **more: Any) -> list[str]:
        (run,) = sarif_of(analysis(of, **more), of)["runs"]
        return [next(iter(result["partialFingerprints"].values())) for result in run["results"]]

    one = fingerprints(REPORT)
    assert len(set(one)) == len(one) == 5
    moved = report(*(msgspec.structs.replace(each, line=each.line + 7, end_line=each.end_line + 7) for each in REPORT.entries))
    assert sorted(fingerprints(moved)) == sorted(one)
    assert not set(fingerprints(REPORT, project="other")) & set(one)


def test_csv_has_a_line_for_each_function_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(functions_csv((*REPORT.entries, entry(file="=cmd.go")), 30.0).decode())))
    assert len(rows) == 7
    first = rows[0]
    assert {name: first[name] for name in ("file", "line", "function", "crap", "coverage", "exceeded", "coverage_needed")} == {
        "file": "a b/ü:%|`.go",
        "line": "3",
        "function": "Unknown",
        "crap": "90.0",
        "coverage": "",
        "exceeded": "true",
        "coverage_needed": first["coverage_needed"],
    }
    assert float(first["coverage_needed"]) == pytest.approx(36.25, abs=0.02)
    assert next(row["coverage_needed"] for row in rows if row["function"] == "Huge") == ""
    assert rows[-1]["file"] == "./=cmd.go"
