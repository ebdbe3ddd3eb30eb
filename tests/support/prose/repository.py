"""The ratchet: hits per package and pattern, held in a file. A count may only fall, and then the file has to follow.

A hit that is right as it is gets `prose: allow NAME` in a comment: in the text, on its last line, or on the line before it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.support import ROOT
from tests.support.prose.patterns import Hit, hits_of
from tests.support.prose.texts import texts_of

GENERATED = ("docs/reference/",)
"""Pages that are made from docstrings, which count with their package."""
FILE = ROOT / "tests" / "project" / "prose.json"
_ALLOW = re.compile(r"prose: allow ([\w, -]*\w)")
_HUNK = re.compile(r"^\+\+\+ b/(?P<file>.*)$|^@@ \S+ \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)

Counts = Mapping[str, Mapping[str, int]]
"""Hits by package, then by pattern. Zeros are left out."""


def files(root: Path = ROOT) -> Sequence[Path]:
    """The files of the repository that have prose: documents, Python, TypeScript."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    written = sorted({name for name in listed if not name.startswith(GENERATED)})
    return [file for name in written if (file := root / name).is_file() and _has_prose(file)]


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


def counts(hits: Iterable[Hit], root: Path = ROOT) -> Counts:
    """The hits of each package by pattern."""
    found: dict[str, Counter[str]] = {}
    for hit in hits:
        found.setdefault(package_of(hit.text.file, root), Counter())[hit.pattern] += 1
    return {package: dict(sorted(patterns.items())) for package, patterns in sorted(found.items())}


def held() -> Counts:
    """The counts of the file."""
    found: Counts = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def write(now: Counts) -> None:
    """Hold these counts."""
    FILE.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def risen(before: Counts, now: Counts) -> list[str]:
    """The counts that rose, as lines `package pattern: before -> now`."""
    return _differences(before, now, rose=True)


def fallen(before: Counts, now: Counts) -> list[str]:
    """The counts that fell."""
    return _differences(before, now, rose=False)


def totals(counts: Counts) -> Counts:
    """The counts of the whole repository by pattern. Code that moves to another package leaves them as they are."""
    return {"all": dict(sum((Counter(patterns) for patterns in counts.values()), Counter[str]()))}


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


def _differences(before: Counts, now: Counts, *, rose: bool) -> list[str]:
    places = {(package, name) for counts in (before, now) for package, patterns in counts.items() for name in patterns}
    found: list[str] = []
    for package, name in sorted(places):
        old, new = (counts.get(package, {}).get(name, 0) for counts in (before, now))
        if new > old if rose else new < old:
            found.append(f"{package} {name}: {old} -> {new}")
    return found


def _has_prose(file: Path) -> bool:
    if file.parent.name == "reference" and (ROOT / file.stem).is_dir():  # from docstrings, which are counted in the package
        return False
    if file.suffix:
        return file.suffix in (".md", ".py", ".ts", ".tsx")
    with file.open("rb") as opened:
        return b"python" in opened.readline(100) and file.parent.name == "scripts"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout
