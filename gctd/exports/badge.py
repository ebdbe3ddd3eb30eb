"""A badge: one figure of a project as a small SVG picture that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from html import escape

import attrs

from gctd.domain.analysis import Summary

UNKNOWN = "unknown"

_PADDING = 6
_HEIGHT = 20
_SIZE = 11
_NARROW = frozenset("fijlrtI.,:;'|!()[]/ -")
_WIDE = frozenset("mwMW%@")
_LABEL = "#3a3f47"
GOOD, FAIR, POOR, BAD, PLAIN, NEUTRAL = "#0b6b4a", "#3f6b12", "#7a4f00", "#b3261e", "#1f5fd6", "#565d6b"
"""White text on each has a contrast of 4.5 or more (WCAG 2.2, criterion 1.4.3)."""


class Metric(StrEnum):
    """Figures that a badge can show. `coverage`: of statements, as `go tool cover` counts; `grade`: see `grade`."""

    AVERAGE = "average"
    TOTAL = "total"
    EXCEEDED = "exceeded"
    FUNCTIONS = "functions"
    COVERAGE = "coverage"
    GRADE = "grade"


@attrs.frozen(kw_only=True)
class BadgeFigures:
    """Input of badges: `summary` covers the functions with known coverage, `unmeasured` counts the others.

    `coverage` is in per cent, None if unknown. `partial`: the coverage of some packages is missing.
    """

    summary: Summary
    threshold: float
    coverage: float | None = None
    partial: bool = False
    unmeasured: int = 0


@attrs.frozen
class Badge:
    """Two texts in a row, the second on a coloured background."""

    label: str
    value: str
    colour: str

    def svg(self) -> bytes:
        """The picture. Its title is what a screen reader says; widths are fixed, so that any font fits."""
        left, right = _width(self.label), _width(self.value)
        whole = left + right
        title = escape(f"{self.label}: {self.value}")
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" aria-label="{title}">',
            f"<title>{title}</title>",
            f'<clipPath id="r"><rect width="{whole}" height="{_HEIGHT}" rx="3"/></clipPath>',
            f'<g clip-path="url(#r)"><rect width="{left}" height="{_HEIGHT}" fill="{_LABEL}"/>',
            f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{self.colour}"/></g>',
            f'<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="{_SIZE}">',
            _text(self.label, _PADDING, left),
            _text(self.value, left + _PADDING, right),
            "</g></svg>\n",
        ]
        return "".join(parts).encode()


def badge(metric: Metric, figures: BadgeFigures | None, label: str | None = None) -> Badge:
    """Return the badge of a metric; a badge with `unknown` without an analysis, or if the figure is unknown."""
    usual = {
        Metric.AVERAGE: "CRAP average",
        Metric.TOTAL: "CRAP total",
        Metric.EXCEEDED: f"CRAP over {figures.threshold if figures else 30:g}",
        Metric.FUNCTIONS: "functions",
        Metric.COVERAGE: "coverage",
        Metric.GRADE: "CRAP grade",
    }
    value, colour = _VALUES[metric](figures) if figures else (UNKNOWN, NEUTRAL)
    return Badge(label or usual[metric], value, colour)


GRADES = ((0.0, "A", GOOD), (1.0, "B", GOOD), (2.5, "C", FAIR), (5.0, "D", POOR), (10.0, "E", BAD), (100.0, "F", BAD))
"""The highest share of functions over the threshold, in per cent, for each grade.

crap4j takes a project for crappy if the share is more than 5 % (A. Savoia and B. Evans, 2007).
"""


def grade(summary: Summary) -> str | None:
    """The grade of a project, A to F, by the share of its functions that are over the threshold; None without functions."""
    found = _grade(summary)
    return found[0] if found else None


def _grade(summary: Summary) -> tuple[str, str] | None:
    if not summary.total_funcs:
        return None
    share = 100.0 * summary.exceeded / summary.total_funcs
    return next((letter, colour) for most, letter, colour in GRADES if share <= most)


def _known(figures: BadgeFigures) -> tuple[str, str] | None:
    """Return `unknown` if no function was measured: zero functions over the threshold would be a wrong answer."""
    return (UNKNOWN, NEUTRAL) if figures.unmeasured and not figures.summary.total_funcs else None


def _average(figures: BadgeFigures) -> tuple[str, str]:
    if (unknown := _known(figures)) is not None:
        return unknown
    value = figures.summary.average
    return f"{value:.1f}", _by(value, (5.0, GOOD), (15.0, FAIR), (figures.threshold, POOR))


def _exceeded(figures: BadgeFigures) -> tuple[str, str]:
    if (unknown := _known(figures)) is not None:
        return unknown
    found = _grade(figures.summary)
    return f"{figures.summary.exceeded:,}", found[1] if found else NEUTRAL


def _coverage(figures: BadgeFigures) -> tuple[str, str]:
    if figures.coverage is None:
        return UNKNOWN, NEUTRAL
    # Rounded down: 99.96 % is not all.
    shown = f"{int(figures.coverage * 10) / 10:g}%"
    colour = _by(-figures.coverage, (-80.0, GOOD), (-60.0, FAIR), (-40.0, POOR))
    return (f"{shown} partial", POOR) if figures.partial else (shown, colour)


_VALUES: Mapping[Metric, Callable[[BadgeFigures], tuple[str, str]]] = {
    Metric.AVERAGE: _average,
    Metric.TOTAL: lambda figures: _known(figures) or (f"{figures.summary.combined:,.0f}", PLAIN),
    Metric.EXCEEDED: _exceeded,
    Metric.FUNCTIONS: lambda figures: (f"{figures.summary.total_funcs + figures.unmeasured:,}", PLAIN),
    Metric.COVERAGE: _coverage,
    Metric.GRADE: lambda figures: _grade(figures.summary) or (UNKNOWN, NEUTRAL),
}


def _by(value: float, *bounds: tuple[float, str]) -> str:
    return next((colour for most, colour in bounds if value <= most), BAD)


def _text(text: str, left: int, width: int) -> str:
    return f'<text x="{left}" y="14" textLength="{width - 2 * _PADDING}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'


def _width(text: str) -> int:
    """Pixels that a text takes with the space around it, about as Verdana is."""
    widths = (4 if character in _NARROW else 11 if character in _WIDE or not character.isascii() else 7 for character in text)
    return max(sum(widths), 7) + 2 * _PADDING
