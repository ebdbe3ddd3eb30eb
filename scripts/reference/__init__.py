"""The reference that is made from the code: commands, routes, events and tables, public names, and the documents of `--json`."""

from __future__ import annotations

from textwrap import wrap


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph of Markdown, and the empty line behind it."""
    return [*wrap(" ".join(text.split()), 140), ""]
