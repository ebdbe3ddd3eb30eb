"""Cover profiles: reading, merging, counting and refusals."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.engines.golang.profile import Block, CoverProfile, ProfileTooLarge, parse_profile, read_profile


def parse(text: str | bytes, *, max_bytes: int = 1 << 30, max_blocks: int = 1_000_000) -> CoverProfile:
    raw = text.encode() if isinstance(text, str) else text
    return parse_profile(io.BytesIO(raw), max_bytes=max_bytes, max_blocks=max_blocks)


def test_blocks_have_places_statements_and_whether_they_ran() -> None:
    profile = parse("mode: atomic\nm/b.go:3.5,4.2 2 7\nm/a.go:9.1,9.8 0 0\nm/b.go:1.2,3.4 1 0\n")
    assert profile.mode == "atomic"
    assert profile.paths() == ["m/a.go", "m/b.go"]
    assert profile.blocks_of("m/b.go") == [
        Block(1, 2, 3, 4, 1, covered=False, counted=False),
        Block(3, 5, 4, 2, 2, covered=True, counted=True),
    ]
    assert profile.blocks_of("m/c.go") == []
    assert "m/a.go" in profile
    assert "m/c.go" not in profile
    assert (profile.blocks, profile.malformed) == (3, 0)


@pytest.mark.parametrize("mode", ["set", "count", "atomic"])
def test_every_mode_is_read(mode: str) -> None:
    assert parse(f"mode: {mode}\n").mode == mode


def test_digest_and_size_are_those_of_the_files_bytes(tmp_path: Path) -> None:
    raw = b"mode: set\r\nm/a.go:1.1,2.2 1 1\r\n"
    (tmp_path / "c.out").write_bytes(raw)
    profile = read_profile(tmp_path / "c.out", max_bytes=100, max_blocks=1)
    assert (profile.digest, profile.size) == (hashlib.sha256(raw).hexdigest(), len(raw))
    assert profile.blocks_of("m/a.go")[0].covered


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 2)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_repeated_blocks_are_merged_whatever_their_order(lines: Sequence[tuple[str, int, int]], shuffle: random.Random) -> None:
    def read(order: Sequence[tuple[str, int, int]]) -> dict[str, list[Block]]:
        profile = parse("mode: count\n" + "".join(f"m/{file}.go:{line}.1,{line}.9 1 {count}\n" for file, line, count in order))
        return {path: profile.blocks_of(path) for path in profile.paths()}

    shuffled = list(lines)
    shuffle.shuffle(shuffled)
    assert read(shuffled) == read(lines)
    for path, blocks in read(lines).items():
        for block in blocks:
            counts = [count for file, line, count in lines if (f"m/{file}.go", line) == (path, block.start_line)]
            assert block.covered == any(counts)


def test_paths_may_have_colons_spaces_and_bytes_that_are_no_utf8() -> None:
    profile = parse(b"mode: set\nm/a b:c.go:1.1,2.2 1 1\nm/\xff.go:1.1,2.2 1 0\n")
    assert profile.paths() == ["m/a b:c.go", "m/\udcff.go"]


@pytest.mark.parametrize(
    "line",
    [
        "m/a.go",
        "m/a.go:1.1,2.2 1",
        "m/a.go:1.1,2.2 1 1 1",
        "m/a.go:1,2 1 1",
        "m/a.go:1.1,2.2 1 -1",
        "m/a.go:1.1,2.2 1 1_0",
        "m/a.go:1.1,2.2 x 1",
        "m/a.go:1.1,9999999999.2 1 1",
        ":1.1,2.2 1 1",
        "mode: count",
        "x" * 100_000,
    ],
)
def test_lines_that_are_no_blocks_are_counted_and_the_first_is_named(line: str) -> None:
    profile = parse(f"mode: set\nm/a.go:1.1,2.2 1 1\n\n{line}\nm/a.go:3.1,4.2 1 1\n")
    assert (profile.malformed, profile.first_malformed, profile.blocks) == (1, 4, 2)


def test_a_profile_that_was_cut_off_keeps_its_whole_lines() -> None:
    profile = parse("mode: set\nm/a.go:1.1,2.2 1 1\nm/a.go:3.1,4.")
    assert (profile.blocks, profile.malformed) == (1, 1)


def test_an_empty_profile_has_nothing() -> None:
    profile = parse("")
    assert (profile.mode, profile.blocks, profile.malformed, profile.size) == ("", 0, 0, 0)


def test_counts_of_64_bits_run_and_are_remembered() -> None:
    largest, larger = (
        parse("mode: count\nm/a.go:1.1,2.2 1 9223372036854775807\n"),
        parse("m/a.go:1.1,2.2 1 9223372036854775808\n"),
    )
    assert (largest.blocks_of("m/a.go")[0].counted, largest.overflows) == (True, False)
    assert (larger.blocks_of("m/a.go")[0].covered, larger.blocks_of("m/a.go")[0].counted) == (True, False)
    assert larger.overflows
    merged = parse("m/a.go:1.1,2.2 1 5\nm/a.go:1.1,2.2 1 9223372036854775808\n")
    assert merged.blocks_of("m/a.go")[0].counted


def test_numbers_with_needless_zeros_and_lines_between_spaces_are_read() -> None:
    profile = parse("  mode: set\t\n \tm/a.go:01.1,2.002 00 01  \nm/a.go:10.00,10.200 30 0\n")
    assert (profile.mode, profile.malformed) == ("set", 0)
    assert profile.blocks_of("m/a.go") == [
        Block(1, 1, 2, 2, 0, covered=True, counted=True),
        Block(10, 0, 10, 200, 30, covered=False, counted=False),
    ]


def test_lines_across_the_pieces_that_are_read_are_whole() -> None:
    lines = [f"example.com/module/package/file{number}.go:{number}.1,{number}.9 1 1" for number in range(1, 40_000)]
    profile = parse("mode: set\n" + "\n".join(lines))
    assert profile.size > 2 << 20
    assert (profile.blocks, profile.malformed) == (len(lines), 0)


def test_limits_hold_on_bytes_and_on_distinct_blocks() -> None:
    text = "mode: set\n" + "m/a.go:1.1,2.2 1 1\n" * 50 + "m/a.go:1.1,2.3 1 1\n"
    assert parse(text, max_bytes=len(text), max_blocks=2).blocks == 2
    with pytest.raises(ProfileTooLarge, match="more than 1 blocks"):
        parse(text, max_blocks=1)
    with pytest.raises(ProfileTooLarge, match=f"more than {len(text) - 1} bytes"):
        parse(text, max_bytes=len(text) - 1)
