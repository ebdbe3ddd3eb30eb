"""Real tests of a real module, by the real Go toolchain: statement coverage is what `go tool cover -func` prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gctd.engines.gocrap.differences import LITERAL
from gctd.engines.native import NativeEngine
from gctd.engines.report import Report
from tests.gctd.engines.gotool import go
from tests.gctd.engines.modules import FIXTURE, MODULE, PROFILE, engine_input, write_module

pytestmark = [pytest.mark.timeout(600), pytest.mark.real]

_LINE = re.compile(rf"{re.escape(MODULE)}/(.+):(\d+):\s+(\S+)\s+([0-9.]+)%")

CORE_TEST = """package core

import "testing"

func TestCore(t *testing.T) {
	_ = A{1}.String()
	Close(1)
	(&B{5}).Open()
	Closures(1)
	c := make(chan int, 1)
	c <- 1
	Sel(c, nil)
	TypeSw(1)
	NotIgnored1(1)
	NotIgnored2(1)
	OneLine(1)
	Three(2)
	P()
	Empty()
	Comments(1)
}
"""
GEN_TEST = """package gen

import "testing"

func TestGen(t *testing.T) {
	(&T[int]{}).Get(1)
	Map(map[int]int{1: 1}, func(int) bool { return true })
}
"""
USER = """package user

import "example.com/fx/core"

type Visitor func(int) int

func (v Visitor) Visit(numbers ...int) (sum int) {
	for _, n := range numbers {
		switch {
		case n < 0:
			continue
		case n > 100 && sum > 0:
			return sum
		}
		sum += v(n)
	}
	return
}

func _() { _ = core.A{} }

func Assembly(x int) int

func Use() int { return core.Close(3) + func() int { return core.Close(9) }() }
"""
USER_TEST = """package user

import "testing"

func TestUse(t *testing.T) {
	Use()
	Visitor(func(n int) int { return n }).Visit(1, 2)
}
"""
LINED = """package line

func Before(x int) int { return x }

//line foo.y:100
func L(x int) int {
	if x > 0 {
		return 1
	}
	return 0
}

//line bar.y:20
func M(x int) int {
	if x > 0 {
//line other.y:7
		return 1
	}
	return 0
}
"""
LINED_TEST = """package line

import "testing"

func TestL(t *testing.T) {
	L(1)
	M(0)
}
"""


def write_tested_module(directory: Path) -> None:
    write_module(
        directory,
        {
            "core/core.go": (FIXTURE / "core.go").read_text(),
            "core/core_test.go": CORE_TEST,
            "gen/gen.go": (FIXTURE / "gen.go").read_text(),
            "gen/gen_test.go": GEN_TEST,
            "user/user.go": USER,
            "user/user.s": "",
            "user/user_test.go": USER_TEST,
            "untested/z.go": (FIXTURE / "z.go").read_text(),
        },
    )


def printed(directory: Path) -> dict[tuple[str, int, str], str]:
    """Return the output of `go tool cover -func`: percent by file, line and name."""
    lines = go("tool", "cover", f"-func={PROFILE}", directory=directory).splitlines()
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    assert len(matches) == len(lines) - 1, "all but the total are functions"
    return {(match[1], int(match[2]), match[3]): match[4] for match in matches}


def ours(report: Report) -> dict[tuple[str, int, str], str]:
    """The same of a report. Go measures no function `_` and prints 0 %; it prints no function literal."""
    functions = [e for e in report.entries if e.differs is None or e.differs.reason != LITERAL]
    percents = {(e.file, e.line, e.name): 0.0 if e.name == "_" else e.stmt_coverage for e in functions}
    return {place: f"{percent:.1f}" for place, percent in percents.items() if percent is not None}


def settled(report: Report) -> dict[str, float | None]:
    """Coverage by function, without the one that leaves a goroutine behind, which may or may not run."""
    return {entry.function: entry.coverage for entry in report.entries if entry.name != "Closures"}


@pytest.mark.parametrize("flags", [["-covermode=set"], ["-covermode=count"], ["-covermode=atomic", "-coverpkg=./..."]])
def test_statement_coverage_equals_that_of_go_tool_cover(tmp_path: Path, flags: list[str]) -> None:
    write_tested_module(tmp_path)
    go("test", *flags, f"-coverprofile={PROFILE}", "./...", directory=tmp_path)
    reference = printed(tmp_path)
    report = NativeEngine().analyse(engine_input(tmp_path))
    for ignored in ("Ignored1", "Ignored2"):
        reference = {place: percent for place, percent in reference.items() if place[2] != ignored}
    assert ours(report) == reference
    assert len(reference) == 32
    assert report.profile is not None
    assert report.profile.mode == flags[0].removeprefix("-covermode=")


def test_the_profile_of_the_fixture_comes_out_of_real_tests_again(tmp_path: Path) -> None:
    write_tested_module(tmp_path)
    go("test", f"-coverprofile={PROFILE}", "./core", "./gen", directory=tmp_path)
    real = NativeEngine(compat=True).analyse(engine_input(tmp_path))
    measured = (FIXTURE / "cover.out").read_text()
    (tmp_path / PROFILE).write_text(measured)
    recorded = NativeEngine(compat=True).analyse(engine_input(tmp_path))
    assert settled(real) == settled(recorded)


def test_coverage_behind_line_directives_finds_its_functions(tmp_path: Path) -> None:
    write_module(tmp_path, {"line/l.go": LINED, "line/l_test.go": LINED_TEST})
    go("test", f"-coverprofile={PROFILE}", "./...", directory=tmp_path)
    report = NativeEngine().analyse(engine_input(tmp_path))
    assert {(entry.name, entry.file, entry.line): entry.coverage for entry in report.entries} == {
        ("Before", "line/l.go", 3): 0.0,
        ("L", "line/l.go", 6): pytest.approx(200 / 3),
        ("M", "line/l.go", 14): pytest.approx(200 / 3),
    }
    assert report.warnings == ()
