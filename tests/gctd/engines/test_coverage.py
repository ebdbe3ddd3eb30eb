"""Attribution of blocks, held against the rules written out the slow way."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gctd.engines import coverage
from gctd.engines.coverage import Coverage
from gctd.engines.gocrap.coverage import GocrapCoverage, owners_of_lines
from gctd.engines.golang.complexity import Declaration, Printed
from gctd.engines.golang.profile import Block, parse_profile
from gctd.engines.golang.receivers import Receiver

Place = tuple[int, int]

places = st.tuples(st.integers(1, 12), st.integers(1, 6))


def block(start: Place, end: Place, statements: int, *, covered: bool) -> Block:
    return Block(*start, end[0], end[1], statements, covered, covered)


blocks = st.lists(st.builds(block, places, places, st.integers(0, 3), covered=st.booleans()), max_size=15).map(sorted)
spans = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)).map(lambda span: (span[0], span[0] + span[1])), max_size=3)


def declaration(start: Place, end: Place, name: str = "F", printed: Printed | None = None) -> Declaration:
    return Declaration(name, None, 1, start, end, opens=start[0], closes=end[0], printed=printed)


@st.composite
def file_of_declarations(draw: st.DrawFn) -> list[Declaration]:
    """Draw declarations that do not overlap, in order, each under a different name."""
    edges = sorted(draw(st.lists(places, unique=True, max_size=10)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    return [declaration(start, end, f"F{index}") for index, (start, end) in enumerate(pairs)]


@given(file_of_declarations(), blocks)
def test_a_block_counts_for_every_declaration_that_it_overlaps(declarations: list[Declaration], found: list[Block]) -> None:
    def overlaps(block: Block, own: Declaration) -> bool:
        starts_after = (block.start_line, block.start_col) >= own.end
        ends_before = (block.end_line, block.end_col) <= own.start
        return not starts_after and not ends_before

    expected = [coverage.count(block for block in found if overlaps(block, own)) for own in declarations]
    assert coverage.attribute(declarations, found) == expected


@given(blocks)
def test_counts_and_percentages(found: list[Block]) -> None:
    counted = coverage.count(found)
    ran = [block for block in found if block.covered]
    assert counted == Coverage(len(found), len(ran), sum(b.statements for b in found), sum(b.statements for b in ran))
    assert counted.percent == (len(ran) / len(found) * 100 if found else None)
    assert counted.statement_percent is None if counted.percent is None else 0 <= (counted.statement_percent or 0) <= 100


@given(st.lists(spans, max_size=5), blocks)
def test_a_printed_line_that_one_declaration_has_is_its_own(all_spans: list[list[tuple[int, int]]], found: list[Block]) -> None:
    candidates = [declaration((1, 1), (2, 1), printed=Printed("f.y", 1, 1, 1, 1, tuple(own))) for own in all_spans]

    def claimants(line: int) -> list[int]:
        return [index for index, own in enumerate(all_spans) if any(first <= line <= last for first, last in own)]

    found = [msgspec.structs.replace(block, start_col=0) for block in found]
    counted, left_out = coverage.attribute_printed(candidates, found)
    for index, own in enumerate(counted):
        doubtful = any(len(claims) > 1 and index in claims for claims in (claimants(block.start_line) for block in found))
        sure = coverage.count(block for block in found if claimants(block.start_line) == [index])
        assert own == msgspec.structs.replace(sure, doubtful=doubtful)
    assert left_out == sum(len(claimants(block.start_line)) != 1 for block in found)


@given(st.lists(file_of_declarations(), max_size=3), blocks)
def test_a_place_that_one_declaration_has_is_its_own_where_the_profile_has_physical_ones(
    files: list[list[Declaration]], found: list[Block]
) -> None:
    far_off = Printed("f.y", 1000, 1000, 1000, 1000, ((1000, 1000),))
    candidates = [msgspec.structs.replace(own, printed=far_off) for declarations in files for own in declarations]

    def claimants(block: Block) -> list[int]:
        place = block.start_line, block.start_col
        return [index for index, own in enumerate(candidates) if own.start <= place < own.end]

    counted, left_out = coverage.attribute_printed(candidates, found)
    for index, own in enumerate(counted):
        doubtful = any(len(claims) > 1 and index in claims for claims in map(claimants, found))
        assert own == msgspec.structs.replace(
            coverage.count(block for block in found if claimants(block) == [index]), doubtful=doubtful
        )
    assert left_out == sum(len(claimants(block)) != 1 for block in found)


bodies = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 6)), max_size=8)


@given(bodies, st.lists(st.integers(0, 16), unique=True).map(sorted))
def test_go_crap_takes_the_body_that_opens_last_and_of_those_the_first(found: Sequence[Place], lines: list[int]) -> None:
    declarations = [declaration((opens, 1), (opens + length, 1), name=f"F{index}") for index, (opens, length) in enumerate(found)]
    expected = []
    for line in lines:
        inside = [index for index, own in enumerate(declarations) if own.opens <= line <= own.closes]
        last = max((declarations[index].opens for index in inside), default=0)
        expected.append(next((index for index in inside if declarations[index].opens == last), None))
    assert list(owners_of_lines(declarations, lines)) == expected


receivers = st.sampled_from([None, Receiver("A", "A"), Receiver("*B", "*B"), Receiver("T[K]", "T[K]")])


@given(bodies, st.lists(st.tuples(st.sampled_from("FG"), receivers), min_size=8, max_size=8), blocks)
def test_go_crap_files_blocks_under_the_first_type_and_looks_them_up_under_the_first_declaration(
    found: Sequence[Place], named: Sequence[tuple[str, Receiver | None]], covered: list[Block]
) -> None:
    declarations = [
        Declaration(name, receiver, 1, (opens, 1), (opens + length, 9), opens, opens + length)
        for (opens, length), (name, receiver) in zip(found, named, strict=False)
    ]
    merged: dict[tuple[int, int], bool] = {}
    for block in covered:
        lines = block.start_line, block.end_line
        merged[lines] = merged.get(lines, False) or block.counted
    expected = {}
    for name in {own.name for own in declarations}:
        namesakes = [index for index, own in enumerate(declarations) if own.name == name]
        keys = [own.receiver.coverage_key if own.receiver else "" for own in declarations if own.name == name]
        filed_under = next((key for key in keys if key), "")
        of_name = [
            ran
            for (line, _), ran in merged.items()
            if next(iter(owners_of_lines(declarations, [line]))) in namesakes and filed_under == keys[0]
        ]
        expected[name] = sum(of_name) / len(of_name) * 100 if of_name else 0.0
    lines_of_profile = "".join(
        f"m/f.go:{b.start_line}.{b.start_col},{b.end_line}.{b.end_col} {b.statements} {b.counted:d}\n" for b in covered
    )
    profile = parse_profile(io.BytesIO(lines_of_profile.encode()), max_bytes=1 << 20, max_blocks=1 << 20)
    index = GocrapCoverage(profile, "/m", "m", lambda _: declarations)
    got = index.of("/m/f.go")
    assert {name: own.percent for name, own in got.items()} == (expected if covered else {})
