"""The identity of a function by its content, so that it is found again under another name, in another file or format.

The digest covers the tokens of parameters, results and body. Comments, white space, `;` and a comma before a closing bracket
are not in it. The function's own name, its receiver's name and its type parameters are replaced by fixed marks, and the
receiver's type is left out. So only the function's actions count, and the names of its parameters and variables.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec
from tree_sitter import Node

# An unclosed literal or comment is one token to its last possible end. Without a token, each of many quotes would be searched to
# there, which takes quadratic time.
_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|`[^`]*`?|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|[A-Za-z0-9_\x80-\xff]+"
    rb"|<<=|>>=|&\^=|\.\.\.|&&|\|\||<-|\+\+|--|[-=!<>:+*/%&|^]=|<<|>>|&\^|\S",
    re.DOTALL,
)
_CLOSING = frozenset({b")", b"]", b"}"})
_IDENTIFIERS = frozenset({"type_identifier", "identifier"})
DIGEST = 12
"""Bytes of a digest."""
SIGNATURE = 6
"""Bytes of the digest of a signature."""
FEW_TOKENS = 30
"""Functions with fewer tokens are alike by chance: they have no sketch, and are not found again by their content alone."""
GRAM = 4
"""Tokens in a row that a sketch looks at."""
SKETCH = 32
"""Values of a sketch, at most."""
VALUE = 3
"""Bytes of each."""


class Content(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Digest of the normalised function, digest of its signature, number of its tokens, and a sketch of its content.

    The sketch has the least hashes of all runs of GRAM tokens, in rising order. If two functions share half of their runs,
    about half of the values are equal.
    """

    digest: bytes = b""
    signature: bytes = b""
    tokens: int = 0
    sketch: bytes = b""


def content_of(node: Node, source: bytes) -> Content:
    """The content of a function or method declaration."""
    parameters = node.child_by_field_name("parameters")
    assert parameters is not None, "the grammar gives every function parameters"
    marks = _marks(node, source)
    words = _words(source[parameters.start_byte : node.end_byte], marks)
    body = node.child_by_field_name("body")
    ends = node.end_byte if body is None else body.start_byte
    signature = [*_receiver_and_kinds(node, source, marks), *_types(parameters, source, marks)]
    signature += _results(node, source, marks, parameters.end_byte, ends)
    return Content(
        blake2b(b"\0".join(words), digest_size=DIGEST).digest(),
        blake2b(b"\0".join(signature), digest_size=SIGNATURE).digest(),
        len(words),
        _sketch(words) if len(words) >= FEW_TOKENS else b"",
    )


def _words(text: bytes, marks: Mapping[bytes, bytes]) -> list[bytes]:
    words: list[bytes] = []
    for word in _TOKEN.findall(text):
        if word == b";" or word[:2] in (b"//", b"/*"):
            continue
        if word in _CLOSING and words and words[-1] == b",":
            words.pop()
        words.append(marks.get(word, word))
    return words


def _marks(node: Node, source: bytes) -> Mapping[bytes, bytes]:
    """Return the marks that replace irrelevant names."""
    marks: dict[bytes, bytes] = {}
    kinds = node.child_by_field_name("type_parameters")
    names = [] if kinds is None else list(_declared(kinds, source))
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        for parameter in receiver.named_children:
            name = parameter.child_by_field_name("name")
            if name is not None:
                marks[_text(name, source)] = b"\2"
            names += _type_arguments(parameter, source)
    for index, name_ in enumerate(names):
        marks[name_] = b"\3%d" % index
    name = node.child_by_field_name("name")
    if name is not None:
        marks.setdefault(_text(name, source), b"\1")
    marks.pop(b"_", None)
    return marks


def _declared(kinds: Node, source: bytes) -> Iterator[bytes]:
    for declaration in kinds.named_children:
        for name in declaration.children_by_field_name("name"):
            yield _text(name, source)


def _type_arguments(parameter: Node, source: bytes) -> Iterator[bytes]:
    """The type parameters that a generic receiver names."""
    if b"[" not in source[parameter.start_byte : parameter.end_byte]:
        return
    waiting = [parameter]
    while waiting:
        node = waiting.pop()
        if node.type == "type_arguments":
            for argument in node.named_children:
                inner = argument.named_children[0] if argument.type == "type_elem" and argument.named_children else argument
                if inner.type in _IDENTIFIERS:
                    yield _text(inner, source)
            return
        waiting.extend(reversed(node.named_children))


def _receiver_and_kinds(node: Node, source: bytes, marks: Mapping[bytes, bytes]) -> Iterator[bytes]:
    receiver, kinds = node.child_by_field_name("receiver"), node.child_by_field_name("type_parameters")
    if receiver is not None:
        yield b"*" if b"*" in source[receiver.start_byte : receiver.end_byte] else b"value"
    if kinds is not None:
        yield from _words(_text(kinds, source), marks)
    yield b"|"


def _types(parameters: Node, source: bytes, marks: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The type of each parameter, whatever its name."""
    for parameter in parameters.named_children:
        kind = parameter.child_by_field_name("type")
        if kind is None:
            continue
        words = _words(_text(kind, source), marks)
        count = max(len(parameter.children_by_field_name("name")), 1)
        yield from [b"..." if parameter.type == "variadic_parameter_declaration" else b",", *words] * count


def _results(node: Node, source: bytes, marks: Mapping[bytes, bytes], starts: int, ends: int) -> Iterator[bytes]:
    result = node.child_by_field_name("result")
    yield b"|"
    if result is None:
        return
    if result.type == "parameter_list":
        yield from _types(result, source, marks)
    else:
        yield from [b",", *_words(source[starts:ends], marks)]


def _sketch(words: Sequence[bytes]) -> bytes:
    hashes = {zlib.crc32(b"\0".join(words[at : at + GRAM])) >> 8 for at in range(len(words) - GRAM + 1)}
    return b"".join(value.to_bytes(VALUE, "big") for value in sorted(hashes)[:SKETCH])


def _text(node: Node, source: bytes) -> bytes:
    return source[node.start_byte : node.end_byte]
