"""Differences in the way of measuring between two analyses of a project."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from gctd.readmodel.views import AnalysisView


@attrs.frozen
class Break:
    """A part of the measuring that differs, so that a difference of the numbers need not be the code's.

    `what`: go_version, engine, engine_version, flags, platform or sandbox.
    """

    what: str
    before: str
    after: str


def breaks(before: AnalysisView, after: AnalysisView) -> tuple[Break, ...]:
    """Return the differences in the way of measuring between two analyses. An unknown platform or sandbox counts as equal."""
    sides = [
        {
            "go_version": one.go_version,
            "engine": one.engine,
            "engine_version": one.engine_version,
            "flags": text_of_flags(one.flags),
            "platform": one.platform,
            "sandbox": one.sandbox,
        }
        for one in (before, after)
    ]
    old, new = sides
    unknown = [what for what in ("platform", "sandbox") if not (old[what] and new[what])]
    return tuple(Break(what, old[what], new[what]) for what in old if old[what] != new[what] and what not in unknown)


def text_of_flags(flags: Iterable[str]) -> str:
    """Return flags of `go` as a text that is equal for equal builds: the order of build tags has no effect."""
    return " ".join(map(_with_tags_in_order, flags))


def _with_tags_in_order(flag: str) -> str:
    name, _, tags = flag.partition("=")
    return f"{name}={','.join(sorted(tags.split(',')))}" if name == "-tags" else flag
