"""The license of a repository by its files: texts that are known, and the identifiers that SPDX tags name.

Tags: https://spdx.github.io/spdx-spec/v2.3/using-SPDX-short-identifiers-in-source-files/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from identify.vendor.licenses import LICENSES

LARGEST = 128 * 1024
_HEAD = 4096
_FILES = 20
_SOURCES = 50
_FILE = re.compile(r"(un)?licen[cs]e([.-].*)?|copying([.-].*)?|copyright(\.(txt|md))?", re.IGNORECASE)
_NO_TEXT = re.compile(r"\.(go|py|js|ts|sh|json|ya?ml|toml|tmpl|tpl|header)$", re.IGNORECASE)
_HOLDER = re.compile(r"Copyright|\([cC]\) |©")
_WORD = re.compile(r"\w+")
_ALIKE = 0.95
_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+() \t-]{1,200})")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*\+?")

_NAMES = """
    0BSD AFL-3.0 AGPL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-2-Clause-Patent
    BSD-3-Clause BSD-3-Clause-Clear BSD-4-Clause BSL-1.0 BUSL-1.1 CC-BY-4.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 ECL-2.0
    Elastic-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 GPL-2.0 GPL-2.0-only GPL-2.0-or-later GPL-3.0 GPL-3.0-only
    GPL-3.0-or-later ISC LGPL-2.1 LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0 LGPL-3.0-only LGPL-3.0-or-later LPPL-1.3c MIT
    MIT-0 MPL-2.0 MS-PL MS-RL MulanPSL-2.0 NCSA ODbL-1.0 OFL-1.1 OSL-3.0 PostgreSQL SSPL-1.0 Unlicense UPL-1.0 WTFPL
    Zlib
"""
_KNOWN = {name.lower(): name for name in _NAMES.split()}
_TITLES = (  # texts that are often stored without what follows their terms, or with an address that has changed since
    ("Apache-2.0", re.compile(r"apache license,? version 2\.0, january 2004 ")),
    ("MPL-2.0", re.compile(r"mozilla public license,? version 2\.0 ")),
    ("AGPL-3.0", re.compile(r"gnu affero general public license version 3, 19 november 2007 ")),
    ("LGPL-3.0", re.compile(r"gnu lesser general public license version 3, 29 june 2007 ")),
    ("LGPL-2.1", re.compile(r"gnu lesser general public license version 2\.1, february 1999 ")),
    ("GPL-3.0", re.compile(r"gnu general public license version 3, 29 june 2007 ")),
    ("GPL-2.0", re.compile(r"gnu general public license version 2, june 1991 ")),
)
_PREAMBLE = 200


def spdx_id(text: str) -> str | None:
    """Return the SPDX identifier of a text, in SPDX's notation and with any case of the text; None if the text is unknown."""
    return _KNOWN.get(text.lower())


def license_of(root: Path) -> str | None:
    """Return the license of the repository in a directory; None if no license is recognised. No other process may write there.

    The license files at the top have priority. Several identifiers are separated by commas, as hosts show them. Without such a
    file, the SPDX tags of the Go files at the top count, if all are the same.
    """
    files = [path for path in sorted(root.iterdir()) if _FILE.fullmatch(path.name) and not _NO_TEXT.search(path.name)]
    reuse = root / "LICENSES"
    if not files and reuse.is_dir():  # the directory of the REUSE specification: files are named by identifier
        files = sorted(reuse.iterdir())
    found = dict.fromkeys(name for path in files[:_FILES] if (name := _recognised(path)) is not None)
    if any(name.startswith("LGPL-3.0") for name in found):  # it is an addition to the text of the GPL
        found.pop("GPL-3.0", None)
    if found:
        return ", ".join(found)
    tags = set(_tags_of_sources(root)) if not files else set()
    return tags.pop() if len(tags) == 1 else None


def _recognised(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    return _by_text(text) or _by_title(text) or _tag(text[:_HEAD])


@cache
def _texts() -> Mapping[str, Counter[str]]:
    """The words of the texts that are known, as choosealicense.com has them, by identifier."""
    return {name: _words(text) for name, text in LICENSES}


def _by_text(text: str) -> str | None:
    """Return the license whose text has most in common with this one, if they have nearly all words in common."""
    words = _words(text)
    common = {name: 2 * (words & known).total() / (words.total() + known.total()) for name, known in _texts().items()}
    best = max(common, key=lambda name: common[name])
    return best if common[best] >= _ALIKE else None


def _words(text: str) -> Counter[str]:
    """Return the words of a text with their counts, without the lines that name the holder of the copyright."""
    lines = (line for line in text.splitlines() if not _HOLDER.match(line.strip()))
    return Counter(word for line in lines for word in _WORD.findall(line.lower()))


def _by_title(text: str) -> str | None:
    plain = " ".join(re.sub(r"[#*_=<>]", " ", text).lower().split())
    start = plain[: _PREAMBLE * 2]
    return next((name for name, title in _TITLES if (match := title.search(start)) and match.start() <= _PREAMBLE), None)


def _tag(text: str) -> str | None:
    """Return the content of an SPDX tag: a known identifier, or an expression of such."""
    match = _TAG.search(text)
    words = re.findall(r"[()]|[^\s()]+", match[1]) if match else []
    written = [spdx_id(word) or (word if word in {"AND", "OR", "WITH", "(", ")"} else None) for word in words]
    after_with = {place + 1 for place, word in enumerate(written) if word == "WITH"}
    whole = [
        word or (words[place] if place in after_with and _IDENTIFIER.fullmatch(words[place]) else None)
        for place, word in enumerate(written)
    ]
    if not whole or None in whole:
        return None
    return " ".join(word for word in whole if word).replace("( ", "(").replace(" )", ")")


def _tags_of_sources(root: Path) -> Iterator[str]:
    sources = (path for path in sorted(root.glob("*.go")) if path.is_file() and not path.is_symlink())
    for _, path in zip(range(_SOURCES), sources, strict=False):
        with path.open("rb") as file:
            name = _tag(file.read(_HEAD).decode(errors="replace"))
        if name is not None:
            yield name
