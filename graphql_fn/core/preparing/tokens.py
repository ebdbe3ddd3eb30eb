"""Counts the tokens of a text and the depth of its brackets without parsing it: the cheapest way to refuse it.

The parser also counts, but builds the parsed nodes by then, which takes tens of times longer. For a text other than GraphQL the
count need not be right: the parser reports the fault.
"""

from __future__ import annotations

import re

DEPTH = 100
"""Brackets inside brackets, of all kinds; far more than a query that keeps to its limits can have."""

_TOKEN = re.compile(
    # GraphQL, 2.1.9: string values come first, since they may contain anything. One without an end is one token too, and no part
    # of a string is looked at twice: a text of quotes would take quadratic time.
    r'"""(?:\\"""|"(?!"")|[^"])*+(?:""")?'
    r'|"(?:\\.|[^"\\\n\r])*+"?'
    r"|#[^\n\r]*"
    r"|[A-Za-z_][A-Za-z0-9_]*"
    r"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r"|\.\.\."
    r"|(?P<open>[{\[(])"
    r"|(?P<close>[}\])])"
    r"|[!$&:=@|]"
)


def exceeds(text: str, tokens: int) -> str | None:
    """The limit that a text exceeds, if any: more than `tokens` tokens (comments among them), or brackets too deep."""
    if len(text) <= min(tokens, DEPTH):
        return None
    depth = 0
    for number, found in enumerate(_TOKEN.finditer(text), start=1):
        if number > tokens:
            return f"the query has more than {tokens} tokens"
        kind = found.lastgroup
        if kind is not None:
            depth += 1 if kind == "open" else -1
            if depth > DEPTH:
                return f"the query is nested deeper than {DEPTH} levels"
    return None
