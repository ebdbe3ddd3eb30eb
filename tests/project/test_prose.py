"""Unnatural prose does not increase: hits of the patterns of `docs/style.md`, per package, against `tests/project/prose.json`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.prose import ratchet
from tests.support.prose.patterns import LINES, PATTERNS, hits_of
from tests.support.prose.texts import Text, texts_of

GUIDE = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| `([\w-]+)` \| `(.+?)` \| `(.+?)` \|$", GUIDE, re.MULTILINE)


def test_no_count_rises_and_a_count_that_fell_is_lowered() -> None:
    hits = ratchet.hits(ratchet.files())
    before, now = ratchet.held(), ratchet.counts(hits)
    risen = ratchet.risen(before, now)
    if ratchet.risen(ratchet.totals(before), ratchet.totals(now)):
        pytest.fail("\n".join([*risen, "`python -m tests.support.prose --since REVISION` prints the hits on changed lines"]))
    fallen = ratchet.fallen(before, now)
    assert (risen, fallen) == ([], []), "texts moved or were improved: `python -m tests.support.prose --write` holds the counts"


def test_the_guide_explains_each_pattern() -> None:
    assert [name for name, _, _ in EXAMPLES] == [*PATTERNS]
    assert all(f"`{name}`" in GUIDE for name in LINES)


@pytest.mark.parametrize(("name", "bad", "good"), EXAMPLES)
def test_a_pattern_finds_the_guides_example_and_not_its_replacement(name: str, bad: str, good: str) -> None:
    assert name in {hit.pattern for hit in hits_of(Text(Path("x.md"), 1, bad))}
    assert [*hits_of(Text(Path("x.md"), 1, good))] == []


def test_a_question_and_a_place_are_no_hits() -> None:
    for text in ("What does it cost? Little.", "The folder where the file is kept.", "a stand-by, the standard, outstanding"):
        assert [*hits_of(Text(Path("x.md"), 1, text))] == []


def test_texts_of_python_are_docstrings_comments_and_sentences(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""A module.\n\nSecond `where it` line."""\n\n'
        "# A comment that goes\n# over two lines.\nLIMIT = 3  # at the end\n"
        '"""Of an attribute."""\n'
        'raise ValueError(f"the value {LIMIT} is not valid here")\n'
        'QUERY = "SELECT a FROM b WHERE c is not null"\nKEY = "two words"\n'
    )
    assert [(text.line, text.text) for text in texts_of(file)] == [
        (1, "A module.\n\nSecond xxxxxxxxxx line."),
        (5, "A comment that goes\nover two lines."),
        (7, "at the end"),
        (8, "Of an attribute."),
        (9, "the value x is not valid here"),
    ]


def test_texts_of_markdown_have_no_code_and_no_addresses(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(
        "# Where it is\n\nA [link](where/it/is.md) and `where it`,\nhttps://example.com/told <kbd>\n\n"
        "```sh\nwhere it\n```\n\n    where it\n\n| a | b |\n|---|---|\n| cell | `where it` |\n"
    )
    assert [(text.line, text.text) for text in texts_of(file)] == [
        (1, "Where it is"),
        (3, "A [linkxxxxxxxxxxxxxxxxx and xxxxxxxxxx,\nxxxxxxxxxxxxxxxxxxxxxxxx xxxxx"),
        (12, "a"),
        (12, "b"),
        (14, "cell"),
        (14, "xxxxxxxxxx"),
    ]


def test_lines_of_markdown_have_72_to_150_characters(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(
        f"{'short ' * 11}\nthe last line of a paragraph may be short\n\n{'long ' * 31}\n\n![{'picture ' * 20}](a.png)\n"
    )
    assert [(hit.line, hit.pattern) for hit in ratchet.hits([file])] == [(1, "short-line"), (4, "long-line")]


def test_a_hit_has_the_line_it_is_on_and_can_be_allowed(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""Do it.\n\nThe log is read\nagain, where there is one.\n"""\n')
    assert [(hit.line, hit.pattern) for hit in ratchet.hits([file])] == [(4, "where-for-if"), (3, "anew")]
    file.write_text('"""Do it.\n\nThe log is read\nagain, where there is one.\n"""  # prose: allow anew, where-for-if\n')
    assert ratchet.hits([file]) == []


def test_a_hit_that_moves_to_another_package_leaves_the_totals() -> None:
    before = {"a": {"says": 2}, "b": {"says": 1, "anew": 1}}
    now = {"a": {"says": 1}, "b": {"says": 2}}
    assert ratchet.risen(before, now) == ["b says: 1 -> 2"]
    assert ratchet.fallen(before, now) == ["a says: 2 -> 1", "b anew: 1 -> 0"]
    assert ratchet.risen(ratchet.totals(before), ratchet.totals(now)) == []
    assert ratchet.risen(ratchet.totals(now), ratchet.totals(before)) == ["all anew: 0 -> 1"]
