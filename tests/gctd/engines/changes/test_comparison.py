"""Changes between two reports: functions are matched, named by their change, and sorted with the largest change first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.engines.changes.comparison import Comparison, Status, compare
from gctd.engines.changes.matching import match
from gctd.engines.report import FunctionEntry
from gctd.engines.state import State
from tests.support.tracker.analyses import report

THRESHOLD = 30.0


def entry(
    name: str, crap: float = 5.0, *, file: str = "a/a.go", receiver: str = "", package: str = "a", line: int = 1
) -> FunctionEntry:
    return FunctionEntry(
        file=file,
        package=package,
        function=f"{receiver}.{name}" if receiver else name,
        name=name,
        receiver=receiver,
        line=line,
        end_line=line,
        cyclomatic=2,
        coverage=50.0,
        stmt_coverage=None,
        crap=crap,
        state=State.MEASURED,
    )


entries = st.builds(
    entry,
    st.sampled_from(["Get", "Put", "init", "_", "main"]),
    st.floats(1, 200) | st.sampled_from([29.999, 30.0, 30.001]),
    file=st.sampled_from(["a/a.go", "a/b.go", "c/c.go"]),
    receiver=st.sampled_from(["", "*T"]),
    package=st.sampled_from(["a", "c"]),
    line=st.integers(1, 9),
)
reports = st.lists(entries, max_size=12)

REVERSED = {
    Status.NEW: Status.GONE,
    Status.GONE: Status.NEW,
    Status.WORSE: Status.BETTER,
    Status.BETTER: Status.WORSE,
    Status.FIXED: Status.WORSE,
}


def compared(before: Sequence[FunctionEntry], after: Sequence[FunctionEntry]) -> Comparison:
    return compare(report(*before), report(*after), threshold=THRESHOLD)


@given(reports)
def test_a_report_does_not_differ_from_itself_in_whatever_order_it_is(report: list[FunctionEntry]) -> None:
    found = compared(report, report[::-1])
    assert (found.changes, found.unchanged) == ((), len(report))


@given(reports, reports)
def test_the_other_way_round_new_is_gone_and_worse_is_better(before: list[FunctionEntry], after: list[FunctionEntry]) -> None:
    there, back = (compared(*sides) for sides in ((before, after), (after, before)))
    assert there.unchanged == back.unchanged
    expected = Counter((REVERSED[one.status], one.after, one.before) for one in there.changes)
    really = Counter((Status.BETTER if one.status is Status.FIXED else one.status, one.before, one.after) for one in back.changes)
    assert really == expected


@given(reports, reports)
def test_each_function_of_either_report_is_told_of_once(before: list[FunctionEntry], after: list[FunctionEntry]) -> None:
    pairs = match(before, after)
    assert Counter(one.before for one in pairs if one.before) == Counter(before)
    assert Counter(one.after for one in pairs if one.after) == Counter(after)
    assert all(one.before or one.after for one in pairs)


@given(reports, reports)
def test_the_changes_add_up_and_the_largest_comes_first(before: list[FunctionEntry], after: list[FunctionEntry]) -> None:
    found = compared(before, after)
    counts = found.counts()
    assert sum(counts.values()) == len(match(before, after))
    assert len(after) - len(before) == counts["new"] - counts["gone"]
    total = sum(one.crap for one in after) - sum(one.crap for one in before)
    assert sum(change.delta for change in found.changes) == pytest.approx(total, abs=0.01 * found.unchanged + 1e-6)
    sizes = [abs(change.delta) for change in found.changes]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (5.0, 5.0, None),
        (5.0, 5.009, None),
        (5.0, 5.02, "worse"),
        (5.02, 5.0, "better"),
        (42.0, 31.0, "better"),
        (42.0, 30.0, "fixed"),
        (30.001, 30.0, "fixed"),
        (30.0, 30.001, "worse"),
    ],
)
def test_the_status_of_a_function_after_a_change(before: float, after: float, status: str | None) -> None:
    found = compared([entry("Get", before)], [entry("Get", after)])
    assert [change.status.value for change in found.changes] == ([status] if status else [])


def pairs(before: Sequence[FunctionEntry], after: Sequence[FunctionEntry]) -> set[tuple[str | None, str | None]]:
    def place(one: FunctionEntry | None) -> str | None:
        return f"{one.file}:{one.line}" if one else None

    return {(place(one.before), place(one.after)) for one in match(before, after)}


def test_functions_are_known_by_file_receiver_and_name_wherever_they_stand_in_it() -> None:
    before = [entry("Get", line=3), entry("Get", receiver="*T", line=9), entry("Get", file="b/b.go", package="b", line=1)]
    after = [msgspec.structs.replace(one, line=one.line + 10) for one in before]
    assert pairs(before, after) == {("a/a.go:3", "a/a.go:13"), ("a/a.go:9", "a/a.go:19"), ("b/b.go:1", "b/b.go:11")}


def test_several_of_one_name_go_by_their_order() -> None:
    before = [entry("init", line=line) for line in (30, 10, 20)]
    after = [entry("init", line=line) for line in (25, 15)]
    assert pairs(before, after) == {("a/a.go:10", "a/a.go:15"), ("a/a.go:20", "a/a.go:25"), ("a/a.go:30", None)}


def test_a_function_is_found_where_its_file_moved() -> None:
    renamed = pairs([entry("Get"), entry("init", line=2)], [entry("Get", file="a/z.go"), entry("init", file="a/z.go", line=2)])
    assert renamed == {("a/a.go:1", "a/z.go:1"), ("a/a.go:2", "a/z.go:2")}
    assert pairs([entry("Get")], [entry("Get", file="lib/a/a.go")]) == {("a/a.go:1", "lib/a/a.go:1")}
    assert pairs([entry("Get")], [entry("Get", file="b/a.go", package="b")]) == {("a/a.go:1", None), (None, "b/a.go:1")}


def test_where_it_is_in_doubt_nothing_has_moved() -> None:
    two = [entry("Get", file="x/a.go"), entry("Get", file="y/a.go")]
    assert pairs([entry("Get")], two) == {("a/a.go:1", None), (None, "x/a.go:1"), (None, "y/a.go:1")}
    mains = [entry("main", file=f"cmd/{tool}/main.go", package="main") for tool in "ab"]
    assert pairs(mains[:1], mains[1:]) == {("cmd/a/main.go:1", None), (None, "cmd/b/main.go:1")}
