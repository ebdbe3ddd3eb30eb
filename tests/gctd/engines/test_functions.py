"""One function: its key, its blocks, its structure, the advice, its history. Pure, by examples and by properties."""

from __future__ import annotations

import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.domain.analysis import CommitFacts
from gctd.engines.functions.advice import MOST_STEPS, Advice, advise, parts_of
from gctd.engines.functions.blocks import CountedBlock, agree, blocks_between, blocks_of_file, counts_runs
from gctd.engines.functions.explained import marks_of
from gctd.engines.functions.history import LastChange, changes_of, found_again, last_change
from gctd.engines.functions.keys import find_key, key_among, keys_of
from gctd.engines.functions.sources import KeptFile, SourceDamaged, deflated, inflated
from gctd.engines.functions.structure import branches_of, parents_of
from gctd.engines.golang.complexity import analyse_source
from gctd.engines.score import crap
from tests.gctd.engines.gotool import go


@attrs.frozen(kw_only=True)
class Body:
    digest: str
    tokens: int = 100


@attrs.frozen(kw_only=True)
class Function:
    file: str = "a.go"
    line: int = 1
    name: str = "F"
    receiver: str = ""
    cyclomatic: int = 2
    coverage: float | None = 50.0
    crap: float = 3.0
    state: str = "measured"
    identity: Body | None = Body(digest="1")


def known(function: Function) -> bool:
    return function.state == "measured"


def test_keys_name_directory_receiver_and_name_and_tell_apart_what_go_permits_several_times() -> None:
    functions = [
        Function(file="in/fsm/m.go", receiver="*Machine[K, V]", name="Next"),
        Function(file="m.go", name="Next"),
        Function(file="m_linux.go", name="Open", line=9, state="not_built"),
        Function(file="m_windows.go", name="Open"),
        Function(file="m.go", name="init", line=30),
        Function(file="m.go", name="init", line=3),
        Function(file="n.go", name="init"),
    ]
    keys = ["in:fsm:Machine.Next", "Next", "Open@m_linux.go", "Open@m_windows.go", "init@m.go@2", "init@m.go@1", "init@n.go"]
    assert keys_of(functions) == keys
    for index, key in enumerate(keys):
        named = find_key(functions, key, known=known)
        assert named is not None
        assert (named.index, named.key, key in named.others) == (index, key, False)
        assert key_among(functions[index], functions) == key
    # A key without a file names the function with known coverage; a file that is gone does not make the function unknown.
    for key in ("Open", "Open@gone.go"):
        named = find_key(functions, key, known=known)
        assert named is not None
        assert (named.key, named.others) == ("Open@m_windows.go", ("Open@m_linux.go",))
    assert find_key(functions, "Nex", known=known) is None
    assert find_key(functions, "fsm:Machine.Next", known=known) is None


def test_the_blocks_of_a_file_are_found_in_any_part_of_a_profile_and_merged() -> None:
    lines = "m/a.go:3.5,4.2 2 0\nm/b.go:1.1,2.2 1 1\nm/a.go:1.2,3.4 1 7\nxm/a.go:9.9,9.10 1 1\nm/a.go:3.5,4.2 2 3\nm/a.go:bad\n"
    expected = [CountedBlock(1, 2, 3, 4, 1, 7), CountedBlock(3, 5, 4, 2, 2, 3)]
    for text in (f"mode: count\n{lines}", lines, f"mode: count\n{lines.rstrip()}"):
        assert blocks_of_file(text.encode(), "m/a.go") == expected
    assert blocks_of_file(b"mode: set\n", "m/a.go") == []
    assert [counts_runs(f"mode: {mode}\n".encode()) for mode in ("set", "count", "atomic")] == [False, True, True]
    assert blocks_between(expected, 4, 9) == expected[1:]
    assert (agree(expected, 100.0), agree(expected, 50.0), agree([], 100.0), agree(expected, None)) == (True, False, False, False)


SOURCE = """package p

func Find(x int, names []string) (found string) {
	if x > 10 && len(names) > 0 { // if for case && ||
		return "if { } else"
	} else if x > 5 {
		found = `raw {
 if }`
	} else {
		x++
		if x == 3 {
			return "three"
		}
		x--
	}
	for _, name := range names {
		if name == "{" || name == string('}') {
			found = name
		}
	}
	each := func(y int) int {
		if y > 1 {
			return 2
		}
		return y
	}
	switch x = each(x); {
	case x > 100:
		x = 1
		if x == 7 {
			x = 2
		}
		x = 3
	case x > 50:
		x = 4
	default:
		x = 5
	}
	return found
}
"""
CASE = """package p

import "testing"

func TestFind(t *testing.T) { for _, x := range []int{CALLS} { Find(x, NAMES) } }
"""


def declared(source: bytes) -> Any:
    return analyse_source("p.go", source).declarations[0]


def test_branches_are_the_tokens_that_complexity_counts() -> None:
    function = declared(SOURCE.encode())
    lines = SOURCE.encode().split(b"\n")[function.start[0] - 1 : function.end[0]]
    branches = branches_of(lines, function.start[0])
    assert len(branches) + 1 == function.cyclomatic
    assert [(one.line, one.column, one.token) for one in branches][:3] == [(4, 2, "if"), (4, 12, "&&"), (6, 9, "if")]
    assert branches[-1].token == "case"


@pytest.mark.real
@pytest.mark.parametrize(
    ("calls", "names"),
    [
        ("", "nil"),
        ("11, 101", "nil"),
        ("2, 6", '[]string{"a", "{"}'),
    ],
)
def test_no_block_ran_without_the_block_before_it(tmp_path: Path, calls: str, names: str) -> None:
    """By the profiles of real tests."""
    (tmp_path / "go.mod").write_text("module example.com/p\n\ngo 1.21\n")
    (tmp_path / "p.go").write_text(SOURCE)
    (tmp_path / "p_test.go").write_text(CASE.replace("CALLS", calls).replace("NAMES", names))
    go("test", "-covermode=count", "-coverprofile=c.out", ".", directory=tmp_path)
    blocks = blocks_of_file((tmp_path / "c.out").read_bytes(), "example.com/p/p.go")
    parents = parents_of(blocks, SOURCE.encode().split(b"\n")[2:], 3)
    assert parents[0] is None
    places = [(block.start_line, parents[index]) for index, block in enumerate(blocks)]
    for index, parent in enumerate(parents[1:], 1):
        assert parent is not None
        assert parent < index
        assert blocks[parent].covered or not blocks[index].covered, places
    lines = {
        block.start_line: (None if parent is None else blocks[parent].start_line)
        for block, parent in zip(blocks, parents, strict=True)
    }
    assert (lines[9], lines[14], lines[33], lines[34], lines[39]) == (6, 9, 28, 27, 27), places
    assert parents_of(blocks, (), 3)[1:].count(None) == 0


@given(st.text("{} \n", max_size=200))
def test_a_block_in_braces_runs_after_the_block_around_it(text: str) -> None:
    """A block for each pair of braces, at any depth: the one around it is its parent, else the first block."""
    blocks: list[CountedBlock] = []
    around: list[int | None] = []
    opened: list[int] = []
    line, column = 1, 1
    for sign in text:
        if sign == "{":
            around.append(opened[-1] if opened else 0 if blocks else None)
            opened.append(len(blocks))
            blocks.append(CountedBlock(line, column, 999, 999, 1, 0))
        elif sign == "}" and opened:
            opened.pop()
        line, column = (line + 1, 1) if sign == "\n" else (line, column + 1)
    assert parents_of(blocks, text.encode().split(b"\n"), 1) == around


@st.composite
def functions(draw: st.DrawFn) -> tuple[int, list[CountedBlock], list[int | None]]:
    """Complexity, blocks and parents; a covered block has covered parents."""
    count = draw(st.integers(1, 40))
    parents: list[int | None] = [None]
    covered = [draw(st.booleans())]
    for index in range(1, count):
        parent = draw(st.integers(0, index - 1))
        parents.append(parent)
        covered.append(covered[parent] and draw(st.booleans()))
    blocks = [CountedBlock(line, 1, line, 9, 1, int(ran)) for line, ran in enumerate(covered, 1)]
    return draw(st.integers(1, 60)), blocks, parents


@given(functions(), st.sampled_from([5.0, 8.0, 30.0, 100.0]))
def test_the_steps_of_an_advice_are_enough_and_each_is_needed(
    made: tuple[int, list[CountedBlock], list[int | None]], threshold: float
) -> None:
    cyclomatic, blocks, parents = made
    advice = advise(cyclomatic, blocks, parents, threshold)
    covered = {index for index, block in enumerate(blocks) if block.covered}

    def value() -> float:
        return crap(cyclomatic, len(covered) / len(blocks) * 100)

    if value() <= threshold:
        assert (advice.kind, advice.steps) == ("none", ())
    elif cyclomatic > threshold:
        assert (advice.kind, advice.steps, advice.crap, advice.needed) == ("split", (), cyclomatic, None)
    else:
        assert advice.kind == "cover"
        before = value()
        for step in advice.steps:
            assert before > threshold, "the steps before were enough"
            assert not covered & set(step.blocks)
            assert step.blocks[-1] == step.target
            covered |= set(step.blocks)
            # a block runs only if its parents run
            assert all(parents[index] in {None, *covered} for index in step.blocks)
            assert step.crap == value() < before
            before = step.crap
        assert advice.crap == before
        assert (before <= threshold) == (advice.more == 0)
        assert advice.needed is not None
        assert len(covered) / len(blocks) * 100 >= advice.needed - 1e-6 or advice.more


@given(st.integers(2, 30), st.integers(1, 200), st.integers(0, 200))
def test_blocks_that_need_no_others_are_as_few_as_can_be(cyclomatic: int, count: int, ran: int) -> None:
    blocks = [CountedBlock(line, 1, line, 9, 1, int(line <= ran)) for line in range(1, count + 1)]
    advice = advise(cyclomatic, blocks, [None] * count, 30.0)
    covered = min(ran, count)
    least = next(more for more in range(count - covered + 1) if crap(cyclomatic, (covered + more) / count * 100) <= 30.0)
    assert advice.blocks == least
    assert len(advice.steps) == min(least, MOST_STEPS)


@given(st.integers(1, 200), st.floats(1.0, 200.0))
def test_parts_are_not_risky_without_tests_and_hold_all_branches(cyclomatic: int, threshold: float) -> None:
    parts = parts_of(cyclomatic, threshold)
    if parts is None:
        assert crap(2, 0.0) > threshold
    else:
        largest = -(-(cyclomatic + parts - 1) // parts)
        assert crap(largest, 0.0) <= threshold


def test_advice_for_a_function_that_no_test_calls() -> None:
    """The value 132 of complexity 11 without tests: one chain of four of nine blocks brings it under 30."""
    blocks = [CountedBlock(line, 1, line, 9, 1, 0) for line in range(1, 10)]
    advice = advise(11, blocks, [None, 0, 1, 2, 0, 0, 0, 0, 3], 30.0)
    assert [step.blocks for step in advice.steps] == [(0, 1, 2, 3, 8)]
    assert (advice.kind, advice.parts, round(advice.steps[0].crap, 1)) == ("cover", 3, 21.6)
    assert advise(37, blocks, [None] * 9, 30.0) == Advice(kind="split", needed=None, steps=(), crap=37.0, parts=9)


def test_a_line_is_marked_by_the_code_on_it_not_by_its_braces() -> None:
    lines = [b"func f() {", b"\tif x { return }", b"\ty()", b"}", b"\t// a comment", b'\ts = "//" // more', b""]
    blocks = [CountedBlock(1, 10, 2, 7, 1, 1), CountedBlock(2, 7, 2, 17, 1, 0), CountedBlock(3, 2, 3, 5, 1, 0)]
    blocks += [CountedBlock(5, 1, 6, 20, 1, 1)]
    assert marks_of(blocks, lines, 1) == " ~-  + "
    assert marks_of(blocks, lines[1:3], 2) == "~-"


def test_stored_source_is_checked_against_its_digest() -> None:
    content = b"package p\n" * 1000
    kept = KeptFile(digest=sha256(content).hexdigest(), size=len(content), blob="b")
    assert inflated(deflated(content), kept) == content
    for body in (deflated(content[1:]), b"no zlib", zlib.compress(b"0" * (8 << 20))):
        with pytest.raises(SourceDamaged):
            inflated(body, kept)


def test_a_function_is_found_again_by_its_key_then_by_its_unique_content() -> None:
    entry = Function(file="a/a.go", name="F", identity=Body(digest="x"))
    other_file = attrs.evolve(entry, file="a/b.go")
    renamed = attrs.evolve(entry, name="G")
    assert found_again(entry, [renamed, other_file, entry]) is entry
    assert found_again(entry, [renamed, other_file]) is other_file
    assert found_again(entry, [renamed]) is renamed
    assert found_again(entry, [renamed, attrs.evolve(renamed, name="H")]) is None
    small = attrs.evolve(entry, identity=Body(digest="x", tokens=5))
    assert found_again(small, [attrs.evolve(small, name="G")]) is None
    assert changes_of(entry, None) == ("added",)
    assert changes_of(entry, attrs.evolve(renamed, coverage=1.0)) == ("moved", "coverage")
    assert changes_of(entry, attrs.evolve(entry, identity=Body(digest="y"))) == ("code",)


FACTS = CommitFacts(author="A", at="2026-11-20T12:00:00Z", subject="s", parents=("c2",))


def test_the_commit_of_a_change_is_named_only_if_its_parent_was_analysed() -> None:
    new, old = Function(identity=Body(digest="2")), Function(identity=Body(digest="1"))
    untold = Function(identity=None)
    assert last_change([("c3", new), ("c2", old)], FACTS) == LastChange(kind="commit", before="c2", after="c3", facts=FACTS)
    assert last_change([("c3", new), ("c1", old)], FACTS) == LastChange(kind="between", before="c1", after="c3")
    assert last_change([("c3", new), ("c2", old)], None) == LastChange(kind="between", before="c2", after="c3")
    assert last_change([("c3", new), ("c2", None)], FACTS) == LastChange(
        kind="commit", added=True, before="c2", after="c3", facts=FACTS
    )
    assert last_change([("c3", new), ("c2", new)], FACTS) == LastChange(kind="unchanged", before="c2")
    for points in ([("c3", untold)], [("c3", new), ("c2", untold)], [("c3", untold), ("c2", new)]):
        assert last_change(points, FACTS).kind == "unknown"
