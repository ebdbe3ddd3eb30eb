"""The Markdown comment about an analysis, whatever the repository's names are."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gctd.domain.verdict import Rules
from gctd.engines.changes.comparison import compare
from gctd.engines.changes.gate import GateFacts, judge
from gctd.exports.dashboard import Dashboard
from gctd.exports.markdown import Comment, code, plain
from gctd.readmodel.breaks import Break
from gctd.scan.hosts.links import Links, link
from tests.support.tracker.analyses import BEFORE, COMMIT, REPORT, VIEW, analysis


def comment(**more: Any) -> Comment:
    changes = compare(BEFORE, REPORT, threshold=30.0)
    source = Links.of().source(VIEW.repo_url, VIEW.commit_sha, VIEW.project)
    return attrs.evolve(
        Comment(
            after=VIEW,
            entries=REPORT.entries,
            before=analysis(BEFORE),
            changes=changes,
            breaks=[Break("go_version", "go1.26.6", "go1.27.0")],
            link=lambda one: link(source, one.file, one.line),
        ),
        **more,
    )


def test_a_comment_names_the_changes_with_links_to_the_commit() -> None:
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
    changes = compare(BEFORE, REPORT, threshold=30.0)
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=1, changes=changes)
    text = comment(limits=limits, verdict=judge(limits, facts)).markdown()
    assert "❌ CRAP of `svc/api` at `0123456789ab`" in text
    assert "**The gate is not passed: 2 of 4 checks failed.**" in text
    assert "| ✅ | average CRAP value | 50 | 100 |" in text
    assert "| n/a | covered statements, at least | not known | 50 |" in text
    assert "| ❌ | new risky functions (CRAP over 30) | 3 | 0 |" in text


def test_a_comment_about_a_shortened_report_says_that_functions_are_hidden() -> None:
    hidden = "> A report was shortened (--min, --top): a function that is new or gone here may only be hidden."
    assert hidden not in comment().markdown()
    facts = GateFacts(entries=REPORT.entries, exceeded=5, average=50.0, coverage=None, uncovered=1, changes=None)
    limits = Rules(threshold=30.0, max_exceeded=0)
    verdict = judge(limits, facts)
    text = comment(partial=True, limits=limits, verdict=verdict).markdown()
    assert hidden in text
    assert "| n/a | new risky functions (CRAP over 30) | not known | 0 |" in text
    alone = comment(before=None, changes=None, breaks=(), limits=limits, verdict=verdict).markdown()
    assert "| n/a | new risky functions (CRAP over 30) | nothing to compare with | 0 |" in alone
    unmeasured = judge(Rules(threshold=30.0, max_crap=30.0, max_uncovered=0), attrs.evolve(facts, measured=False))
    assert "| n/a | highest CRAP value of a function | not known | 30 |" in comment(limits=limits, verdict=unmeasured).markdown()


def test_a_number_of_risky_functions_has_the_threshold_by_which_it_was_counted() -> None:
    before = analysis(BEFORE, flags=("-short", "--threshold=10"))
    assert "| Risky (CRAP over 30) | 1 (over 10) | 5 |  |" in comment(before=before).markdown()


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
