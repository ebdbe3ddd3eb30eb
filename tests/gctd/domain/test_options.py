"""Options of a scan: a flag is on the list, or refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.domain.errors import BadInput
from gctd.domain.options import (
    CrapOptions,
    format_duration,
    parse_crap_args,
    parse_duration,
    parse_go_flags,
    parse_test_args,
)

REFUSED = [
    ("-exec=/tmp/x", "-exec"),
    ("-exec /tmp/x", "-exec"),
    ("--exec=/tmp/x", "--exec"),
    ("-toolexec=/tmp/x", "-toolexec"),
    ("-o /tmp/x", "-o"),
    ("-o=/tmp/x", "-o"),
    ("-coverprofile=/etc/passwd", "-coverprofile"),
    ("-cpuprofile=/etc/passwd", "-cpuprofile"),
    ("-memprofile /etc/passwd", "-memprofile"),
    ("-outputdir=/", "-outputdir"),
    ("-test.testlogfile=/etc/passwd", "-test.testlogfile"),
    ("-overlay=/tmp/x", "-overlay"),
    ("-modfile=/tmp/x", "-modfile"),
    ("-C /", "-C"),
    ("-ldflags=-extld=/tmp/x", "-ldflags"),
    ("-gcflags=-d=x", "-gcflags"),
    ("-gccgoflags=x", "-gccgoflags"),
    ("-asmflags=x", "-asmflags"),
    ("-pkgdir=/tmp", "-pkgdir"),
    ("-buildmode=plugin", "-buildmode"),
    ("-compiler=gccgo", "-compiler"),
    ("-fuzz=.", "-fuzz"),
    ("-bench=.", "-bench"),
    ("-c", "-c"),
    ("-json", "-json"),
    ("-args x", "-args"),
    ("-short -exec=/tmp/x", "-exec"),
    ("-short=x", "-short"),
    ("-race=1", "-race"),
    ("-mod=/tmp", "-mod"),
    ("-count=0", "-count"),
    ("-count=1000000", "-count"),
    ("-count=x", "-count"),
    ("-p=-1", "-p"),
    ("-timeout=0", "-timeout"),
    ("-timeout=100h", "-timeout"),
    ("-tags=a$(touch)", "-tags"),
    ("-coverpkg=../x", "-coverpkg"),
    ("-coverpkg=/etc", "-coverpkg"),
    ("-covermode=x", "-covermode"),
    ("-vet=/tmp/x", "-vet"),
    ("-run", "-run"),
    ("./...", "./..."),
    ("--", "--"),
    ("-", "-"),
    ("$(touch pwn)", "$(touch"),
    ("; touch pwn", ";"),
    ("-run 'x", "quotation"),
    ("-run=\x00", "control"),
    ("-run=a\n-exec=b", "control"),
    ("-short " * 400, "longer"),
]


@pytest.mark.parametrize(("text", "named"), REFUSED)
@pytest.mark.parametrize("parse", [parse_test_args, parse_go_flags])
def test_a_flag_that_is_not_listed_is_refused_by_name(parse: Callable[[str], tuple[str, ...]], text: str, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert caught.value.field in ("test_args", "go_flags")
    assert named in caught.value.reason


def test_listed_flags_come_out_one_argument_each() -> None:
    text = (
        " -race  --short -run 'TestA|TestB c' -tags=a,b -timeout 30m -coverpkg=./...,example.com/x -v=false -mod vendor -vet=off "
    )
    assert parse_test_args(text) == (
        "-race",
        "-short",
        "-run=TestA|TestB c",
        "-tags=a,b",
        "-timeout=30m",
        "-coverpkg=./...,example.com/x",
        "-v=false",
        "-mod=vendor",
        "-vet=off",
    )
    assert parse_test_args("") == ()


def test_the_value_of_a_flag_never_becomes_a_flag() -> None:
    assert parse_test_args("-run -exec=/tmp/x") == ("-run=-exec=/tmp/x",)


def test_goflags_have_no_spaces_in_values() -> None:
    assert parse_go_flags("-race -run=A") == ("-race", "-run=A")
    with pytest.raises(BadInput, match="-run"):
        parse_go_flags("-run 'A -exec=x'")


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("1h30m", 5400), ("90s", 90), ("1500ms", 1.5), ("1.5h", 5400), ("24h", 86400)]
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "m", "-1m", "1d", "1 m", "1e3s", "0s", "999ms", "25h", "1m ", "\u0661m", "9" * 50 + "s", "nan", "infs"]
)
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_duration(text, field="git_timeout")
    assert caught.value.field == "git_timeout"


@given(st.integers(1000, 86_400_000))
def test_a_duration_is_written_as_it_is_read(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


def test_options_of_the_report() -> None:
    options = parse_crap_args(
        ["-t", "20", "--missing=skip", "--exclude", "gen_.*", "--exclude=x", "--include-tests", "--min=1.5", "--top=9"]
    )
    assert options == CrapOptions(threshold=20, missing="skip", exclude=("gen_.*", "x"), include_tests=True, least=1.5, top=9)
    assert parse_crap_args(options.argv()) == options
    assert parse_crap_args([]) == CrapOptions()
    assert CrapOptions().argv() == ()


@given(st.decimals(0, 999_999_999, places=3), st.decimals(0, 999_999_999, places=9))
def test_numbers_are_written_as_they_are_read(threshold: Decimal, least: Decimal) -> None:
    options = parse_crap_args([f"--threshold={threshold:f}", f"--min={least:f}"])
    assert parse_crap_args(options.argv()) == options


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "/etc/passwd"],
        ["--output=/etc/passwd"],
        ["--coverage-profile=/etc/passwd"],
        ["--mutation-report=/etc/passwd"],
        ["--baseline=/etc/passwd"],
        ["--format=sarif"],
        ["--verbose"],
        ["--timeout=1h"],
        ["--threshold=x"],
        ["--threshold=-1"],
        ["--threshold=inf"],
        ["--missing=x"],
        ["--exclude=("],
        ["--exclude=(?=x)"],
        ["--exclude=(x)\\1"],
        ["--exclude=((x{1000}){1000}){1000}"],
        ["--exclude=" + "x" * 201],
        ["--top"],
        ["./core"],
        ["--include-tests=maybe"],
        ["--min=1"] * 101,
    ],
)
def test_other_options_of_the_report_are_refused(arguments: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        parse_crap_args(arguments)
    assert caught.value.field == "crap_args"
