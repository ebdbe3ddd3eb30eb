"""Compatibility mode: go-crap 0.5.1's own answers, to the last bit, and its rules one by one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gctd.domain.options import CrapOptions
from gctd.engines.engine import EngineFailed, EngineInput, EngineLimits
from gctd.engines.gocrap import differences
from gctd.engines.gocrap.coverage import gocrap_module_path
from gctd.engines.gocrap.walk import BadPattern, is_seen_by_gocrap, matches, select_like_gocrap
from gctd.engines.native import NativeEngine
from gctd.engines.report import Report, ReportWarning, raw_output
from gctd.engines.selection import Warnings
from tests.gctd.engines.modules import MODULE, PROFILE, engine_input, write_gocrap_fixture, write_module

Row = tuple[str, int, str, int, float, float]

TWO_THIRDS = 66.66666666666666
ONE_THIRD = 33.33333333333333
ROWS: list[Row] = [
    ("a/x/y/z.go", 3, "Z", 2, TWO_THIRDS, 2.1481481481481484),
    ("tag/x/y/z.go", 5, "Z", 2, TWO_THIRDS, 2.1481481481481484),
    ("sub/lnk/x/y/z.go", 3, "Z", 2, TWO_THIRDS, 2.1481481481481484),
    ("nested/n.go", 3, "Z", 2, 0.0, 6.0),
    ("sub/_under.go", 3, "Under", 2, 0.0, 6.0),
    ("sub/.dot.go", 3, "Dot", 2, 0.0, 6.0),
    ("sub/asm_arm64.go", 3, "Asm", 1, 0.0, 2.0),
    ("sub/ok.go", 3, "Ok", 1, 0.0, 2.0),
    ("line/foo.y", 100, "L", 2, 0.0, 6.0),
    ("core/core.go", 9, "A.String", 3, ONE_THIRD, 5.666666666666668),
    ("core/core.go", 16, "*B.String", 2, ONE_THIRD, 3.1851851851851856),
    ("core/core.go", 23, "*B.Close", 1, 40.0, 1.216),
    ("core/core.go", 25, "Close", 3, 40.0, 4.944),
    ("core/core.go", 36, "Open", 2, 0.0, 6.0),
    ("core/core.go", 43, "*B.Open", 2, 0.0, 6.0),
    ("core/core.go", 50, "init", 1, TWO_THIRDS, 1.0370370370370372),
    ("core/core.go", 52, "init", 2, TWO_THIRDS, 2.1481481481481484),
    ("core/core.go", 65, "Closures", 4, TWO_THIRDS, 4.5925925925925934),
    ("core/core.go", 80, "Sel", 4, 50.0, 6.0),
    ("core/core.go", 95, "TypeSw", 5, 28.57142857142857, 14.110787172011662),
    ("core/core.go", 121, "NotIgnored1", 2, 100.0, 2.0),
    ("core/core.go", 125, "NotIgnored2", 2, 100.0, 2.0),
    ("core/core.go", 128, "NotIgnored3", 2, 0.0, 6.0),
    ("core/core.go", 133, "NotIgnored4", 2, 0.0, 6.0),
    ("core/core.go", 135, "OneLine", 2, 100.0, 2.0),
    ("core/core.go", 137, "Three", 3, 100.0, 3.0),
    ("core/core.go", 143, "P", 1, 100.0, 1.0),
    ("core/core.go", 143, "Q", 1, 0.0, 2.0),
    ("core/core.go", 145, "Empty", 1, 100.0, 1.0),
    ("core/core.go", 148, "NotCalled", 1, 0.0, 2.0),
    ("core/core.go", 152, "Comments", 1, 100.0, 1.0),
    ("gen/gen.go", 8, "*T[K].Get", 2, 0.0, 6.0),
    ("gen/gen.go", 14, "T[K].Val", 1, 0.0, 2.0),
    ("gen/gen.go", 15, "*<unknown>.Get", 2, 0.0, 6.0),
    ("gen/gen.go", 21, "<unknown>.Val", 1, 0.0, 2.0),
    ("gen/gen.go", 25, "N.Get", 1, 0.0, 2.0),
    ("gen/gen.go", 26, "Map", 3, 100.0, 3.0),
]


def compat(given: EngineInput) -> Report:
    return NativeEngine(compat=True).analyse(given)


def rows(report: Report) -> list[Row]:
    return [(e.file, e.line, e.function, e.cyclomatic, e.coverage or 0.0, e.crap) for e in report.entries]


def coverages(directory: Path, text: str, blocks: str, *, go_mod: str | None = None) -> dict[str, float | None]:
    """Percent by function of `package p` in a file p/f.go; `blocks` are `place statements count` lines."""
    profile = "mode: set\n" + "".join(f"{MODULE}/p/f.go:{block.strip()}\n" for block in blocks.strip().split("\n"))
    write_module(directory, {"p/f.go": f"package p\n{text}\n"}, profile=profile, go_mod=go_mod)
    return {entry.function: entry.coverage for entry in compat(engine_input(directory)).entries}


def test_the_fixture_gives_every_number_that_go_crap_gave(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    report = compat(engine_input(tmp_path))
    assert sorted(rows(report)) == sorted(ROWS)
    assert report.summary.total_funcs == 37
    assert report.summary.combined == 138.34486124608574
    assert report.summary.average == 3.739050303948263
    assert report.summary.exceeded == 0
    assert next(entry.end_line for entry in report.entries if entry.name == "L") == 105
    assert (report.engine, report.crap_version) == ("native-compat", "v0.5.1")


def test_the_fixture_as_json_has_go_craps_keys_and_spelling(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    document = msgspec.json.encode(raw_output(compat(engine_input(tmp_path))))
    assert document.startswith(
        b'{"version":"1.1.0","summary":{"average":3.739050303948263,"combined":138.34486124608574,"exceeded":0,"total_funcs":37},'
        b'"entries":[{"baseline_crap":0,"coverage":28.57142857142857,"delta":14.110787172011662,"file":"core/core.go",'
        b'"function":"TypeSw","package":"core","crap":14.110787172011662,"cyclomatic":5,"effective_crap":14.110787172011662,'
        b'"line":95,"mutation_score":0,"coverage_untrusted":false},'
    )
    assert (
        b'"coverage":0,"delta":6,"file":"core/core.go","function":"*B.Open","package":"core","receiver":"*B","crap":6,'
        in document
    )


def test_an_empty_profile_makes_everything_zero(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    (tmp_path / PROFILE).write_text("")
    assert {row[4] for row in rows(compat(engine_input(tmp_path)))} == {0.0}


def test_a_missing_profile_is_an_error(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    (tmp_path / PROFILE).unlink()
    with pytest.raises(EngineFailed, match="the cover profile cannot be read: No such file"):
        compat(engine_input(tmp_path))


@pytest.mark.parametrize(("missing", "coverage", "crap"), [("pessimistic", 0, 6), ("optimistic", 100, 2), ("skip", 0, 2)])
def test_functions_without_coverage_in_go_crap_are_scored_by_the_policy(
    tmp_path: Path, missing: str, coverage: int, crap: int
) -> None:
    write_gocrap_fixture(tmp_path)
    options = msgspec.convert({"missing": missing}, CrapOptions)
    report = compat(engine_input(tmp_path, options=options))
    by_name = {entry.function: entry for entry in report.entries}
    assert (by_name["Under"].coverage, by_name["Under"].crap) == (coverage, crap)
    assert (by_name["Open"].coverage, by_name["Open"].crap) == (0, 6)


ONE = "func (a A) X() {\n_ = 1\n}\nfunc (b *B) X() {\n_ = 2\n}\n"
"""Lines 2 to 4 and 5 to 7."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE, {"A.X": 50.0, "*B.X": 50.0}),
        (ONE.replace("(a A) ", ""), {"X": 0.0, "*B.X": 0.0}),
        (ONE.replace("(b *B) ", ""), {"A.X": 50.0, "X": 50.0}),
        (ONE.replace("A)", "A[T])"), {"A[T].X": 0.0, "*B.X": 0.0}),
        (ONE.replace("*B)", "*B[T])"), {"A.X": 50.0, "*B[T].X": 50.0}),
        (ONE.replace("A)", "A[T])").replace("*B)", "*B[T])"), {"A[T].X": 50.0, "*B[T].X": 50.0}),
        (ONE.replace("A)", "p.A)").replace("*B)", "*p.B)"), {"p.A.X": 50.0, "*p.B.X": 50.0}),
    ],
)
def test_functions_of_one_name_in_a_file_share_blocks_or_lose_them(tmp_path: Path, text: str, expected: dict[str, float]) -> None:
    assert coverages(tmp_path, text, "2.17,4.2 1 1\n5.18,7.2 1 0") == expected


@pytest.mark.parametrize(
    ("blocks", "percent"),
    [
        ("2.1,3.1 1 1\n2.9,3.9 1 0", 100.0),
        ("2.1,3.1 1 0\n2.9,3.9 1 1", 100.0),
        ("2.1,3.1 1 1\n2.9,4.9 1 0", 50.0),
        ("2.1,3.1 0 1\n3.1,3.9 0 0", 50.0),
        ("2.1,3.1 9 1\n3.1,3.9 1 0", 50.0),
        ("2.1,3.1 1 9223372036854775808", 0.0),
        ("2.1,3.1 1 9223372036854775807", 100.0),
        ("5.1,5.2 1 1", 0.0),
        ("1.1,9.9 1 1", 0.0),
        ("4.1,9.9 1 1", 100.0),
    ],
)
def test_blocks_count_by_their_lines_alone(tmp_path: Path, blocks: str, percent: float) -> None:
    assert coverages(tmp_path, "func F() {\n_ = 1\n}", blocks) == {"F": percent}


def test_a_line_that_several_bodies_have_belongs_to_the_last_that_opens_and_of_those_to_the_first(tmp_path: Path) -> None:
    text = "func F() {\n}; func G() {}; func H() {\n}"
    assert coverages(tmp_path, text, "2.1,3.1 1 1\n3.13,3.14 1 1\n4.1,4.2 1 0") == {"F": 100.0, "G": 100.0, "H": 0.0}


@pytest.mark.parametrize(
    ("go_mod", "path"),
    [
        ("module example.com/m\n", "example.com/m"),
        ("// c\n\n  module   example.com/m  \n", "example.com/m"),
        ('module "example.com/m"\n', '"example.com/m"'),
        ("module example.com/m // c\n", "example.com/m // c"),
        ("module\texample.com/m\n", "folder"),
        ("module (\n\texample.com/m\n)\n", "("),
        ("", "folder"),
    ],
)
def test_the_module_line_is_read_as_go_crap_reads_it(go_mod: str, path: str) -> None:
    assert gocrap_module_path(go_mod.encode(), "/some/folder") == path


@pytest.mark.parametrize(
    "line", ['module "example.com/fx"', "module example.com/fx // c", "module\texample.com/fx", "module (\nexample.com/fx\n)"]
)
def test_a_module_line_that_go_crap_misreads_makes_everything_zero(tmp_path: Path, line: str) -> None:
    assert coverages(tmp_path, "func F() {\n_ = 1\n}", "2.1,4.1 1 1", go_mod=line + "\n") == {"F": 0.0}


def test_the_module_path_is_cut_off_without_regard_to_a_slash(tmp_path: Path) -> None:
    source = "package p\n\nfunc F() {\n\t_ = 1\n}\n"
    profile = f"mode: set\n{MODULE}more/f.go:3.1,4.1 1 1\n"
    write_module(tmp_path, {"more/f.go": source, "other/q/f.go": source}, profile=profile)
    report = compat(engine_input(tmp_path))
    assert {entry.file: entry.coverage for entry in report.entries} == {"more/f.go": 100.0, "other/q/f.go": 0.0}


def test_of_files_with_the_same_last_three_components_the_first_path_in_the_profile_counts(tmp_path: Path) -> None:
    source = "package p\n\nfunc F() {\n\t_ = 1\n}\n"
    profile = f"mode: set\n{MODULE}/b/x/y/f.go:3.1,4.1 1 0\n{MODULE}/a/x/y/f.go:3.1,4.1 1 1\n"
    write_module(tmp_path, dict.fromkeys(("a/x/y/f.go", "b/x/y/f.go", "c/x/y/f.go", "c/z/y/f.go"), source), profile=profile)
    report = compat(engine_input(tmp_path))
    assert {entry.file: entry.coverage for entry in report.entries} == {
        "a/x/y/f.go": 100.0,
        "b/x/y/f.go": 0.0,
        "c/x/y/f.go": 100.0,
        "c/z/y/f.go": 0.0,
    }


def test_a_path_with_a_colon_is_not_found_in_the_profile(tmp_path: Path) -> None:
    source = "package p\n\nfunc F() {\n\t_ = 1\n}\n"
    write_module(tmp_path, {"p/a:b.go": source}, profile=f"mode: set\n{MODULE}/p/a:b.go:3.1,4.1 1 1\n")
    assert [entry.coverage for entry in compat(engine_input(tmp_path)).entries] == [0.0]
    (entry,) = NativeEngine().analyse(engine_input(tmp_path)).entries
    assert entry.coverage == 100.0
    assert entry.differs is not None
    assert entry.differs.reason == differences.COLON


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("br1", "br1", True),
        ("br[1]", "br1", True),
        ("br[1]", "br[1]", False),
        ("a*", "a*", True),
        ("a*c", "abbbc", True),
        ("a*b*c", "axbxbxc", True),
        ("a*b*c", "axbxbx", False),
        ("a?", "aß", True),
        ("a?", "a", False),
        ("[a-c]x", "bx", True),
        ("[^a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        (r"a\*", "a*", True),
        (r"a\*", r"a\*", False),
        (r"[\]]", "]", True),
    ],
)
def test_names_match_patterns_as_in_go(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


@pytest.mark.parametrize("pattern", ["a[", "[", "[a", "[]", "[a-]", "[-a]", "[]a]", "a\\", "[a\\", "[^"])
def test_patterns_that_go_refuses_are_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        matches(pattern, "a")


def test_a_long_pattern_of_stars_takes_no_time() -> None:
    assert not matches("*a" * 100, "a" * 99 + "b" * 150)


def walk(directory: Path, limits: EngineLimits | None = None) -> tuple[list[str], tuple[ReportWarning, ...]]:
    warnings = Warnings(100)
    given = EngineInput(module_dir=directory, repository=directory, module_path=MODULE, limits=limits or EngineLimits())
    return list(select_like_gocrap(given, warnings)), warnings.all()


def test_directories_with_names_that_are_patterns_give_the_files_of_their_matches(tmp_path: Path) -> None:
    for name in ("x[1]/a.go", "x1/b.go", "x1/deep/c.go", "y*/d.go", "yy/e.go", "bad[/f.go", "b/z.go", "b/a.go", "m.go"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found, _ = walk(tmp_path)
    assert found == [
        "m.go",
        "b/a.go",
        "b/z.go",
        "x1/b.go",
        "x1/deep/c.go",
        "x1/b.go",
        "x1/deep/c.go",
        "y*/d.go",
        "yy/e.go",
        "yy/e.go",
    ]
    assert [is_seen_by_gocrap(path) for path in ("x[1]/a.go", "y*/d.go", "bad[/f.go", "b/z.go", "m[1].go")] == [
        False,
        True,
        False,
        True,
        True,
    ]


def test_links_are_followed_but_not_in_a_circle_and_not_out_of_the_checkout(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "checkout"
    for file in (outside / "secret.go", root / "a" / "f.go"):
        file.parent.mkdir(parents=True)
        file.touch()
    (root / "a" / "self").symlink_to(".")
    (root / "a" / "up").symlink_to("..")
    (root / "b").symlink_to("a")
    (root / "out").symlink_to(outside)
    (root / "out.go").symlink_to(outside / "secret.go")
    (root / "in.go").symlink_to("a/f.go")
    (root / "gone.go").symlink_to("nowhere")
    (root / "round.go").symlink_to("round.go")
    found, warnings = walk(root)
    assert found == ["in.go", "a/f.go", "b/f.go"]
    assert {warning.path for warning in warnings} == {
        "a/self",
        "a/up",
        "b/self",
        "b/up",
        "out",
        "out.go",
        "gone.go",
        "round.go",
    }


def test_links_that_multiply_end_at_the_limits(tmp_path: Path) -> None:
    for level in range(12):
        (tmp_path / f"d{level}").mkdir()
        for copy in "ab":
            (tmp_path / f"d{level}" / copy).symlink_to(f"../d{level + 1}")
    (tmp_path / "d12").mkdir()
    (tmp_path / "d12" / "f.go").touch()
    with pytest.raises(EngineFailed, match="more than 500 directories"):
        walk(tmp_path, EngineLimits(directories=500))
    with pytest.raises(EngineFailed, match="more than 20 Go files"):
        walk(tmp_path, EngineLimits(files=20))
