"""The engine `native`: each fault of go-crap is corrected and named, omissions are listed, and the report is whole."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import attrs
import msgspec
import pytest

from gctd.domain.errors import BadInput
from gctd.domain.options import CrapOptions
from gctd.engines import report
from gctd.engines.engine import EngineFailed, EngineInput, EngineLimits
from gctd.engines.gocrap import differences
from gctd.engines.gocrap.walk import select_like_gocrap
from gctd.engines.measurement import PackageFacts, TestFacts
from gctd.engines.native import NativeEngine
from gctd.engines.registry import ENGINES, engine_named
from gctd.engines.report import FunctionEntry, Report
from gctd.engines.selection import Warnings, select_files
from tests.gctd.engines.modules import MODULE, PROFILE, engine_input, write_gocrap_fixture, write_module

TWO_THIRDS = 66.66666666666666
F = "package p\n\nfunc F(x int) int {\n\tif x > 0 {\n\t\treturn 1\n\t}\n\treturn 0\n}\n"
"""Blocks 3.19,4.11 and 4.11,6.3 and 7.2,7.10."""


def f_blocks(path: str, counts: str = "1 1 0") -> str:
    places = ("3.19,4.11", "4.11,6.3", "7.2,7.10")
    return "".join(f"{path}:{place} 1 {count}\n" for place, count in zip(places, counts.split(), strict=True))


def analyse(given: EngineInput) -> Report:
    return NativeEngine().analyse(given)


def by_place(found: Report) -> dict[tuple[str, str], FunctionEntry]:
    return {(entry.file, entry.function): entry for entry in found.entries}


def reason(entry: FunctionEntry) -> str | None:
    return None if entry.differs is None else entry.differs.reason


@pytest.fixture
def fixture(tmp_path: Path) -> dict[tuple[str, str], FunctionEntry]:
    write_gocrap_fixture(tmp_path)
    return by_place(analyse(engine_input(tmp_path)))


@pytest.mark.parametrize(
    ("function", "coverage", "statements", "why", "theirs"),
    [
        ("A.String", TWO_THIRDS, TWO_THIRDS, differences.SAME_NAME, 33.33333333333333),
        ("*B.String", 0.0, 0.0, differences.SAME_NAME, 33.33333333333333),
        ("*B.Close", 0.0, 0.0, differences.SAME_NAME, 40.0),
        ("Close", 50.0, 50.0, differences.SAME_NAME, 40.0),
        ("Open", 0.0, 0.0, None, None),
        ("*B.Open", TWO_THIRDS, TWO_THIRDS, differences.SAME_NAME, 0.0),
        ("Closures", 70.0, 7 / 9 * 100, differences.ONE_LINE, TWO_THIRDS),
        ("Sel", 50.0, 50.0, None, None),
        ("TypeSw", 28.57142857142857, 28.57142857142857, None, None),
        ("OneLine", TWO_THIRDS, TWO_THIRDS, differences.ONE_LINE, 100.0),
        ("Three", 5 / 6 * 100, 5 / 6 * 100, differences.ONE_LINE, 100.0),
        ("P", 100.0, 0.0, None, None),
        ("Q", 0.0, 0.0, None, None),
        ("Empty", 100.0, 0.0, None, None),
        ("NotCalled", 0.0, 0.0, None, None),
        ("Comments", 100.0, 100.0, None, None),
    ],
)
def test_functions_of_the_fixture_have_their_own_coverage(
    fixture: dict[tuple[str, str], FunctionEntry],
    function: str,
    coverage: float,
    statements: float,
    why: str | None,
    theirs: float | None,
) -> None:
    entry = fixture["core/core.go", function]
    assert entry.coverage == coverage
    assert entry.stmt_coverage == pytest.approx(statements)
    assert reason(entry) == why
    assert (None if entry.differs is None else entry.differs.coverage) == theirs


def test_two_init_functions_are_two(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    found = [entry for entry in analyse(engine_input(tmp_path)).entries if entry.name == "init"]
    assert sorted((entry.line, entry.coverage) for entry in found) == [(50, 100.0), (52, 50.0)]


def test_methods_of_generic_types_keep_their_blocks_and_their_names(fixture: dict[tuple[str, str], FunctionEntry]) -> None:
    coverage = {name: entry.coverage for (file, name), entry in fixture.items() if file == "gen/gen.go"}
    assert coverage == {
        "*T[K].Get": TWO_THIRDS,
        "T[K].Val": 0.0,
        "*U[K, V].Get": 0.0,
        "U[K, V].Val": 0.0,
        "N.Get": 0.0,
        "Map": 100.0,
    }
    get = fixture["gen/gen.go", "*T[K].Get"]
    assert (reason(get), get.name, get.receiver) == (differences.SAME_NAME, "Get", "*T[K]")


def test_a_function_behind_a_line_directive_is_shown_where_it_stands_with_its_coverage(
    fixture: dict[tuple[str, str], FunctionEntry],
) -> None:
    entry = fixture["line/l.go", "L"]
    assert (entry.line, entry.end_line, entry.coverage) == (4, 9, TWO_THIRDS)
    assert entry.stmt_coverage == pytest.approx(TWO_THIRDS)
    assert reason(entry) == differences.LINE_DIRECTIVE


def test_a_file_that_was_never_compiled_has_no_coverage_and_the_score_of_none(
    fixture: dict[tuple[str, str], FunctionEntry],
) -> None:
    entry = fixture["tag/x/y/z.go", "Z"]
    assert (entry.coverage, entry.stmt_coverage, entry.crap) == (None, None, 6.0)
    assert reason(entry) == f"{differences.LOOK_ALIKE}{MODULE}/a/x/y/z.go"
    assert entry.differs is not None
    assert (entry.differs.coverage, entry.differs.crap) == (TWO_THIRDS, 2.1481481481481484)


def test_directories_with_brackets_are_analysed_and_links_and_nested_modules_are_not(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    found = analyse(engine_input(tmp_path))
    files = {entry.file for entry in found.entries}
    assert "br[1]/z.go" in files
    assert not any(file.startswith(("sub/lnk", "nested")) for file in files)
    bracket = by_place(found)["br[1]/z.go", "Z"]
    assert bracket.differs == report.Difference(reason=differences.UNSEEN, coverage=None, crap=None)
    assert {(warning.kind, warning.path) for warning in found.warnings} == {
        ("nested-module", "nested"),
        ("link", "sub/lnk"),
        ("syntax", "bad/bad.go"),
    }
    assert (found.counts.files, found.counts.files_skipped) == (10, 1)
    assert found.counts.differing == sum(entry.differs is not None for entry in found.entries) == 15
    assert found.counts.covered_functions == 31


@pytest.mark.parametrize(
    "line",
    [
        f'module "{MODULE}"',
        f"module `{MODULE}`",
        f"module {MODULE} // deprecated",
        f"module\t{MODULE}",
        f"module (\n\t{MODULE}\n)",
    ],
)
def test_every_way_to_write_the_module_line_gives_the_coverage(tmp_path: Path, line: str) -> None:
    write_module(tmp_path, {"p/f.go": F}, profile="mode: set\n" + f_blocks(f"{MODULE}/p/f.go"), go_mod=line + "\n")
    (entry,) = analyse(engine_input(tmp_path)).entries
    assert entry.coverage == TWO_THIRDS
    assert entry.differs == report.Difference(reason=differences.MODULE_LINE, coverage=0.0, crap=6.0)


def test_a_module_whose_path_begins_like_this_one_gives_it_nothing(tmp_path: Path) -> None:
    write_module(tmp_path, {"more/f.go": F}, profile="mode: set\n" + f_blocks(f"{MODULE}more/f.go"))
    found = analyse(engine_input(tmp_path))
    (entry,) = found.entries
    assert (entry.coverage, reason(entry)) == (None, f"{differences.LOOK_ALIKE}{MODULE}more/f.go")
    assert [(warning.kind, warning.reason) for warning in found.warnings] == [
        ("profile", f"1 files of the cover profile were not analysed, the first is {MODULE}more/f.go")
    ]


def test_a_count_of_64_bits_is_a_count(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F}, profile="mode: count\n" + f_blocks(f"{MODULE}/p/f.go", "9223372036854775808 1 0"))
    (entry,) = analyse(engine_input(tmp_path)).entries
    assert (entry.coverage, reason(entry)) == (TWO_THIRDS, differences.OVERFLOW)


def test_the_standard_library_has_no_module_path_before_its_packages(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F}, profile="mode: set\n" + f_blocks("p/f.go"), go_mod="module std\n")
    (entry,) = analyse(attrs.evolve(engine_input(tmp_path), module_path="std")).entries
    assert (entry.coverage, entry.differs) == (TWO_THIRDS, None)


def test_the_coverage_of_functions_whose_blocks_line_directives_do_not_tell_apart_is_unknown(tmp_path: Path) -> None:
    """A block of line 10 may be of A or of B; the block of line 20 is of A, whose other blocks are not known."""
    one = "package p\n\n//line gen.y:10\nfunc A() {\n\t_ = 1\n//line gen.y:20\n\t_ = 2\n}\n"
    profile = f"mode: set\n{MODULE}/p/gen.y:10.0,12.0 1 1\n{MODULE}/p/gen.y:20.0,21.0 1 0\n{MODULE}/p/gen.y:31.0,32.0 1 1\n"
    other = one.replace("A()", "C()").replace(":10", ":30").replace(":20", ":40")
    second = one.replace("A()", "B()").replace("//line gen.y:20\n", "")
    write_module(tmp_path, {"p/a.go": one, "p/b.go": second, "p/c.go": other}, profile=profile)
    tests = TestFacts(packages=(PackageFacts(path=f"{MODULE}/p", outcome="ok"),))
    found = analyse(attrs.evolve(engine_input(tmp_path), tests=tests))
    shown = {entry.name: (entry.coverage, entry.stmt_coverage, entry.state.value) for entry in found.entries}
    assert shown == {"A": (None, None, "unknown"), "B": (None, None, "unknown"), "C": (100.0, 100.0, "measured")}
    assert {entry.reason for entry in found.entries if entry.name != "C"} == {
        "the //line directives do not distinguish its blocks from blocks of another function"
    }
    assert [warning.reason for warning in found.warnings] == ["the //line directives do not distinguish 1 blocks"]


def test_without_a_profile_no_coverage_is_known(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    found = analyse(engine_input(tmp_path, profiled=False))
    assert {entry.coverage for entry in found.entries} == {entry.stmt_coverage for entry in found.entries} == {None}
    assert (found.profile, found.counts.covered_functions) == (None, 0)
    assert found.summary.combined == sum(float(entry.cyclomatic**2 + entry.cyclomatic) for entry in found.entries)


@pytest.mark.parametrize(("missing", "crap"), [("pessimistic", 6.0), ("optimistic", 2.0), ("skip", 2.0)])
def test_unknown_coverage_is_scored_by_the_policy_and_still_unknown(tmp_path: Path, missing: str, crap: float) -> None:
    write_module(tmp_path, {"p/f.go": F})
    options = msgspec.convert({"missing": missing}, CrapOptions)
    (entry,) = analyse(engine_input(tmp_path, profiled=False, options=options)).entries
    assert (entry.coverage, entry.crap) == (None, crap)


def test_the_threshold_only_changes_the_count_of_exceeding_functions(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    strict, lax = (analyse(engine_input(tmp_path, options=CrapOptions(threshold=value))) for value in (6.0, 5.99))
    assert (strict.summary.exceeded, lax.summary.exceeded) == (1, 12)
    assert strict.entries == lax.entries


def test_test_files_are_counted_where_they_are_asked_for(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F, "p/f_test.go": F})
    assert {e.file for e in analyse(engine_input(tmp_path, profiled=False)).entries} == {"p/f.go"}
    options = CrapOptions(include_tests=True)
    assert {e.file for e in analyse(engine_input(tmp_path, profiled=False, options=options)).entries} == {"p/f.go", "p/f_test.go"}


def test_modules_named_as_nested_are_left_out_and_those_with_a_go_mod_of_their_own(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F, "q/f.go": F, "r/f.go": F, "r/go.mod": "module r\n", "s/go.mod/f.go": F})
    found = analyse(engine_input(tmp_path, profiled=False, nested=("./q/",)))
    assert {entry.file for entry in found.entries} == {"p/f.go", "s/go.mod/f.go"}


def test_files_that_go_would_not_compile_here_count_all_the_same(tmp_path: Path) -> None:
    names = ("f_windows.go", "_f.go", ".f.go", "gen.go", "ignored.go")
    texts = {name: F.replace("F(", f"F{index}(") for index, name in enumerate(names)}
    texts["gen.go"] = "// Code generated by x. DO NOT EDIT.\n" + texts["gen.go"]
    texts["ignored.go"] = "//go:build ignore\n\n" + texts["ignored.go"]
    write_module(tmp_path, texts)
    assert {entry.file for entry in analyse(engine_input(tmp_path, profiled=False)).entries} == set(names)


def test_irregular_and_too_large_files_are_left_out_and_named(tmp_path: Path) -> None:
    write_module(tmp_path, {"f.go": F, "big.go": F + "//" + "x" * 1000, "folder.go/f.txt": ""})
    os.mkfifo(tmp_path / "pipe.go")
    (tmp_path / "link.go").symlink_to("f.go")
    given = attrs.evolve(engine_input(tmp_path, profiled=False), limits=EngineLimits(file_bytes=1000))
    found = analyse(given)
    assert [entry.file for entry in found.entries] == ["f.go"]
    assert {(warning.kind, warning.path) for warning in found.warnings} == {
        ("too-large", "big.go"),
        ("unreadable", "pipe.go"),
        ("link", "link.go"),
    }


def test_a_profile_that_is_a_link_or_a_pipe_is_refused(tmp_path: Path) -> None:
    write_module(tmp_path, {"f.go": F})
    (tmp_path / PROFILE).symlink_to("/etc/passwd")
    with pytest.raises(EngineFailed, match="the cover profile cannot be read"):
        analyse(engine_input(tmp_path))
    (tmp_path / PROFILE).unlink()
    os.mkfifo(tmp_path / PROFILE)
    with pytest.raises(EngineFailed, match="the cover profile cannot be read: not a regular file"):
        analyse(engine_input(tmp_path))


@pytest.mark.parametrize("compat", [False, True])
def test_a_profile_that_names_files_outside_reads_none_of_them(tmp_path: Path, *, compat: bool) -> None:
    write_module(tmp_path / "outside", {"x/p/f.go": F})
    module = tmp_path / "checkout"
    paths = (
        f"{MODULE}/../outside/x/p/f.go",
        f"{MODULE}/p/../../outside/x/p/f.go",
        "/../outside/x/p/f.go",
        f"{MODULE}/link/x/p/f.go",
    )
    write_module(module, {"y/x/p/f.go": F}, profile="mode: set\n" + "".join(map(f_blocks, paths)))
    (module / "link").symlink_to(tmp_path / "outside")
    (entry,) = NativeEngine(compat=compat).analyse(engine_input(module)).entries
    assert entry.coverage in {None, 0.0}
    assert (entry.crap, entry.differs) == (6.0, None)


def test_a_name_that_a_line_directive_takes_from_a_real_file_stays_the_real_files(tmp_path: Path) -> None:
    taken = F.replace("func F", "//line f.go:3\nfunc G")
    write_module(tmp_path, {"p/a.go": taken, "p/f.go": F}, profile="mode: set\n" + f_blocks(f"{MODULE}/p/f.go"))
    found = analyse(engine_input(tmp_path))
    assert {entry.name: entry.coverage for entry in found.entries} == {"F": TWO_THIRDS, "G": None}


def test_files_come_before_directories_and_both_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    names = ["b.go", "z.go", "a/c.go", "a/b/d.go", "a-b/e.go", "é/f.go", "B/g.go"]
    write_module(tmp_path, dict.fromkeys(names, F))
    given = engine_input(tmp_path, profiled=False)
    expected = ["b.go", "z.go", "B/g.go", "a/c.go", "a/b/d.go", "a-b/e.go", "é/f.go"]
    assert list(select_files(given, Warnings(0))) == expected
    assert list(select_like_gocrap(given, Warnings(0))) == expected


def test_a_profile_with_lines_that_are_no_blocks_is_used_and_the_lines_are_named(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F}, profile="mode: set\nrubbish\n" + f_blocks(f"{MODULE}/p/f.go"))
    found = analyse(engine_input(tmp_path))
    assert found.entries[0].coverage == TWO_THIRDS
    assert [warning.reason for warning in found.warnings] == ["1 lines are no blocks, the first is line 2"]


def test_an_empty_profile_is_named(tmp_path: Path) -> None:
    write_module(tmp_path, {"p/f.go": F}, profile="")
    found = analyse(engine_input(tmp_path))
    assert (found.entries[0].coverage, [warning.reason for warning in found.warnings]) == (
        None,
        ["the cover profile has no blocks"],
    )


def test_limits_end_the_analysis_with_a_reason(tmp_path: Path) -> None:
    write_module(tmp_path, {f"d{n}/f.go": F for n in range(5)}, profile="mode: set\n" + f_blocks(f"{MODULE}/d0/f.go"))
    for limits, text in (
        (EngineLimits(files=4), "more than 4 Go files"),
        (EngineLimits(directories=5), "more than 5 directories"),
        (EngineLimits(profile_bytes=20), "more than 20 bytes"),
        (EngineLimits(profile_blocks=2), "more than 2 blocks"),
    ):
        with pytest.raises(EngineFailed, match=text):
            analyse(attrs.evolve(engine_input(tmp_path), limits=limits))


def test_warnings_are_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    write_module(tmp_path, {f"f{n}.go": "package" for n in range(9)})
    found = analyse(attrs.evolve(engine_input(tmp_path, profiled=False), limits=EngineLimits(warnings=3)))
    assert [warning.kind for warning in found.warnings] == ["syntax"] * 3 + ["more"]
    assert found.warnings[-1].reason == "6 more warnings"


def test_a_module_outside_of_the_repository_or_gone_is_refused(tmp_path: Path) -> None:
    write_module(tmp_path / "module", {"f.go": F})
    given = engine_input(tmp_path / "module", profiled=False)
    (tmp_path / "repository").mkdir()
    with pytest.raises(EngineFailed, match="not in the repository"):
        analyse(attrs.evolve(given, repository=tmp_path / "repository"))
    with pytest.raises(EngineFailed, match="cannot be read: No such file"):
        analyse(attrs.evolve(given, module_dir=tmp_path / "module" / "gone"))


def test_file_names_that_are_no_utf8_can_be_reported(tmp_path: Path) -> None:
    write_module(tmp_path, {})
    (tmp_path / os.fsdecode(b"\xff.go")).write_text(F)
    found = analyse(engine_input(tmp_path, profiled=False))
    assert [entry.file for entry in found.entries] == ["\ufffd.go"]
    assert report.decode(report.encode(found)) == found


def test_a_report_survives_json_and_pickle_and_is_the_same_every_time(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    for engine in (NativeEngine(), NativeEngine(compat=True)):
        given = pickle.loads(pickle.dumps(engine_input(tmp_path)))
        found = engine.analyse(given)
        assert report.decode(report.encode(found)) == found
        assert pickle.loads(pickle.dumps(found)) == found
        assert report.encode(engine.analyse(given)) == report.encode(found)
        assert (found.engine, found.engine_version) == (engine.name, engine.version)


def test_the_summary_is_that_of_the_entries_and_has_the_four_keys(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    found = analyse(engine_input(tmp_path))
    assert set(msgspec.to_builtins(found.summary)) == {"average", "combined", "exceeded", "total_funcs"}
    assert found.summary.total_funcs == len(found.entries)
    assert found.summary.combined == pytest.approx(sum(entry.crap for entry in found.entries), rel=1e-12)
    assert [entry.crap for entry in found.entries] == sorted((entry.crap for entry in found.entries), reverse=True)


def test_raw_output_leaves_out_the_coverage_that_is_not_known_and_says_so(tmp_path: Path) -> None:
    write_gocrap_fixture(tmp_path)
    raw = msgspec.to_builtins(report.raw_output(analyse(engine_input(tmp_path))))
    assert (set(raw), raw["version"]) == ({"version", "summary", "entries"}, "1.1.0")
    asm, method = (next(e for e in raw["entries"] if e["function"] == name) for name in ("Asm", "A.String"))
    assert "coverage" not in asm
    assert asm["coverage_warning"] == "no coverage data for this function"
    assert "receiver" not in asm
    assert (method["coverage"], method["receiver"], "coverage_warning" in method) == (TWO_THIRDS, "A", False)


def test_engines_are_found_by_name_and_a_wrong_name_is_refused_with_the_right_ones() -> None:
    assert set(ENGINES) == {"native", "native-compat"}
    assert engine_named("native") == NativeEngine()
    with pytest.raises(BadInput, match="engine: no engine is called 'crap'; there are native, native-compat") as caught:
        engine_named("crap")
    assert caught.value.field == "engine"


@pytest.mark.real
def test_the_program_of_the_engine_loads_neither_the_event_log_nor_an_event_loop() -> None:
    """It starts once for each analysis: loading these would take longer than the scoring of a small module."""
    program = "import sys; import gctd.engines.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    assert {"eventlog", "asyncio", "structlog"} & set(loaded) == set()


TABLE = (
    "package p\n\nvar handlers = map[string]func(int) int{\n"
    '\t"a": func(x int) int {\n\t\tif x > 0 {\n\t\t\treturn 1\n\t\t}\n\t\treturn 0\n\t},\n'
    '\t"b": func(x int) int { return func() int { return x }() },\n}\n'
)


def test_function_literals_in_variables_have_entries_with_the_name_of_the_variable(tmp_path: Path) -> None:
    """The literal in another one is part of it. go-crap has no entry for them, and neither has its compatible engine."""
    blocks = f"{MODULE}/p/t.go:4.24,5.13 1 1\n{MODULE}/p/t.go:5.13,7.4 1 0\n{MODULE}/p/t.go:8.3,8.11 1 1\n"
    write_module(tmp_path, {"p/t.go": TABLE}, profile=f"mode: set\n{blocks}{MODULE}/p/t.go:10.24,10.59 1 0\n")
    first, second = sorted(analyse(engine_input(tmp_path)).entries, key=lambda one: one.line)
    assert [(one.function, one.line, one.end_line, one.cyclomatic) for one in (first, second)] == [
        ("handlers", 4, 9, 2),
        ("handlers", 10, 10, 1),
    ]
    assert (first.coverage, second.coverage, reason(second)) == (TWO_THIRDS, 0.0, differences.LITERAL)
    assert NativeEngine(compat=True).analyse(engine_input(tmp_path)).entries == ()


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("ignore ./a\n", {"b/a/f.go", "c/f.go", "f.go"}),
        ("ignore a\n", {"c/f.go", "f.go"}),
        ("ignore (\n\tb/a\n\t./c/\n)\n", {"a/f.go", "f.go"}),
        ("", {"a/f.go", "b/a/f.go", "c/f.go", "f.go"}),
    ],
)
def test_directories_that_go_mod_ignores_are_not_counted(tmp_path: Path, line: str, left: set[str]) -> None:
    files = {f"{directory}f.go": F for directory in ("", "a/", "b/a/", "c/")}
    write_module(tmp_path, files, go_mod=f"module {MODULE}\n\ngo 1.26\n\n{line}")
    found = analyse(engine_input(tmp_path, profiled=False))
    assert ({entry.file for entry in found.entries}, found.summary.total_funcs) == (left, len(left))
    assert all(one.reason == "go.mod ignores the directory" for one in found.warnings if one.kind == "ignored")
    assert len(NativeEngine(compat=True).analyse(engine_input(tmp_path, profiled=False)).entries) == len(files)
