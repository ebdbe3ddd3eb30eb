"""Badges: their figures, and pictures that can be read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctd.domain.analysis import Summary
from gctd.exports.badge import BAD, FAIR, GOOD, NEUTRAL, PLAIN, POOR, Badge, BadgeFigures, Metric, badge, grade

SVG = "{http://www.w3.org/2000/svg}"
SUMMARY = Summary(average=7.25, combined=1450.0, exceeded=3, total_funcs=200)
FIGURES = BadgeFigures(summary=SUMMARY, threshold=30.0, coverage=81.999)


@pytest.mark.parametrize(
    ("metric", "label", "value", "colour"),
    [
        (Metric.AVERAGE, "CRAP average", "7.2", FAIR),
        (Metric.TOTAL, "CRAP total", "1,450", PLAIN),
        (Metric.EXCEEDED, "CRAP over 30", "3", FAIR),
        (Metric.FUNCTIONS, "functions", "200", PLAIN),
        (Metric.COVERAGE, "coverage", "81.9%", GOOD),
        (Metric.GRADE, "CRAP grade", "C", FAIR),
    ],
)
def test_a_badge_shows_its_figure_and_says_it(metric: Metric, label: str, value: str, colour: str) -> None:
    made = badge(metric, FIGURES)
    assert made == Badge(label, value, colour)
    root = ET.fromstring(made.svg())
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == f"{label}: {value}"
    assert [text.text for text in root.iter(f"{SVG}text")] == [label, value]
    assert badge(metric, None) == Badge(label, "unknown", NEUTRAL)


def test_a_badge_names_unknown_and_partial_figures() -> None:
    assert badge(Metric.COVERAGE, attrs.evolve(FIGURES, coverage=None)).value == "unknown"
    assert badge(Metric.COVERAGE, attrs.evolve(FIGURES, partial=True)) == Badge("coverage", "81.9% partial", POOR)
    empty = attrs.evolve(FIGURES, summary=Summary(average=0.0, combined=0.0, exceeded=0, total_funcs=0))
    assert badge(Metric.GRADE, empty).value == "unknown"


@pytest.mark.parametrize(("exceeded", "letter"), [(0, "A"), (1, "B"), (10, "B"), (25, "C"), (50, "D"), (51, "E"), (101, "F")])
def test_the_grade_goes_by_the_share_of_risky_functions(exceeded: int, letter: str) -> None:
    assert grade(attrs.evolve(SUMMARY, exceeded=exceeded, total_funcs=1000)) == letter


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_no_label_breaks_out_of_the_picture(label: str) -> None:
    root = ET.fromstring(badge(Metric.AVERAGE, FIGURES, label).svg())
    assert root.findtext(f"{SVG}title") == f"{label}: 7.2"
    assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("colour", [GOOD, FAIR, POOR, BAD, PLAIN, NEUTRAL])
def test_white_text_can_be_read_on_each_colour(colour: str) -> None:
    def linear(part: str) -> float:
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[at : at + 2]) for at in (1, 3, 5))
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5
