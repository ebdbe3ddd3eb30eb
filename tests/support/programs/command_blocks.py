"""The commands that a page shows, with their output: read from the page, and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs
from markdown_it import MarkdownIt

NOT_RUN = "not run: "
"""Use of a block that no test types, before the requirement that it does not have."""


@attrs.frozen
class Block:
    """Commands, and the output that is shown below them with its form, `text` or `json`. None: any output.

    In a text, a line `…` is any number of lines. `…` in a line, or in a text of JSON, is any text. The `use` is the rest of the
    first line of the block:

    - empty: typed in the terminal of the page
    - `each terminal`: typed in the terminal of the page, and in each terminal that is opened later
    - `server`: typed in another terminal, and runs until Ctrl-C; it is ready when it prints the last line of its shown output
    - `stream`: typed in the terminal of the page, and runs until Ctrl-C
    - `not run: REASON`
    """

    commands: str
    output: str | None = None
    form: str = "text"
    use: str = ""

    @property
    def reason(self) -> str | None:
        """Why no test types it; None if it is typed."""
        return self.use.removeprefix(NOT_RUN) if self.use.startswith(NOT_RUN) else None

    def problem_of(self, printed: str) -> str | None:
        """The difference of an output from the shown one, None if it is the same."""
        if self.form == "json":
            documents = _documents(printed)
            same = bool(documents) and _fits(json.loads(self.output or ""), documents[-1])
        else:
            whole = printed if printed.endswith("\n") or not printed else f"{printed}\n"
            same = self.output is None or pattern_of(self.output).fullmatch(whole) is not None
        return None if same else f"{self.commands}\n{printed}"


def blocks(page: str) -> Sequence[Block]:
    """The blocks `sh` of a page, each with the output that follows it, perhaps after a paragraph that announces it."""
    tokens = [token for token in MarkdownIt().parse(page) if token.type in {"fence", "inline", "heading_open"}]
    found = []
    for number, token in enumerate(tokens):
        language, _, use = token.info.partition(" ")
        if token.type == "fence" and language == "sh":
            after = tokens[number + 1 :]
            if after and after[0].type == "inline" and after[0].content.endswith(":"):
                after = after[1:]
            shown = after[0] if after and after[0].type == "fence" and after[0].info in {"text", "json"} else None
            found.append(Block(token.content, use=use) if shown is None else Block(token.content, shown.content, shown.info, use))
    return found


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return the pattern of a shown output. Columns may have another width."""
    lines = [r"(?:.*\n)*" if line == "…" else f"{_line(line)} *\n" for line in shown.splitlines()]
    return re.compile("".join(lines))


def _line(line: str) -> str:
    text = "…".join(re.escape(" ".join(part.split(" "))) for part in line.strip().split("…"))
    return r"\s*" + re.sub(r"(?:\\ )+", r"[ \\t]+", text).replace("…", ".*")


def _documents(text: str) -> Sequence[Any]:
    """The JSON documents of an output, one after the other."""
    found, rest = [], text.strip()
    while rest:
        document, end = json.JSONDecoder().raw_decode(rest)
        found.append(document)
        rest = rest[end:].lstrip()
    return found


def _fits(shown: Any, printed: Any) -> bool:
    if isinstance(shown, dict) and isinstance(printed, dict):
        return shown.keys() == printed.keys() and all(_fits(value, printed[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(printed, list):
        return len(shown) == len(printed) and all(map(_fits, shown, printed))
    if isinstance(shown, str) and isinstance(printed, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed, re.DOTALL) is not None
    return bool(shown == printed)
