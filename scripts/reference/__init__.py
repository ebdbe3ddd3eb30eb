"""The generated pages of the reference, apart from the public names of packages."""

from __future__ import annotations

from textwrap import wrap


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph of Markdown, and the empty line behind it."""
    return [*wrap(" ".join(text.split()), 140), ""]
