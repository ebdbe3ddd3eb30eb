"""The prose of the repository: its files, their hits, and their words.

A hit that is right as it is gets `prose: allow NAME` in a comment: in the text, on its last line, or on the line before it.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.support import ROOT
from tests.support.prose.patterns import Hit, hits_of
from tests.support.prose.readers import READERS
from tests.support.prose.texts import texts_of

_ALLOW = re.compile(r"prose: allow ([\w, -]*\w)")
_WORD = re.compile(r"\b(?!x+\b)[A-Za-z][A-Za-z'-]*")
"""A word, and not the placeholder of a code span."""
_HUNK = re.compile(r"^\+\+\+ b/(?P<file>.*)$|^@@ \S+ \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)


def files(root: Path = ROOT) -> Sequence[Path]:
    """The files of the repository that have prose: documents, programs, pages, descriptions."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return [file for name in sorted({*listed}) if (file := root / name).is_file() and _has_prose(file)]


def package_of(file: Path, root: Path = ROOT) -> str:
    """Return the package that a file is counted with: the folder at the top, or the document itself."""
    path = file.relative_to(root)
    return str(path) if file.suffix == ".md" else path.parts[0]


def hits(files: Iterable[Path]) -> list[Hit]:
    """All hits in files that no comment allows."""
    found: list[Hit] = []
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        for text in texts_of(file):
            around = "\n".join(lines[max(text.line - 2, 0) : text.last_line])
            allowed = {name.strip() for names in _ALLOW.findall(around) for name in names.split(",")}
            found += [hit for hit in hits_of(text) if hit.pattern not in allowed]
    return found


def words(files: Iterable[Path], root: Path = ROOT) -> Mapping[str, int]:
    """The number of words of each package."""
    found: Counter[str] = Counter()
    for file in files:
        found[package_of(file, root)] += sum(len(_WORD.findall(text.text)) for text in texts_of(file))
    return dict(sorted(found.items()))


def changed_since(revision: str, root: Path = ROOT) -> set[tuple[Path, int]]:
    """The lines, by file and number, that are not as they were in a revision. All lines of a file that git does not track yet."""
    new = [root / name for name in _git(root, "ls-files", "--others", "--exclude-standard").splitlines()]
    found = {(file, line) for file in new if _has_prose(file) for line, _ in enumerate(file.open(encoding="utf-8"), 1)}
    file = root
    for hunk in _HUNK.finditer(_git(root, "diff", "--unified=0", "--find-renames", revision, "--")):
        if hunk["file"] is not None:
            file = root / hunk["file"]
        else:
            first = int(hunk["first"])
            found |= {(file, line) for line in range(first, first + int(hunk["count"] or 1))}
    return found


def _has_prose(file: Path) -> bool:
    if file.parent.name == "reference" and (ROOT / file.stem).is_dir():  # from docstrings, which are counted in the package
        return False
    if file.suffix:
        return file.suffix in (".md", ".py", *READERS)
    with file.open("rb") as opened:
        return b"python" in opened.readline(100) and file.parent.name == "scripts"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout
