"""The limits of a request."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class QueryLimits:
    """Limits of one request.

    `tokens` (comments too) are counted before the text is parsed; `source` is its length in
    characters. `depth` counts nested fields, `root_fields` the fields of the operation itself, `aliases` all renamed fields, all
    through fragments. `fields` is the number of fields of the operation after its fragments are put together, `repeats` the
    number of fields with the name of another field of the same selection: comparing these takes the square of their number.
    `directives` are the directives at one place: the language has two for a field, each at most once.
    `seconds` bound the waits of resolvers, `errors` the number of reported errors. `cost` is the largest number of objects in
    the result, by the sizes of the requested pages.
    """

    source: int = 65_536
    tokens: int = 2000
    depth: int = 10
    aliases: int = 15
    root_fields: int = 20
    fields: int = 2000
    repeats: int = 50
    directives: int = 5
    errors: int = 100
    cost: int = 10_000
    seconds: float = 2.0


META = frozenset({"__schema", "__type"})
"""The fields of `Query` that look at the schema."""
INTROSPECTION_DEPTH = 20
"""Depth below `__schema` and `__type`: tools ask these more deeply than queries go; the engine bounds their lists in lists."""

PAGE = 20
"""Items of a page without a size in the query."""
LARGEST_PAGE = 1000
"""Items that a page may have."""
