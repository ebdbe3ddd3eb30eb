"""Cyclomatic complexity of the functions of one Go source file, by tree-sitter-go.

The counting rule is gocyclo's and go-crap's: one, and one more for each `if`, `for`, `case` of a switch or select, `&&` and
`||`, function literals included.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from tree_sitter import Node, Query, QueryCursor, Tree

from gctd.engines.golang import lines
from gctd.engines.golang.constraints import constraint_in
from gctd.engines.golang.identity import Content, content_of
from gctd.engines.golang.ignores import ignored_functions
from gctd.engines.golang.lines import LineMap
from gctd.engines.golang.receivers import Receiver, receiver_of
from gctd.engines.golang.syntax import GO, Unparsable, line_of, syntax_tree, text_of

# Tokens, not the statements around them: each counted construct has exactly one, and patterns of a single node keep the
# query linear, where `(binary_expression operator: ...)` takes quadratic time on a long chain of operators.
_DECISIONS = Query(GO, '["if" "for" "case" "&&" "||"] @decision')
_LITERALS = Query(GO, "(func_literal) @literal")
_COMMENTS = Query(GO, "(comment) @comment")
_TOP_LEVEL = {
    "package_clause": 0,
    "import_declaration": 1,
    "const_declaration": 2,
    "type_declaration": 2,
    "var_declaration": 2,
    "function_declaration": 2,
    "method_declaration": 2,
}
_GENERATED = re.compile(rb"^(?:\xef\xbb\xbf)?// Code generated .* DO NOT EDIT\.\r?$", re.MULTILINE)
_FUNCTIONS = frozenset({"function_declaration", "method_declaration"})


class Printed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The place of a declaration that the Go tools print, under the file's `//line` directives.

    `file` is None for the source file itself. `first`, `last`, `opens` and `closes` are the lines of `func`, of the end, of `{`
    and of `}`. `spans` are the line ranges of the body.
    """

    file: str | None
    first: int
    last: int
    opens: int
    closes: int
    spans: tuple[tuple[int, int], ...]


class Declaration(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A function or method declared at the top of a file, or a function literal in the value of a variable there.

    Such a `literal` has the name of the variable, and the literals in it are its own code.

    Lines and columns count from 1, columns in bytes; `end` is the place after the last byte. `opens` and `closes` are the lines
    of the body's braces, 0 if the declaration has no body. `ignored`: a comment takes it out of the report.
    """

    name: str
    receiver: Receiver | None
    cyclomatic: int
    start: tuple[int, int]
    end: tuple[int, int]
    opens: int
    closes: int
    ignored: bool = False
    printed: Printed | None = None
    content: Content = Content()
    literal: bool = False


class SourceFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Result of the analysis of one file: its package clause and its declarations in order.

    `functions` are the declarations without the literals in variables.
    `generated`: a program wrote it, by the comment that Go has for that. `constraint` is its build constraint. `cgo`: it imports
    "C".
    """

    package: str
    declarations: tuple[Declaration, ...]
    generated: bool = False
    constraint: str = ""
    cgo: bool = False

    @property
    def functions(self) -> tuple[Declaration, ...]:
        return tuple(one for one in self.declarations if not one.literal)


def analyse_source(path: str, source: bytes, *, nesting: int = 50_000) -> SourceFile:
    """The functions of a Go source file.

    `path` is relative to the module, with forward slashes; it only serves to name the files of `//line` directives.
    `nesting` is the greatest depth of the syntax tree. Raises Unparsable.
    """
    tree = syntax_tree(source, nesting=nesting)
    children = tree.root_node.children
    package, functions = _top_level(children)
    decisions = sorted(node.start_byte for node in QueryCursor(_DECISIONS).captures(tree.root_node).get("decision", ()))
    line_map = _line_map(path, source, tree) if lines.may_have_directives(source) else LineMap()
    ignored = ignored_functions(children, source)
    declarations = tuple(
        _declaration(node, name, source, decisions, line_map, ignored=owner.start_byte in ignored)
        for owner in functions
        for node, name in _named(owner, source)
    )
    header = source[: package.start_byte]
    header = header[: header.rindex(b"package")]
    return SourceFile(
        text_of(package, source),
        declarations,
        generated=b"DO NOT EDIT" in header and _GENERATED.search(header) is not None,
        constraint=constraint_in(header),
        cgo=any(node.type == "import_declaration" and b'"C"' in source[node.start_byte : node.end_byte] for node in children),
    )


def _top_level(children: Iterable[Node]) -> tuple[Node, Sequence[Node]]:
    """The package's name, and the declarations with code; the grammar lets statements and any order of declarations pass here."""
    package = None
    functions = []
    reached = 0
    for node in children:
        kind = node.type
        if kind == "comment" or not node.is_named:
            continue
        rank = _TOP_LEVEL.get(kind, -1)
        if rank < reached or (package is None) != (rank == 0):
            raise Unparsable(f"line {line_of(node)}: unexpected {kind.replace('_', ' ')}")
        reached = rank
        if package is None:
            package = next(child for child in node.named_children if child.type == "package_identifier")
        elif kind in _FUNCTIONS or kind == "var_declaration":
            functions.append(node)
    if package is None:
        raise Unparsable("line 1: expected a package clause")
    return package, functions


def _named(node: Node, source: bytes) -> Iterator[tuple[Node, str]]:
    """The function of a declaration, or the outermost function literals of variables, each with its name."""
    if node.type in _FUNCTIONS:
        name = node.child_by_field_name("name")
        assert name is not None, "the grammar gives every function a name"
        yield node, text_of(name, source)
        return
    if b"func" not in source[node.start_byte : node.end_byte]:
        return
    literals = QueryCursor(_LITERALS).captures(node).get("literal", [])
    variables = [(value.start_byte, text_of(name, source)) for name, value in _variables(node)]
    end = 0
    for literal in sorted(literals, key=lambda one: one.start_byte):
        at = bisect_right(variables, literal.start_byte, key=lambda one: one[0]) - 1
        if literal.start_byte >= end and at >= 0:  # a literal in a type has no value before it
            end = literal.end_byte
            yield literal, variables[at][1]


def _variables(node: Node) -> Iterator[tuple[Node, Node]]:
    """The names of a declaration of variables, each with its value."""
    lists = [child for child in node.named_children if child.type == "var_spec_list"]
    for spec in (child for parent in (node, *lists) for child in parent.named_children if child.type == "var_spec"):
        values = spec.child_by_field_name("value")
        if values is not None:
            yield from zip(spec.children_by_field_name("name"), values.named_children, strict=False)


def _declaration(
    node: Node, name: str, source: bytes, decisions: Sequence[int], line_map: LineMap, *, ignored: bool
) -> Declaration:
    receiver = node.child_by_field_name("receiver")
    body = node.child_by_field_name("body")
    start, end = node.start_point, node.end_point
    count = bisect_left(decisions, node.end_byte) - bisect_left(decisions, node.start_byte)
    return Declaration(
        name=name,
        receiver=None if receiver is None else receiver_of(receiver, source),
        cyclomatic=1 + count,
        start=(start.row + 1, start.column + 1),
        end=(end.row + 1, end.column + 1),
        opens=0 if body is None else body.start_point.row + 1,
        closes=0 if body is None else body.end_point.row + 1,
        ignored=ignored,
        printed=_printed(node, body, line_map) if line_map.directives else None,
        content=content_of(node, source),
        literal=node.type not in _FUNCTIONS,
    )


def _printed(node: Node, body: Node | None, line_map: LineMap) -> Printed:
    place = line_map.place(node.start_byte, line_of(node))
    last = line_map.place(node.end_byte, node.end_point.row + 1).line
    if body is None:
        return Printed(place.file, place.line, last, 0, 0, ())
    closes = body.end_point.row + 1
    return Printed(
        place.file,
        place.line,
        last,
        line_map.place(body.start_byte, line_of(body)).line,
        line_map.place(body.end_byte - 1, closes).line,
        line_map.spans(body.start_byte, line_of(body), body.end_byte, closes),
    )


def _line_map(path: str, source: bytes, tree: Tree) -> LineMap:
    comments = QueryCursor(_COMMENTS).captures(tree.root_node).get("comment", [])
    return LineMap(tuple(_directives(path, source, sorted(comments, key=lambda node: node.start_byte))))


def _directives(path: str, source: bytes, comments: Sequence[Node]) -> Iterator[lines.LineDirective]:
    directory, file = posixpath.dirname(path), path
    for node in comments:
        start, end = node.start_byte, node.end_byte
        if source.startswith(b"//", start):
            if node.start_point.column:
                continue
            holds, line = end + 1, node.end_point.row + 2
        else:
            holds, line = end, node.end_point.row + 1
        try:
            found = lines.directive_of(source[start:end], holds, line, directory, file)
        except lines.InvalidDirective as error:
            raise Unparsable(f"line {line_of(node)}: {error}") from None
        if found is not None:
            file = found.file
            yield found
