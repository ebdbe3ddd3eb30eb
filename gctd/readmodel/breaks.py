"""Differences in the way of measuring between two analyses of a project."""

from __future__ import annotations

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
            "flags": " ".join(one.flags),
            "platform": one.platform,
            "sandbox": one.sandbox,
        }
        for one in (before, after)
    ]
    old, new = sides
    unknown = [what for what in ("platform", "sandbox") if not (old[what] and new[what])]
    return tuple(Break(what, old[what], new[what]) for what in old if old[what] != new[what] and what not in unknown)
