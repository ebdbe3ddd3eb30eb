"""The commands that a page shows, with their output: read from the page, run in order, and compared."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from markdown_it import MarkdownIt

NOT_RUN = "# no test runs this block: "
"""Begin of a block that a test cannot run, before the requirement that it does not have."""
PORTS = {"8080": "gctd", "8081": "pantry", "8082": "graphql"}
"""The ports of the pages, and the services of `gctd up` that answer there."""
_MARK = "---- block ----"


@attrs.frozen
class Block:
    """Commands, and the output that is shown below them with its form, `text` or `json`. None: any output.

    In a text, a line `…` is any number of lines. `…` in a line, or in a text of JSON, is any text.
    """

    commands: str
    output: str | None = None
    form: str = "text"

    @property
    def is_run(self) -> bool:
        """Whether a test can run it."""
        return not self.commands.startswith(NOT_RUN)

    def problem_of(self, printed: str) -> str | None:
        """The difference of an output from the shown one, None if it is the same."""
        if self.form == "json":
            found = _documents(printed)
            return None if found and _fits(json.loads(self.output or ""), found[-1]) else f"{self.commands}\n{printed}"
        whole = printed if printed.endswith("\n") or not printed else f"{printed}\n"
        same = self.output is None or pattern_of(self.output).fullmatch(whole)
        return None if same else f"{self.commands}\n{printed}"


def blocks(page: str) -> Sequence[Block]:
    """The blocks `sh` of a page, each with the output that follows it directly."""
    tokens = MarkdownIt().parse(page)
    found = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "fence" and token.info == "sh":
            shown = after if after is not None and after.type == "fence" and after.info in {"text", "json"} else None
            found.append(Block(token.content) if shown is None else Block(token.content, shown.content, shown.info))
    return found


def run_blocks(
    shown: Sequence[Block], directory: Path, environment: Mapping[str, str], replaced: Mapping[str, str], patience: float
) -> Sequence[str]:
    """Run blocks in one shell, with parts of their text replaced, for at most `patience` seconds; return the differences."""
    script = "\n".join(["set -eo pipefail", *(f"{each.commands}\necho '{_MARK}'" for each in shown)])
    for text, other in replaced.items():
        script = script.replace(text, other)
    done = subprocess.run(
        ["bash", "-c", script], cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=patience
    )
    printed = done.stdout.split(f"{_MARK}\n")
    if done.returncode != 0:
        failed = shown[len(printed) - 1].commands
        return [f"exit code {done.returncode}: {failed}\n{printed[-1]}\n{done.stderr}"]
    return [problem for block, output in zip(shown, printed[:-1], strict=True) if (problem := block.problem_of(output))]


def addresses(ready: Mapping[str, Any]) -> Mapping[str, str]:
    """The addresses of the pages, and the addresses of a running system in their place."""
    return {f"http://127.0.0.1:{port}": ready[service] for port, service in PORTS.items()}


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return the pattern of a shown output. Columns may have another width, and ports another number."""
    lines = [r"(?:.*\n)*" if line == "…" else f"{_line(line)} *\n" for line in shown.splitlines()]
    return re.compile("".join(lines))


def _line(line: str) -> str:
    text = "…".join(re.escape(" ".join(part.split(" "))) for part in line.strip().split("…"))
    return r"\s*" + re.sub(r"127\\\.0\\\.0\\\.1:\d+", r"127\\.0\\.0\\.1:\\d+", re.sub(r"(?:\\ )+", r"[ \\t]+", text)).replace(
        "…", ".*"
    )


def _documents(text: str) -> Sequence[Any]:
    """The JSON documents of an output, one after the other."""
    found, rest = [], text.strip()
    while rest:
        document, end = json.JSONDecoder().raw_decode(rest)
        found.append(document)
        rest = rest[end:].lstrip()
    return found


def _fits(shown: Any, found: Any) -> bool:
    if isinstance(shown, dict) and isinstance(found, dict):
        return shown.keys() == found.keys() and all(_fits(value, found[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(found, list):
        return len(shown) == len(found) and all(map(_fits, shown, found))
    if isinstance(shown, str) and isinstance(found, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), found, re.DOTALL) is not None
    return bool(shown == found)
