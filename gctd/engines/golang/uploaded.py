"""Whether a coverage profile that was made elsewhere fits the source at a commit.

`go test` writes blocks that lie in the bodies of functions. A profile of another commit has blocks beyond the end of a file or
of a line, or between two functions. A forged count cannot be found out: an upload is as true as its sender.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import attrs

from gctd.engines.engine import EngineFailed, EngineInput
from gctd.engines.golang.profile import Block, CoverProfile
from gctd.engines.golang.syntax import Unparsable, syntax_tree
from gctd.engines.selection import Unreadable, read_source

OUTSIDE = 0.01
"""The share of blocks that may begin outside of every function: `//line` directives move them."""
_SHOWN = 3
_WITH_CODE = frozenset({"function_declaration", "method_declaration", "var_declaration"})
"""Declarations at the top of a file that have statements; a variable may be a function without a name."""

_Span = tuple[tuple[int, int], tuple[int, int]]


@attrs.frozen
class _Source:
    """The length of each line of a file in bytes, and the first and last places of its declarations with code."""

    lengths: Sequence[int]
    spans: Sequence[_Span]

    def has(self, line: int, column: int) -> bool:
        """Whether a place is in the file; the place after the last byte of a line is."""
        return 1 <= line <= len(self.lengths) and 1 <= column <= self.lengths[line - 1] + 1

    def in_code(self, block: Block) -> bool:
        """Whether a block begins and ends in one declaration."""
        index = bisect_right(self.spans, ((block.start_line, block.start_col), (1 << 30, 0))) - 1
        return index >= 0 and (block.end_line, block.end_col) <= self.spans[index][1]


def check_uploaded(given: EngineInput, profile: CoverProfile) -> None:
    """Raise EngineFailed, with the first mismatches, if the profile does not fit the source of the module."""
    wrong: list[str] = []
    outside: list[str] = []
    for path in profile.paths():
        blocks = profile.blocks_of(path)
        if not path.endswith(".go"):  # a `//line` directive
            outside += [path] * len(blocks)
            continue
        name = path.removeprefix(f"{given.module_path}/")
        try:
            source = _source(given, name)
        except Unreadable as error:
            wrong.append(f"{name}: {error}")
        except Unparsable as error:
            wrong.append(f"{name} is not Go at this commit: {error}")
        else:
            wrong += _beyond(name, source, blocks)
            outside += [f"{name}:{block.start_line}.{block.start_col}" for block in blocks if not source.in_code(block)]
    if wrong:
        more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise EngineFailed(f"the uploaded profile does not fit the source at this commit: {'; '.join(wrong[:_SHOWN])}{more}")
    if len(outside) > OUTSIDE * profile.blocks:
        raise EngineFailed(
            "the uploaded profile does not fit the source at this commit:"
            f" {len(outside)} of {profile.blocks} blocks are in no function, such as {', '.join(outside[:_SHOWN])}"
        )


def _source(given: EngineInput, name: str) -> _Source:
    """Read a file of the module. Raises Unreadable, Unparsable."""
    parts = name.split("/")
    if ".." in parts or any(name.startswith(f"{nested}/") for nested in given.nested):
        raise Unreadable("unreadable", "it is not in the module")
    file = given.module_dir / name
    if not file.resolve().is_relative_to(given.repository.resolve()) or not os.path.lexists(file):
        raise Unreadable("unreadable", "it is not in the repository")
    source = read_source(file, given.limits.file_bytes)
    tree = syntax_tree(source, nesting=given.limits.nesting)
    spans = [
        ((node.start_point.row + 1, node.start_point.column + 1), (node.end_point.row + 1, node.end_point.column + 1))
        for node in tree.root_node.children
        if node.type in _WITH_CODE
    ]
    return _Source([len(line) for line in source.split(b"\n")], spans)


def _beyond(name: str, source: _Source, blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if not (source.has(block.start_line, block.start_col) and source.has(block.end_line, block.end_col)):
            yield (
                f"{name} has {len(source.lengths)} lines, and not"
                f" {block.start_line}.{block.start_col} to {block.end_line}.{block.end_col}"
            )
            return
