"""Exports of an analysis: each is what its standard says, whatever the repository's names are."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from gctd.domain.analysis import Metadata, PackageProblem, Summary
from gctd.domain.verdict import Result, Rules
from gctd.engines.changes.comparison import compare
from gctd.engines.changes.gate import CheckName, GateFacts, judge
from gctd.engines.report import Counts, FunctionEntry, Report, ReportWarning
from gctd.engines.score import crap, summarize, worst_first
from gctd.engines.state import State
from gctd.exports.badge import BAD, FAIR, GOOD, NEUTRAL, PLAIN, POOR, Badge, BadgeFigures, Metric, badge, grade
from gctd.exports.coverage import statements_covered
from gctd.exports.dashboard import Dashboard
from gctd.exports.functions import functions_csv
from gctd.exports.markdown import Comment, code, plain
from gctd.exports.sarif import sarif
from gctd.readmodel.views import AnalysisView
from gctd.scan.hosts.links import Links, link

SVG = "{http://www.w3.org/2000/svg}"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def entry(
    name: str = "Parse",
    cyclomatic: int = 9,
    coverage: float | None = 0.0,
    *,
    file: str = "lib/a.go",
    line: int = 3,
    state: State | None = None,
) -> FunctionEntry:
    receiver, _, bare = name.rpartition(".")
    return FunctionEntry(
        file=file,
        package="lib",
        function=name,
        name=bare,
        receiver=receiver,
        line=line,
        end_line=line + 9,
        cyclomatic=cyclomatic,
        coverage=coverage,
        stmt_coverage=coverage,
        crap=crap(cyclomatic, coverage or 0.0),
        state=State.MEASURED if state is None else state,
    )


def report(*entries: FunctionEntry, warnings: tuple[ReportWarning, ...] = ()) -> Report:
    return Report(
        engine="native",
        engine_version="1",
        crap_version="v0.5.1",
        summary=summarize([one.crap for one in entries], 30.0),
        entries=worst_first(entries),
        counts=Counts(files=1, files_skipped=0, covered_functions=1, differing=0),
        warnings=warnings,
    )


def analysis(of: Report, **more: Any) -> AnalysisView:
    summary = of.summary
    return AnalysisView(
        **{
            "analysis_id": "a" * 32,
            "task_id": "task-17",
            "repo_id": "b" * 32,
            "repo_url": "https://github.com/example/shop",
            "project": "svc/api",
            "ref": "main",
            "commit_sha": COMMIT,
            "summary": Summary(
                average=summary.average,
                combined=summary.combined,
                exceeded=summary.exceeded,
                total_funcs=summary.total_funcs,
            ),
            "engine": "native",
            "engine_version": "1.1.0",
            "crap_version": "v0.5.1",
            "go_version": "go1.26.6",
            "flags": ("-short",),
            "report_digest": "c" * 64,
            "report_size": 1,
            "profile_digest": None,
            "profile_path": None,
            "metadata": Metadata(),
            "uncovered": (),
            "analyzed_at": "2026-11-20T12:00:00Z",
            "duration_ms": 1,
            "sequence": 9,
            "rescored_from": None,
            "measured": 9,
            "sandbox": "none",
            "known": None,
            "states": None,
            "platform": "linux/amd64",
            "source": "tests",
            "baseline": False,
            "sources_digest": None,
            "store_source": "always",
            **more,
        }
    )


REPORT = report(
    entry("Store.Put", 9, 0.0),
    entry("Huge", 40, 100.0, line=50),
    entry("Fine", 2, 100.0, line=100),
    entry("init", 8, 0.0, line=200),
    entry("init", 8, 0.0, line=300),
    entry("Unknown", 9, None, file="a b/ü:%|`.go"),
    warnings=(ReportWarning(kind="syntax", path="bad.go", reason="line 3: not Go"),),
)
VIEW = analysis(REPORT, uncovered=(PackageProblem(path="example.com/shop/x", reason="build failed: undefined: y"),))


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


def test_sarif_says_where_each_function_is_and_what_would_help() -> None:
    (run,) = sarif_of(VIEW, REPORT)["runs"]
    texts = {result["message"]["text"]: result["locations"][0]["physicalLocation"] for result in run["results"]}
    assert texts["Huge has a CRAP value of 40.00, over 30: complexity 40, coverage 100.0%; no coverage is enough: split it."] == {
        "artifactLocation": {"uri": "svc/api/lib/a.go", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 50, "endLine": 59},
    }
    put = "Store.Put has a CRAP value of 90.00, over 30: complexity 9, coverage 0.0%; 36.2% coverage would do."
    assert texts[put]["region"] == {"startLine": 3, "endLine": 12}
    assert not any(text.startswith("Fine") for text in texts)
    unknown = next(place for text, place in texts.items() if text.startswith("Unknown"))
    assert unknown["artifactLocation"]["uri"] == "svc/api/a%20b/%C3%BC%3A%25%7C%60.go"
    assert "No coverage of example.com/shop/x is known: build failed: undefined: y." in texts
    assert run["automationDetails"]["id"] == "gctd/svc/api/"
    assert run["versionControlProvenance"][0]["revisionId"] == COMMIT


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


# Markdown

BEFORE = report(entry("Store.Put", 9, 50.0), entry("Huge", 40, 100.0, line=50), entry("Gone", 2, 100.0))


def comment(**more: Any) -> Comment:
    changes = compare(BEFORE.entries, REPORT.entries, threshold=30.0)
    source = Links.of().source(VIEW.repo_url, VIEW.commit_sha, VIEW.project)
    return attrs.evolve(
        Comment(
            after=VIEW,
            entries=REPORT.entries,
            before=analysis(BEFORE),
            changes=changes,
            breaks=[("go_version", "go1.26.6", "go1.27.0")],
            link=lambda one: link(source, one.file, one.line),
        ),
        **more,
    )


def test_a_comment_says_what_changed_with_links_to_the_commit() -> None:
    text = comment().markdown()
    assert text.startswith(f"<!-- gctd {VIEW.analysis_id} -->\n")
    assert "| Risky (CRAP over 30) | 0 | 5 | +5 |" not in text
    assert "| Risky (CRAP over 30) | 1 | 5 | +4 |" in text
    put = f"`Store.Put` [`lib/a.go:3`](https://github.com/example/shop/blob/{COMMIT}/svc/api/lib/a.go#L3)"
    assert f"| worse | {put} | 19.12 | 90.00 | +70.88 |" in text
    assert "| gone | `Gone` `lib/a.go:3` | 2.00 |  | -2.00 |" in text
    assert "4 new, 1 worse, 1 gone; 1 unchanged" in text
    assert "Measured differently: go_version `go1.26.6` → `go1.27.0`" in text
    assert "1 packages without coverage" in text
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert html.count("<table>") == 4
    assert "<code>a b/ü:%|`.go:3</code>" in html


def test_a_comment_has_the_verdict_of_the_gate() -> None:
    limits = Rules(threshold=30.0, max_average=100.0, min_coverage=50.0)
    changes = compare(BEFORE.entries, REPORT.entries, threshold=30.0)
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=1, changes=changes)
    text = comment(limits=limits, verdict=judge(limits, facts)).markdown()
    assert "❌ CRAP of `svc/api` at `0123456789ab`" in text
    assert "**The gate is not passed: 2 of 4 checks failed.**" in text
    assert "| ✅ | average CRAP value | 50 | 100 |" in text
    assert "| n/a | covered statements, at least | not known | 50 |" in text
    assert "| ❌ | new risky functions (CRAP over 30) | 3 | 0 |" in text


def test_a_comment_links_to_the_comparison_on_the_dashboard() -> None:
    before = attrs.evolve(analysis(BEFORE), task_id="task-1")
    page = Dashboard.at("https://gctd.test/").analysis(VIEW, before, "release/1.x")
    assert page == f"https://gctd.test/analyses/{VIEW.analysis_id}/compare/task-1...{VIEW.task_id}?base=release%2F1.x"
    assert f"]({page})" in comment(page=page).markdown()
    assert (
        Dashboard.at("https://gctd.test").analysis(VIEW, None)
        == f"https://gctd.test/analyses/{VIEW.analysis_id}?task={VIEW.task_id}"
    )
    assert Dashboard.at(None).analysis(VIEW, before) == "", "an unknown address gives no link"
    assert "/compare/" not in comment().markdown()


def test_a_comment_without_an_analysis_before_says_so() -> None:
    text = comment(before=None, changes=None, breaks=()).markdown()
    assert "no analysis of another commit" in text
    assert "| Risky (CRAP over 30) | 5 |" in text


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_name_breaks_out_of_its_place_in_a_comment(text: str) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(f"| a | b |\n| --- | --- |\n| {code(text)} | {plain(text)} |")
    root = ET.fromstring(html)
    cells = list(root.iter("td"))
    assert len(cells) == 2
    assert [child.tag for child in cells[0]] == ["code"]
    assert list(cells[1]) == []


# The gate

CHANGES = compare(BEFORE.entries, REPORT.entries, threshold=30.0)


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        ({"max_new": 3, "max_worse": 1}, set()),
        ({}, {"max_new", "max_worse"}),
        ({"max_new": 2, "max_worse": 1}, {"max_new"}),
        ({"max_new": None, "max_worse": None, "max_crap": 90.0}, set()),
        ({"max_new": None, "max_worse": None, "max_crap": 89.9}, {"max_crap"}),
        ({"max_new": None, "max_worse": None, "max_exceeded": 5, "max_average": 50.0, "max_uncovered": 1}, set()),
        ({"max_new": None, "max_worse": None, "max_exceeded": 4}, {"max_exceeded"}),
        ({"max_new": None, "max_worse": None, "max_average": 49.9}, {"max_average"}),
        ({"max_new": None, "max_worse": None, "max_uncovered": 0}, {"max_uncovered"}),
        ({"max_new": None, "max_worse": None, "min_coverage": 61.0}, {"min_coverage"}),
        ({"max_new": None, "max_worse": None, "min_coverage": 60.0}, set()),
    ],
)
def test_each_limit_of_the_gate_is_kept_at_its_bound_and_broken_behind_it(limits: dict[str, Any], failed: set[str]) -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=60.0, uncovered=1, changes=CHANGES)
    verdict = judge(Rules(threshold=30.0, **limits), facts)
    assert {check.name for check in verdict.checks if not check.passed} == failed
    assert verdict.passed == (not failed)


def test_the_gate_names_the_functions_behind_a_failure_the_worst_first() -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=0, changes=CHANGES)
    verdict = judge(Rules(threshold=30.0, max_crap=80.0), facts)
    assert [(one.after.function, one.before is None, one.checks) for one in verdict.offenders] == [
        ("Unknown", True, (CheckName.MAX_CRAP, CheckName.MAX_NEW)),
        ("Store.Put", False, (CheckName.MAX_CRAP, CheckName.MAX_WORSE)),
        ("init", True, (CheckName.MAX_NEW,)),
        ("init", True, (CheckName.MAX_NEW,)),
    ]


def test_only_risky_functions_count_as_worse_where_that_is_asked_for() -> None:
    old, new = report(entry("A", 3, 100.0), entry("B", 6, 100.0)), report(entry("A", 4, 100.0), entry("B", 6, 0.0))
    facts = GateFacts(
        entries=new.entries,
        exceeded=1,
        average=1,
        coverage=None,
        uncovered=0,
        changes=compare(old.entries, new.entries, threshold=30.0),
    )

    def worse(**limits: Any) -> list[str]:
        return [one.after.function for one in judge(Rules(threshold=30.0, **limits), facts).offenders]

    assert worse() == ["B", "A"]
    assert worse(worse="risky") == ["B"]


def test_without_an_analysis_before_nothing_is_new() -> None:
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=0, changes=None)
    verdict = judge(Rules(threshold=30.0), facts)
    assert (verdict.result, [check.passed for check in verdict.checks]) == (Result.UNKNOWN, [None, None])


# Badges

SUMMARY = Summary(average=7.25, combined=1450.0, exceeded=3, total_funcs=200)
FIGURES = BadgeFigures(summary=SUMMARY, threshold=30.0, coverage=81.999)


@pytest.mark.parametrize(
    ("metric", "label", "value", "colour"),
    [
        (Metric.AVERAGE, "CRAP average", "7.2", FAIR),
        (Metric.TOTAL, "CRAP total", "1,450", PLAIN),
        (Metric.EXCEEDED, "CRAP over 30", "3", FAIR),
        (Metric.FUNCTIONS, "functions", "200", PLAIN),
        (Metric.COVERAGE, "coverage", "81.9%", GOOD),
        (Metric.GRADE, "CRAP grade", "C", FAIR),
    ],
)
def test_a_badge_shows_its_figure_and_says_it(metric: Metric, label: str, value: str, colour: str) -> None:
    made = badge(metric, FIGURES)
    assert made == Badge(label, value, colour)
    root = ET.fromstring(made.svg())
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == f"{label}: {value}"
    assert [text.text for text in root.iter(f"{SVG}text")] == [label, value]
    assert badge(metric, None) == Badge(label, "unknown", NEUTRAL)


def test_what_is_not_known_or_not_whole_is_said() -> None:
    assert badge(Metric.COVERAGE, attrs.evolve(FIGURES, coverage=None)).value == "unknown"
    assert badge(Metric.COVERAGE, attrs.evolve(FIGURES, partial=True)) == Badge("coverage", "81.9% partial", POOR)
    empty = attrs.evolve(FIGURES, summary=Summary(average=0.0, combined=0.0, exceeded=0, total_funcs=0))
    assert badge(Metric.GRADE, empty).value == "unknown"


@pytest.mark.parametrize(("exceeded", "letter"), [(0, "A"), (1, "B"), (10, "B"), (25, "C"), (50, "D"), (51, "E"), (101, "F")])
def test_the_grade_goes_by_the_share_of_risky_functions(exceeded: int, letter: str) -> None:
    assert grade(attrs.evolve(SUMMARY, exceeded=exceeded, total_funcs=1000)) == letter


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_no_label_breaks_out_of_the_picture(label: str) -> None:
    root = ET.fromstring(badge(Metric.AVERAGE, FIGURES, label).svg())
    assert root.findtext(f"{SVG}title") == f"{label}: 7.2"
    assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("colour", [GOOD, FAIR, POOR, BAD, PLAIN, NEUTRAL])
def test_white_text_can_be_read_on_each_colour(colour: str) -> None:
    def linear(part: str) -> float:
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[at : at + 2]) for at in (1, 3, 5))
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5


# The inputs of exports


def test_coverage_is_that_of_all_statements_once_each() -> None:
    profile = b"mode: set\na/a.go:1.1,2.2 3 1\na/a.go:3.1,4.2 1 0\na/a.go:3.1,4.2 1 1\na/b.go:1.1,2.2 4 0\n"
    assert statements_covered(profile) == 50.0
    assert statements_covered(b"mode: set\n") is None


@pytest.mark.parametrize(
    ("repo", "project", "address"),
    [
        ("https://github.com/a/b", ".", "https://github.com/a/b/blob/C/x/y%20z.go#L7"),
        ("https://gitlab.com/a/b/c", "svc", "https://gitlab.com/a/b/c/-/blob/C/svc/x/y%20z.go#L7"),
        ("ssh://git@codeberg.org/a/b", ".", "https://codeberg.org/a/b/src/commit/C/x/y%20z.go#L7"),
        ("https://bitbucket.org/a/b", ".", "https://bitbucket.org/a/b/src/C/x/y%20z.go#lines-7"),
        ("https://code.example:8443/a/b", "{line}", "https://code.example:8443/a/b/blob/C/%7Bline%7D/x/y%20z.go#L7"),
        ("https://elsewhere.example/a/b", ".", None),
        ("file:///srv/b", ".", None),
    ],
)
def test_a_link_leads_to_the_line_at_the_commit(repo: str, project: str, address: str | None) -> None:
    links = Links.of(["code.example:8443=github@https://code.example:8443/api/v3"])
    assert link(links.source(repo, "C", project), "x/y z.go", 7) == address
