"""A flame graph of the stacks that a sampler saw: shares by part of the program, and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import PurePosixPath

import attrs

PARTS: Mapping[str, str] = {
    "aiohttp/": "HTTP",
    "httpkit/sse/": "event stream",
    "httpkit/": "HTTP",
    "servicekit/feed.py": "event stream",
    "servicekit/": "service",
    "eventlog/commands/": "commands",
    "eventlog/jetstream/": "JetStream",
    "gctd/broker/": "JetStream",
    "eventlog/": "events",
    "projections/stores/": "tables",
    "projections/": "projection",
    "pantry/readmodel/": "read model",
    "pantry/domain/": "rules",
    "pantry/": "service",
    "gctd/readmodel/": "read model",
    "gctd/domain/": "rules",
    "gctd/": "service",
}
"""The part that a file belongs to, by the first folder that its path contains."""
OTHER = "other"
_START = ("runpy", "__main__.py", "terminalkit/", "click/", "/cli/", "uvloop/__init__", "asyncio/runners", "threading.py")
"""Files of the frames with which a program and its threads begin."""
_POOL = "futures/thread.py"
"""File of the threads of an executor: a thread whose innermost function is there waits for work."""
_COLOURS = {
    "HTTP": "#7fb2e5",
    "event stream": "#5fc0b8",
    "service": "#b9a3e3",
    "commands": "#e39ac0",
    "JetStream": "#f0a868",
    "events": "#f4d06f",
    "projection": "#9ccf7d",
    "tables": "#6faf6a",
    "read model": "#c5d86d",
    "rules": "#e58f85",
    OTHER: "#cfcfcf",
}
_WIDTH, _ROW, _TOP, _LEAST, _LETTER = 1000, 17, 34, 0.004, 6.3


@attrs.frozen
class Frame:
    """A function on a stack."""

    name: str
    file: str

    @classmethod
    def parse(cls, text: str) -> Frame:
        """A frame as py-spy writes it: `name (path:line)`."""
        name, _, rest = text.partition(" (")
        return cls(name, rest.rstrip(")").rpartition(":")[0])

    @property
    def part(self) -> str | None:
        """The part of the program; None for the interpreter and for libraries without a part."""
        return next((part for folder, part in PARTS.items() if folder in self.file), None)

    @property
    def title(self) -> str:
        """The function with the name of its file."""
        return f"{self.name} ({'/'.join(PurePosixPath(self.file).parts[-2:])})"


Stack = tuple[Frame, ...]


def parse(lines: Iterable[str]) -> Mapping[Stack, int]:
    """The stacks of a file of py-spy (`--format raw`), outermost frame first, with their numbers of samples.

    Threads that wait for work are left out, and so are the frames with which the program begins.
    """
    stacks = Counter[Stack]()
    for line in lines:
        text, _, count = line.rpartition(" ")
        frames = [Frame.parse(frame) for frame in text.split(";")]
        if _POOL not in frames[-1].file:
            stacks[tuple(_without_start(frames))] += int(count)
    return stacks


def _without_start(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames after the start of the program or of the thread; the last one stays in any case."""
    found = (at for at, frame in enumerate(frames) if not any(part in frame.file for part in (*_START, _POOL)))
    return frames[next(found, len(frames) - 1) :]


def part_of(stack: Stack) -> str:
    """The part of the innermost frame that has one."""
    return next((frame.part for frame in reversed(stack) if frame.part is not None), OTHER)


def shares(stacks: Mapping[Stack, int]) -> Mapping[str, int]:
    """Samples by part, the largest first."""
    found = Counter[str]()
    for stack, count in stacks.items():
        found[part_of(stack)] += count
    return dict(found.most_common())


@attrs.define
class _Node:
    count: int = 0
    children: dict[Frame, _Node] = attrs.field(factory=dict)


def picture(stacks: Mapping[Stack, int], title: str) -> str:
    """Return an SVG: each function is a bar, below its caller. Its length is its share of the samples."""
    root = _tree(stacks)
    bars: list[str] = []
    rows = _draw(bars, root, 0, 0.0, root.count, OTHER)
    height = _TOP + _ROW * rows + 30
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">',
            f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="10" y="20" font-size="14" fill="#222">{escape(title)}</text>',
            *bars,
            *_legend(sorted(shares(stacks)), height - 18),
            "</svg>\n",
        ]
    )


def _tree(stacks: Mapping[Stack, int]) -> _Node:
    """The stacks as a tree of callers."""
    root = _Node()
    for stack, count in stacks.items():
        node = root
        node.count += count
        for frame in stack:
            node = node.children.setdefault(frame, _Node())
            node.count += count
    return root


def _draw(bars: list[str], node: _Node, depth: int, left: float, total: int, part: str) -> int:
    """Add the bars of the callees of a node; returns the number of rows."""
    rows = depth
    for frame, child in sorted(node.children.items(), key=lambda one: -one[1].count):
        width = child.count / total
        if width >= _LEAST:
            mine = frame.part or part
            bars.append(_bar(frame, depth, left, width, mine))
            rows = max(rows, _draw(bars, child, depth + 1, left, total, mine) if child.children else depth + 1, depth + 1)
        left += width
    return rows


def _bar(frame: Frame, depth: int, left: float, width: float, part: str) -> str:
    x, y, long = 10 + left * (_WIDTH - 20), _TOP + depth * _ROW, width * (_WIDTH - 20)
    letters = int((long - 6) / _LETTER)
    text = frame.name if len(frame.name) <= letters else f"{frame.name[: letters - 1]}…" if letters > 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + 12}" fill="#222">{escape(text)}</text>' if text else ""
    return (
        f'<g><title>{escape(frame.title)}: {width:.1%}</title><rect x="{x:.1f}" y="{y}" width="{max(long - 0.5, 0.3):.1f}" '
        f'height="{_ROW - 1}" fill="{_COLOURS[part]}"/>{label}</g>'
    )


def _legend(parts: Sequence[str], y: int) -> Sequence[str]:
    return [
        f'<rect x="{10 + 88 * number}" y="{y}" width="11" height="11" fill="{_COLOURS[part]}"/>'
        f'<text x="{26 + 88 * number}" y="{y + 10}" fill="#222">{part}</text>'
        for number, part in enumerate(parts)
    ]
