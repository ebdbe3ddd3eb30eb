"""Receivers of methods: as go-crap prints them, and as its coverage side tells them apart."""

from __future__ import annotations

import functools
import re

import msgspec
from tree_sitter import Node

from gctd.engines.golang.syntax import text_of

_UNKNOWN = "<unknown>"
_KEY = re.compile(r"(\*?\w+)(?:\.\w+)?")
_SPACES = re.compile(r"\s+")
_MOST_NODES = 200


class Receiver(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A receiver's type.

    `text` is go-crap's form (`T`, `*T`, `pkg.T`, `T[K]`) with every type parameter (`T[K, V]`) and without needless
    parentheses; `gocrap` is what go-crap itself prints, which has `<unknown>` for those.
    """

    text: str
    gocrap: str

    @property
    def coverage_key(self) -> str:
        """The type under which go-crap's coverage side files a method; empty for generic types, which it does not recognise."""
        return _coverage_key(self.gocrap)


@functools.lru_cache(maxsize=4096)
def _coverage_key(text: str) -> str:
    match = _KEY.fullmatch(text)
    return "" if match is None else match[1]


def receiver_of(parameters: Node, source: bytes) -> Receiver | None:
    """The receiver in a method's first parameter list, or None for an empty list."""
    for parameter in parameters.named_children:
        kind = parameter.child_by_field_name("type")
        if kind is not None:
            if kind.descendant_count > _MOST_NODES:
                return Receiver(_UNKNOWN, _UNKNOWN)
            variadic = parameter.type == "variadic_parameter_declaration"
            return Receiver(_full(kind, source), _UNKNOWN if variadic else _gocrap(kind, source))
    return None


def _gocrap(node: Node, source: bytes) -> str:
    parts = [child for child in node.named_children if child.type != "comment"]
    match node.type, parts:
        case "type_identifier", _:
            return text_of(node, source)
        case "qualified_type", [package, name]:
            return f"{text_of(package, source)}.{text_of(name, source)}"
        case "pointer_type", [inner]:
            return "*" + _gocrap(inner, source)
        case "generic_type", [inner, arguments]:
            kinds = [child for child in arguments.named_children if child.type != "comment"]
            return f"{_gocrap(inner, source)}[{_gocrap(kinds[0], source)}]" if len(kinds) == 1 else _UNKNOWN
        case "type_elem", [inner]:
            return _gocrap(inner, source)
        case _:
            return _UNKNOWN


def _full(node: Node, source: bytes) -> str:
    parts = [child for child in node.named_children if child.type != "comment"]
    match node.type, parts:
        case "type_identifier", _:
            return text_of(node, source)
        case "qualified_type", [package, name]:
            return f"{text_of(package, source)}.{text_of(name, source)}"
        case "pointer_type", [inner]:
            return "*" + _full(inner, source)
        case "generic_type", [inner, arguments]:
            kinds = [child for child in arguments.named_children if child.type != "comment"]
            return f"{_full(inner, source)}[{', '.join(_full(kind, source) for kind in kinds)}]"
        case (("type_elem" | "parenthesized_type"), [inner]):
            return _full(inner, source)
        case _:
            return _SPACES.sub(" ", text_of(node, source))
