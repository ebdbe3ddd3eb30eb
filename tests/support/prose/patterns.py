"""The patterns of unnatural prose. `docs/style.md` has an example and a better wording for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from tests.support.prose.texts import Text

_START = r"(?:^|(?<=[.:!?]\s))"
"""The beginning of a sentence."""


def _pattern(text: str) -> re.Pattern[str]:
    """A space in it is any white space, as a sentence may go over lines."""
    return re.compile(text.replace(" ", r"\s+"))


PATTERNS: Mapping[str, re.Pattern[str]] = {
    "what-clause": _pattern(rf"{_START}(?:What|Who|Whoever|Whatever) (?!follows)[^.?!|]*(?:[.!|]|$)|[,;:] (?:and )?what \w+ \w+"),
    "of-what": _pattern(r"\b(?:of|by|from|to|with|for|on|in|at|as|than|beside|and|or) (?:what|whatever|whoever|who) (?!to )\w+"),
    "where-for-if": _pattern(
        r"\b[Ww]here (?:it (?!comes|listens|is kept)|there|none|nobody|nothing|no|that|one|they|a|an|this|these|some\w*|any\w*)\b"
    ),
    "nobody": _pattern(r"\b(?:[Nn]obody|[Nn]one of|[Nn]othing (?:is|was|of|has))\b"),
    "anew": _pattern(r"\b(?:anew|afresh)\b|\b(?:made|makes?|making|fills?|filled|does|done|read|begins?)(?: \w+){0,3} again\b"),
    "that-of": _pattern(r"\b(?:[Tt]hat|[Tt]hose) of\b|\b[Tt]hose (?:that|who|which|with|in|on|it|for)\b"),
    "says": _pattern(
        r"\b(?:[Ss]ays?|[Ss]aid|[Tt]ells?|[Tt]old|[Kk]nows?)(?: (?:it|you|them))?"
        r" (?:so|that|what|which|how|why|when|where|whether|who|if)\b|\b(?:told|[Uu]nless \w+ says)\b"
    ),
    "beside": _pattern(r"\b[Bb]eside\b|\b[Mm]eanwhile\b|\b[Aa]s long as\b"),
    "of-its-own": _pattern(r"\bof (?:its|their|your|my|our|his|one's) own\b"),
    "stands": _pattern(r"\b(?:stands?|stood|standing)\b(?!-| by\b| for\b| alone\b)|\bgo(?:es)? on\b|\bwent on\b"),
    "trailing-too": _pattern(r", (?:too|also)(?=[.;:,)|]|$)"),
    "so-many": _pattern(r"\b(?:[Ff]or )?(?:so|as) (?:many|much|long)\b(?! as)"),
    "is-no": _pattern(r"\b(?:that|which|it) (?:is|are|was|were) (?:none|no (?!longer|more|less|way))\b"),
    "comes-of": _pattern(r"\b(?:came|come|comes|becomes|became|become) of\b|\blead(?:s|ing)? to\b|\bled to\b"),
    "bare-who": _pattern(r"\b(?:for|to|by|tell|tells|shows?|of) who\b|\b[Ww]hoever\b"),
    "semicolons": _pattern(r"[^.;!?|]*;[^.;!?|]*;"),
}

LINES = ("short-line", "long-line")
"""Patterns of Markdown's lines: one that ends a paragraph too early, or does not end."""
SHORTEST, LONGEST = 72, 150


@attrs.frozen
class Hit:
    """A match of a pattern. `line` is counted from 1."""

    text: Text
    line: int
    pattern: str
    excerpt: str


def hits_of(text: Text) -> Iterator[Hit]:
    """All hits in a text."""
    for name, pattern in PATTERNS.items():
        if text.is_heading and name == "what-clause":
            continue
        for found in pattern.finditer(text.text):
            before = text.text[: found.start()]
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            line = text.line + text.text.count("\n", 0, start)
            excerpt = " ".join((before[-20:] + text.text[found.start() : found.end() + 30]).split())
            yield Hit(text, line, name, excerpt)
    for number, raw in enumerate(text.lines, text.line):
        if len(raw) > LONGEST and not raw.lstrip().startswith("!["):
            yield Hit(text, number, "long-line", f"{len(raw)} characters")
        if len(raw) < SHORTEST and number < text.last_line:
            yield Hit(text, number, "short-line", f"{len(raw)} characters")
