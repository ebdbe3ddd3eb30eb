"""Complexity, names and places of functions: tables for each rule, and go/parser itself as the reference."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.engines.golang.complexity import Declaration, analyse_source
from gctd.engines.golang.syntax import Unparsable
from tests.gctd.engines.gotool import go

ORACLE = Path(__file__).parent / "oracle" / "main.go"


def functions(text: str, path: str = "p/f.go") -> tuple[Declaration, ...]:
    return analyse_source(path, f"package p\n{text}\n".encode()).declarations


def complexity(body: str) -> int:
    (function,) = functions(f"func F(a, b, c bool, x any, n int, ch chan int) {{\n{body}\n}}")
    return function.cyclomatic


@pytest.mark.parametrize(
    ("body", "added"),
    [
        ("", 0),
        ("if a {}", 1),
        ("if a {} else {}", 1),
        ("if a {} else if b {}", 2),
        ("if a {} else if b {} else {}", 2),
        ("for {}", 1),
        ("for a {}", 1),
        ("for i := 0; i < n; i++ {}", 1),
        ("for range n {}", 1),
        ("for i := range ch { _ = i }", 1),
        ("switch {}", 0),
        ("switch { default: }", 0),
        ("switch n { case 1: case 2, 3, 4: default: }", 2),
        ("switch { case a && b: }", 2),
        ("switch y := x.(type) { case int, string: _ = y; case nil: default: }", 2),
        ("select {}", 0),
        ("select { case <-ch: case ch <- 1: default: }", 2),
        ("_ = a && b", 1),
        ("_ = a || b", 1),
        ("_ = a && b || c", 2),
        ("_ = a && (b || !c)", 2),
        ("_ = n | n & n ^ n &^ n << 1", 0),
        ("_ = func() { if a {} }", 1),
        ("defer func() { for {} }(); go func() { _ = a || b }()", 2),
        ("L: for { continue L; break L; goto L }", 1),
        ("switch { case a: fallthrough; case b: return; default: recover() }", 2),
        ('_ = "if a && b { for {} }" // if a && b', 0),
        ("/* if a || b {} */ _ = `case && ||`", 0),
        ("type T struct{ f func() }; _ = []func(){ func() { if a {} }, func() { if b {} } }", 2),
    ],
)
def test_each_construct_counts_as_the_rule_says(body: str, added: int) -> None:
    assert complexity(body) == 1 + added


def test_decisions_in_a_signature_count_and_those_outside_of_functions_do_not() -> None:
    literal, first, second = functions(
        "var V = func() { if true && false {} }\nfunc F(x [len(T{a && b})]int) {}\nvar _ = true || false\nfunc G() { if true {} }"
    )
    assert (first.cyclomatic, second.cyclomatic) == (2, 2)
    assert (literal.name, literal.cyclomatic, literal.literal, first.literal) == ("V", 3, True, False)


def test_each_function_literal_of_a_variable_has_its_name() -> None:
    found = functions(
        "var (\n\ta, b = func() {}, func() { for {} }\n"
        "\tt = []T{{f: func() { if x {} }}, {f: func() { go func() { for {} }() }}}\n)\n"
        "var _ = 1\nvar c func() = nil\n//gocyclo:ignore\nvar d = func() {}\n"
    )
    assert [(one.name, one.cyclomatic, one.ignored) for one in found] == [
        *(("a", 1, False), ("b", 2, False), ("t", 2, False), ("t", 2, False), ("d", 1, True)),
    ]


@pytest.mark.parametrize(
    ("receiver", "text", "gocrap", "key"),
    [
        ("T", "T", "T", "T"),
        ("t T", "T", "T", "T"),
        ("t *T", "*T", "*T", "*T"),
        ("t /* why */ * /* not */ T", "*T", "*T", "*T"),
        ("t pkg.T", "pkg.T", "pkg.T", "pkg"),
        ("t *pkg.T", "*pkg.T", "*pkg.T", "*pkg"),
        ("t T[K]", "T[K]", "T[K]", ""),
        ("t *T[K]", "*T[K]", "*T[K]", ""),
        ("t T[*K]", "T[*K]", "T[*K]", ""),
        ("t T[pkg.K]", "T[pkg.K]", "T[pkg.K]", ""),
        ("t T[K, V]", "T[K, V]", "<unknown>", ""),
        ("t *T[ K,V ]", "*T[K, V]", "*<unknown>", ""),
        ("t T[[]K]", "T[[]K]", "T[<unknown>]", ""),
        ("t (T)", "T", "<unknown>", ""),
        ("t *(T)", "*T", "*<unknown>", ""),
        ("t (*T)", "*T", "<unknown>", ""),
        ("t **T", "**T", "**T", ""),
        ("t Größe", "Größe", "Größe", "Größe"),
    ],
)
def test_receivers_in_full_as_go_crap_prints_them_and_as_it_files_coverage(
    receiver: str, text: str, gocrap: str, key: str
) -> None:
    (method,) = functions(f"func ({receiver}) M() {{}}")
    assert method.receiver is not None
    assert (method.name, method.receiver.text, method.receiver.gocrap, method.receiver.coverage_key) == ("M", text, gocrap, key)


def test_functions_and_methods_without_receiver_type_have_none() -> None:
    assert [function.receiver for function in functions("func F() {}\nfunc () G() {}")] == [None, None]


def test_places_count_from_one_in_bytes_and_end_after_the_last_byte() -> None:
    one, two, three = functions('var ä = "ä"; func F() { _ = "ä" }\nfunc G(\n\ta int,\n) {\n}\nfunc Assembly(x int) bool')
    assert (one.start, one.end, one.opens, one.closes) == ((2, 16), (2, 37), 2, 2)
    assert (two.start, two.end, two.opens, two.closes) == ((3, 1), (6, 2), 5, 6)
    assert (three.start, three.end, three.opens, three.closes, three.cyclomatic) == ((7, 1), (7, 26), 0, 0, 1)


@pytest.mark.parametrize(
    ("before", "ignored"),
    [
        ("//go-crap:ignore\n", True),
        ("//gocyclo:ignore\n", True),
        ("//go-crap:ignore  \n", True),
        ("\t//go-crap:ignore\r\n", True),
        ("// F does it.\n//\n//go-crap:ignore\n", True),
        ("//go-crap:ignore\n// F does it.\n", True),
        ("//go-crap:ignore\n/* F\n does it. */\n", True),
        ("// go-crap:ignore\n", False),
        ("//go-crap:ignore because\n", False),
        ("//go-crap:ignore\n\n", False),
        ("/*\n//go-crap:ignore\n*/\n", False),
        ("/*go-crap:ignore*/\n", False),
        ("//go-crap:ignore\n\n// F does it.\n", False),
        ("var v int //go-crap:ignore\n", False),
        ("var v int; //go-crap:ignore\n", False),
        ("var v int //go-crap:ignore\n// F does it.\n", False),
        ("//go-crap:ignore\n/* F */ ", False),
        ("//go-crap:ignored\n", False),
        ("//go-crap:ignore\n//line x.go:50\n", True),
        ("//go-crap:ignore\n/*line x.go:2*/\n\n", False),
        ("/* F */ //go-crap:ignore\n", True),
        ("/* F\n*/ //go-crap:ignore\n", True),
        ("var v int /* v */ //go-crap:ignore\n", False),
        ("var v int /* v\n*/ //go-crap:ignore\n", False),
        ("var v int /* v\n*/\n//go-crap:ignore\n", True),
    ],
)
def test_an_ignore_directive_is_a_line_of_the_doc_comment(before: str, *, ignored: bool) -> None:
    *_, function = functions(f"{before}func F() {{}}")
    assert function.ignored is ignored


def test_line_directives_give_the_places_that_the_tools_print() -> None:
    plain, relative, absolute, inline, column = functions(
        "func Plain() {}\n"
        "//line x/../gen.y:100\nfunc Relative() {\n}\n"
        "//line /abs/gen.y:7\nfunc Absolute() {\n//line gen.y:50\n\tx()\n}\n"
        "/*line gen.y:9:3*/func Inline() {}\n"
        "//line :20:1\nfunc Column() {}",
        path="dir/f.go",
    )
    assert plain.printed is not None
    assert (plain.printed.file, plain.printed.first, plain.printed.spans) == (None, 2, ((2, 2),))
    assert relative.printed is not None
    assert (relative.printed.file, relative.printed.first, relative.printed.closes) == ("dir/gen.y", 100, 101)
    assert relative.start == (4, 1)
    assert absolute.printed is not None
    assert (absolute.printed.file, absolute.printed.first, absolute.printed.closes) == ("/abs/gen.y", 7, 51)
    assert absolute.printed.spans == ((7, 8), (50, 51))
    assert inline.printed is not None
    assert (inline.printed.file, inline.printed.first) == ("dir/gen.y", 9)
    assert column.printed is not None
    assert (column.printed.file, column.printed.first) == ("dir/gen.y", 20)


@pytest.mark.parametrize("comment", ["//line gen.y", " //line gen.y:3", "// line gen.y:3", "//lines gen.y:3", "/*line*/"])
def test_other_comments_are_no_line_directives(comment: str) -> None:
    (function,) = functions(f"{comment}\nfunc F() {{}}")
    assert function.printed is None


@pytest.mark.parametrize("directive", ["//line gen.y:0", "//line gen.y:x", "//line gen.y:1:0", "//line gen.y:", "/*line a:b*/"])
def test_a_line_directive_that_go_refuses_makes_the_file_unparsable(directive: str) -> None:
    with pytest.raises(Unparsable, match=r"line 2: invalid (line|column) number"):
        functions(f"{directive}\nfunc F() {{}}")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "line 1: expected a package clause"),
        (b"// only a comment\n", "line 1: expected a package clause"),
        (b"func F() {}\n", "line 1: unexpected function declaration"),
        (b"func F() {}\npackage p\n", "line 1: unexpected function declaration"),
        (b"package p\npackage q\n", "line 2: unexpected package clause"),
        (b"package p\nfunc F() {\n", "syntax error"),
        (b"package p\nfunc F() {}\n}\n", "line 3: syntax error"),
        (b"package p\nvar x int\n;\n", "line 3: unexpected empty statement"),
        (b"package p\n\nx := 1\n", "line 3: unexpected short var declaration"),
        (b'package p\nfunc F() {}\nimport "fmt"\n', "line 3: unexpected import declaration"),
        (b'package p\nvar s = "\xff"\n', "line 2: not UTF-8"),
        (b"package p\n// \0\n", "line 2: a NUL character"),
        (b"package p\n// \xef\xbb\xbf\n", "a byte order mark in the middle"),
    ],
)
def test_a_file_that_is_no_go_is_refused_with_the_line(source: bytes, reason: str) -> None:
    with pytest.raises(Unparsable, match=reason):
        analyse_source("f.go", source)


def test_a_byte_order_mark_at_the_start_and_crlf_are_go() -> None:
    parsed = analyse_source("f.go", b"\xef\xbb\xbf/* c */ package /* d */ p // e\r\n\r\nfunc F() {}\r\n")
    assert (parsed.package, parsed.declarations[0].start) == ("p", (3, 1))


@pytest.mark.parametrize("call", ["new(1)", "new(f(x))", 'new("if")', "new(a && b)", "new(T{1})", "make(n - 1)", "new(int64(3))"])
def test_new_and_make_may_take_values(call: str) -> None:
    (function,) = functions(
        f"func new(x int) {{ _ = {call}; _ = new(T); _ = make([]int, 3); _ = new(chan<- int); _ = new(func()) }}"
    )
    assert (function.name, function.cyclomatic) == ("new", 2 if "&&" in call else 1)


@pytest.mark.parametrize(
    ("head", "receiver", "name"),
    [
        ("func (o Option[T]) Map[U any](f func(T) U)", "Option[T]", "Map"),
        ("func (o *Pair[A, B]) Zip [\n\tK comparable,\n\tV ~[]K | [2]int,\n](k K)", "*Pair[A, B]", "Zip"),
        ("func (Option[T]) Get()", "Option[T]", "Get"),
    ],
)
def test_methods_may_have_type_parameters(head: str, receiver: str, name: str) -> None:
    source = f"package p\n\nfunc (o Option[T]) First[A any]() {{}}\n{head} bool {{ return a && b }}\n\nfunc Last() {{}}\n"
    first, method, last = analyse_source("f.go", source.encode()).declarations
    assert first.name == "First"
    assert (method.receiver and method.receiver.text, method.name, method.cyclomatic) == (receiver, name, 2)
    assert (method.start, method.end[0]) == ((4, 1), 4 + head.count("\n"))
    assert last.start[0] == 6 + head.count("\n")


def test_a_tree_up_to_the_limit_is_counted_right_and_a_deeper_one_is_refused() -> None:
    depth = 15_000
    (function,) = functions("func F() {" + "if a {" * depth + "}" * depth + "}")
    assert function.cyclomatic == 1 + depth
    with pytest.raises(Unparsable, match="nested more than 50000 deep"):
        functions("func F() {" + "if a {" * 2 * depth + "}" * 2 * depth + "}")


def test_the_limit_on_nesting_counts_each_level() -> None:
    def is_refused(parentheses: int) -> bool:
        try:
            analyse_source("f.go", b"package p\nvar x = " + b"(" * parentheses + b"1" + b")" * parentheses, nesting=100)
        except Unparsable:
            return True
        return False

    deepest = 95  # below the file, its declaration, the value spec, the list; the number is a separate level
    assert [is_refused(deepest), is_refused(deepest + 1)] == [False, True]


@pytest.mark.parametrize(
    "hostile",
    [
        b"var x = " + b"(" * 100_000,
        b"var x = 1" + b" && 1" * 100_000,
        b"var x = " + b"!" * 40_000 + b"a",
        b"func (t " + b"*" * 40_000 + b"T) F() {}",
        b"func F() { " + b") } if case ( func" * 20_000,
        b"var s = `" + b"x" * 1_000_000,
        b"//go-crap:ignore\n" * 100_000 + b"func F() {}",
        b"/**/" * 100_000 + b"//go-crap:ignore\nfunc F() {}",
        b"//line x.go:1\n" * 100_000 + b"func F() {}",
        b"func F() {}\n" * 50_000,
        b"\nfunc (t T) F[" * 100_000,
        b"func F() { f('\n', '\"'" + b", '\\\"'" * 33_000 + b") }",
    ],
    ids=[
        "open",
        "chain",
        "unary",
        "receiver",
        "garbage",
        "unterminated",
        "ignores",
        "comments",
        "directives",
        "functions",
        "parameters",
        "quotes",
    ],
)
def test_hostile_sources_end_soon(hostile: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(Unparsable):
        analyse_source("f.go", b"package p\n" + hostile + b"\n")
    assert time.process_time() - started < 5


@given(st.binary(max_size=200) | st.text(alphabet="(){}[];,.*&|\n \t/\"'`afuncriepkgs:=<-", max_size=200).map(str.encode))
def test_any_bytes_either_parse_or_are_refused(source: bytes) -> None:
    for text in (source, b"package p\n" + source, b"package p\nfunc F() {" + source + b"}\n"):
        with contextlib.suppress(Unparsable):
            assert all(function.cyclomatic >= 1 for function in analyse_source("f.go", text).declarations)


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("folders", "least"),
    [
        (("strings", "text"), 500),
        pytest.param(
            ("go", "net", "encoding", "text", "strings", "runtime", "slices", "database"), 10_000, marks=pytest.mark.long
        ),
    ],
    ids=["two folders", "most of it"],
)
def test_go_parser_sees_the_same_functions_in_the_standard_library(tmp_path: Path, folders: Sequence[str], least: int) -> None:
    """Accepted files, packages, names, places, complexity, ignore directives, printed places: all as go/parser has them."""
    root = Path(go("env", "GOROOT", directory=tmp_path).strip()) / "src"
    files = [str(file) for folder in folders for file in sorted((root / folder).rglob("*.go")) if file.is_file()]
    reference = go("run", str(ORACLE), directory=tmp_path, text="\n".join(files))
    compared = 0
    for line in reference.splitlines():
        theirs = json.loads(line)
        ours = _as_the_reference(theirs["Path"])
        assert ours == (None if theirs["Error"] else theirs)
        compared += len(theirs["Functions"] or ())
    assert compared > least


def _as_the_reference(path: str) -> dict[str, object] | None:
    try:
        parsed = analyse_source(path, Path(path).read_bytes())
    except Unparsable:
        return None
    return {
        "Path": path,
        "Error": "",
        "Package": parsed.package,
        "Functions": [_function(path, declaration) for declaration in parsed.functions] or None,
    }


def _function(path: str, declaration: Declaration) -> dict[str, object]:
    printed = declaration.printed
    return {
        "Name": declaration.name,
        "Method": declaration.receiver is not None,
        "Line": declaration.start[0],
        "Column": declaration.start[1],
        "EndLine": declaration.end[0],
        "EndColumn": declaration.end[1],
        "Printed": (printed and printed.file) or path,
        "PrintedAt": printed.first if printed else declaration.start[0],
        "Complexity": declaration.cyclomatic,
        "Ignored": declaration.ignored,
        "Body": declaration.opens > 0,
    }
