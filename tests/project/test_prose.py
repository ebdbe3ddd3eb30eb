"""No text has a pattern of unnatural prose of `docs/style.md`, in any kind of file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.prose import repository
from tests.support.prose.patterns import LINES, PATTERNS, hits_of
from tests.support.prose.texts import Text, texts_of

GUIDE = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| `([\w-]+)` \| `(.+?)` \| `(.+?)` \|$", GUIDE, re.MULTILINE)


@pytest.mark.real
def test_no_text_has_a_hit() -> None:
    hits = repository.hits(repository.files())
    assert [f"{hit.text.file.relative_to(ROOT)}:{hit.line}: {hit.pattern}: {hit.excerpt}" for hit in hits] == []


@pytest.mark.real
def test_all_kinds_of_texts_are_read() -> None:
    words = repository.words(repository.files())
    assert {"README.md", "CHANGELOG.md", "deploy", "docs/reference/api.md", "gctd", "streams.yaml", "ui"} <= words.keys()
    assert min(words.values()) > 0


@pytest.mark.real
def test_no_text_refers_to_a_document_that_is_not_in_the_repository() -> None:
    """Neither by chapter nor at all: a text says the rule itself, or names a page of `docs/`."""
    elsewhere = re.compile(r"\bDESIGN\b|\b(?:the|The)\s+specifications?\b|\bspecifications?,\s+sections?\b|\([Ss]pecification\b")
    found = [
        f"{file.relative_to(ROOT)}:{text.line}: {match[0]}"
        for file in repository.files()
        if file != Path(__file__)
        for text in texts_of(file)
        for match in elsewhere.finditer(text.text)
    ]
    assert found == []


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


def test_texts_of_a_page_are_its_comments_elements_and_sentences(tmp_path: Path) -> None:
    file = tmp_path / "page.tsx"
    file.write_text(
        "// A comment that goes\n// over two lines.\nconst css = 'a b'; // at the end\n/** Of a function. */\n"
        "const page = <p title={`the ${n} tasks are not done`}>These tasks <b>wait</b> for a worker there.</p>;\n"
    )
    assert [(text.line, text.text.strip()) for text in texts_of(file)] == [
        (1, "A comment that goes\nover two lines."),
        (3, "at the end"),
        (4, "Of a function."),
        (5, "the x tasks are not done"),
        (5, "for a worker there."),
    ]


def test_texts_of_other_files_are_descriptions_comments_and_sentences(tmp_path: Path) -> None:
    contents = {
        "a.graphql": '# A comment.\n"A thing\u0020of it."\ntype A {\n  "Its name."\n  name: String\n}\n',
        "a.yml": "# A comment.\nkey: two words\nsummary: the tables are behind the log  # at the end\n",
        "a.html": "<p>Two words</p>\n<p>the page needs a browser</p>\n",
    }
    found = {}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        found[name] = [(text.line, text.text) for text in texts_of(tmp_path / name)]
    assert found == {
        "a.graphql": [(1, "A comment."), (2, "A thing of it."), (4, "Its name.")],
        "a.yml": [(1, "A comment."), (3, "the tables are behind the log"), (3, "at the end")],
        "a.html": [(2, "the page needs a browser")],
    }


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
    assert [(hit.line, hit.pattern) for hit in repository.hits([file])] == [(1, "short-line"), (4, "long-line")]


def test_a_hit_has_the_line_it_is_on_and_can_be_allowed(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""Do it.\n\nThe log is read\nagain, where there is one.\n"""\n')
    assert [(hit.line, hit.pattern) for hit in repository.hits([file])] == [(4, "where-for-if"), (3, "anew")]
    file.write_text('"""Do it.\n\nThe log is read\nagain, where there is one.\n"""  # prose: allow anew, where-for-if\n')
    assert repository.hits([file]) == []
