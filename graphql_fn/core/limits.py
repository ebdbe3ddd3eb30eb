"""What a request may ask for."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class QueryLimits:
    """Limits of one request.

    `tokens` (comments too) are counted before the text is parsed; `source` is its length in
    characters. `depth` counts fields inside fields, `root_fields` those of the operation itself, `aliases` all that are renamed,
    all through fragments. `fields` are all that the operation and its fragments come to once they are put together, `repeats`
    those of them that stand beside one of the same name: comparing these takes the square of their number. `seconds` bound what
    resolvers wait for, `errors` how many are told. `cost` is the number of objects that a query may come to, by the sizes of the
    pages that it asks for.
    """

    source: int = 65_536
    tokens: int = 2000
    depth: int = 10
    aliases: int = 15
    root_fields: int = 20
    fields: int = 2000
    repeats: int = 50
    errors: int = 100
    cost: int = 10_000
    seconds: float = 2.0


INTROSPECTION_DEPTH = 20
"""Depth below `__schema` and `__type`: tools ask these more deeply than queries go; the engine bounds their lists in lists."""

PAGE = 20
"""Items of a page where a query does not say how many."""
LARGEST_PAGE = 1000
"""Items that a page may have."""
