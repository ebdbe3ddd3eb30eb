"""Effects of the flags of `go-crap scan` that a project may have, in both modes of the native engine."""

from __future__ import annotations

import time
from pathlib import Path

import attrs
import pytest

from gctd.domain.options import CrapOptions, parse_crap_args
from gctd.engines.engine import EngineInput
from gctd.engines.native import NativeEngine
from gctd.engines.report import Report, raw_output
from tests.gctd.engines.modules import MODULE, engine_input, write_gocrap_fixture, write_module

F = "package p\n\nfunc F(x int) int {\n\tif x > 0 {\n\t\treturn 1\n\t}\n\treturn 0\n}\n"
both = pytest.mark.parametrize("compat", [False, True])


def analyse(given: EngineInput, *, compat: bool) -> Report:
    return NativeEngine(compat=compat).analyse(given)


def names(found: Report) -> set[str]:
    return {entry.function for entry in found.entries}


@pytest.fixture
def module(tmp_path: Path) -> EngineInput:
    write_gocrap_fixture(tmp_path / "checkout")
    return engine_input(tmp_path / "checkout")


def flagged(module: EngineInput, *flags: str) -> EngineInput:
    return attrs.evolve(module, options=parse_crap_args(flags))


@both
def test_a_function_is_excluded_by_its_bare_name_wherever_that_has_the_expression(module: EngineInput, *, compat: bool) -> None:
    everything = analyse(module, compat=compat)
    found = analyse(flagged(module, "--exclude=^Str", "--exclude=los"), compat=compat)
    gone = {"A.String", "*B.String", "*B.Close", "Close", "Closures"}
    assert names(everything) - names(found) == gone
    assert found.summary.total_funcs == everything.summary.total_funcs - 5
    assert found.summary.combined == pytest.approx(sum(entry.crap for entry in found.entries), rel=1e-12)


@both
def test_a_receiver_is_no_part_of_the_name(module: EngineInput, *, compat: bool) -> None:
    assert names(analyse(flagged(module, r"--exclude=^\*B"), compat=compat)) == names(analyse(module, compat=compat))


@both
@pytest.mark.parametrize("pattern", ["/core/", r"core\.go$", "/core/core.go", "(?i)/CORE/", "nothing|/core/"])
def test_a_file_is_excluded_by_its_path(module: EngineInput, pattern: str, *, compat: bool) -> None:
    everything, found = analyse(module, compat=compat), analyse(flagged(module, f"--exclude={pattern}"), compat=compat)
    assert {e.file for e in everything.entries} - {e.file for e in found.entries} == {"core/core.go"}
    assert found.warnings == everything.warnings


def test_paths_begin_at_the_checkout_but_in_compatibility_mode_where_it_is(module: EngineInput) -> None:
    given = flagged(module, "--exclude=/checkout/")
    assert analyse(given, compat=False).entries
    assert not analyse(given, compat=True).entries
    anchored = flagged(module, "--exclude=^/core/")
    assert "core/core.go" not in {entry.file for entry in analyse(anchored, compat=False).entries}
    assert "core/core.go" in {entry.file for entry in analyse(anchored, compat=True).entries}


def test_a_module_deep_in_its_repository_is_searched_with_the_path_to_it(tmp_path: Path) -> None:
    write_module(tmp_path / "tools" / "gen", {"p/f.go": F})
    given = attrs.evolve(engine_input(tmp_path / "tools" / "gen", profiled=False), repository=tmp_path)
    assert analyse(given, compat=False).entries
    assert not analyse(flagged(given, "--exclude=^/tools/gen/p/"), compat=False).entries


def test_an_excluded_file_lends_its_coverage_to_none_of_like_path(tmp_path: Path) -> None:
    profile = f"mode: set\n{MODULE}/a/x/y/z.go:3.19,7.10 1 1\n"
    write_module(tmp_path, {"a/x/y/z.go": F, "tag/x/y/z.go": F}, profile=profile)
    given = engine_input(tmp_path)
    assert [entry.coverage for entry in analyse(given, compat=True).entries] == [100.0, 100.0]
    assert [entry.coverage for entry in analyse(flagged(given, "--exclude=/a/x"), compat=True).entries] == [0.0]
    (left,) = analyse(flagged(given, "--exclude=/a/x"), compat=False).entries
    assert (left.coverage, left.differs) == (None, None)


@both
def test_min_and_top_shorten_the_list_and_leave_the_summary_alone(module: EngineInput, *, compat: bool) -> None:
    everything = analyse(module, compat=compat)
    worse = analyse(flagged(module, "--min=6"), compat=compat)
    assert worse.entries == tuple(entry for entry in everything.entries if entry.crap >= 6)
    top = analyse(flagged(module, "--top=3"), compat=compat)
    assert top.entries == everything.entries[:3]
    assert len(analyse(flagged(module, "--min=6", "--top=1000"), compat=compat).entries) == len(worse.entries)
    assert top.summary == worse.summary == everything.summary
    assert len(raw_output(top).entries) == 3


@both
def test_threshold_missing_and_tests_reach_the_engine(module: EngineInput, *, compat: bool) -> None:
    (module.module_dir / "core" / "core_test.go").write_text("package core\n\nfunc helper() {}\n")
    given = flagged(module, "-t", "5.99", "--missing=optimistic", "--include-tests")
    found = analyse(given, compat=compat)
    assert "helper" in names(found)
    assert found.summary.exceeded == sum(entry.crap > 5.99 for entry in found.entries) > 0
    asm = next(entry for entry in found.entries if entry.function == "Asm")
    assert asm.crap == 1.0


def test_an_expression_that_takes_a_backtracking_engine_for_ever_takes_no_time(tmp_path: Path) -> None:
    name = "a" * 100 + "b"
    write_module(tmp_path, {f"{name}.go": F.replace("F(", f"{name}(")})
    given = attrs.evolve(engine_input(tmp_path, profiled=False), options=CrapOptions(exclude=("(a+)+$", "(a|aa)+c")))
    start = time.process_time()
    assert len(analyse(given, compat=False).entries) == 1
    assert time.process_time() - start < 5
