"""License and language of a repository by its files, as far as they are certain."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from identify.vendor.licenses import LICENSES

from gctd.scan.hosts.languages import language_of
from gctd.scan.hosts.licenses import LARGEST, license_of

TEXTS = dict(LICENSES)
HOLDER = "Copyright (c) 2019-2026 The Gophers <gophers@example.com>. All rights reserved.\n\n"


def tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


COMMON = "MIT Apache-2.0 BSD-2-Clause BSD-3-Clause MPL-2.0 GPL-2.0 GPL-3.0 LGPL-2.1 LGPL-3.0 AGPL-3.0 ISC Unlicense EPL-2.0"


@pytest.mark.parametrize("name", COMMON.split())
@pytest.mark.parametrize("file", ["LICENSE", "LICENSE.md", "COPYING", "licence.txt"])
def test_a_license_is_recognised_by_its_text(tmp_path: Path, name: str, file: str) -> None:
    assert license_of(tree(tmp_path, {file: TEXTS[name]})) == name


@pytest.mark.parametrize("name", ["MIT", "BSD-3-Clause", "ISC", "Apache-2.0"])
@pytest.mark.parametrize("width", [60, 78, 200])
def test_however_its_lines_are_broken_and_whoever_holds_the_copyright(tmp_path: Path, name: str, width: int) -> None:
    paragraphs = HOLDER + TEXTS[name].replace("Copyright (c) [year] [fullname]", "").strip()
    text = "\r\n\r\n".join(textwrap.fill(paragraph, width) for paragraph in paragraphs.split("\n\n"))
    assert license_of(tree(tmp_path, {"LICENSE": f"\ufeff{text}\r\n"})) == name


def test_terms_without_their_appendix(tmp_path: Path) -> None:
    for name in ("Apache-2.0", "GPL-2.0", "GPL-3.0"):
        terms = TEXTS[name].partition("END OF TERMS AND CONDITIONS")[0]
        assert len(terms) < len(TEXTS[name])
        assert license_of(tree(tmp_path / name, {"LICENSE": terms})) == name


NEITHER: Mapping[str, Mapping[str, str | bytes]] = {
    "no file": {"README.md": "MIT"},
    "another text": {"LICENSE": "You may look at this on Sundays."},
    "with a condition more": {"LICENSE": '"Commons Clause" License Condition v1.0\n' + "No selling. " * 40 + TEXTS["MIT"]},
    "a clause less": {"LICENSE": TEXTS["MIT"].replace("The above copyright notice", "").replace("substantial portions", "") * 2},
    "too large": {"LICENSE": TEXTS["MIT"] + " " * LARGEST},
    "no text": {"LICENSE": b"\xff\xfe\x00" * 300},
    "a program": {"license.go": TEXTS["MIT"]},
    "a tag that says nothing": {"LICENSE": "SPDX-License-Identifier: LicenseRef-Ours\n"},
    "sources that disagree": {"a.go": "// SPDX-License-Identifier: MIT\n", "b.go": "// SPDX-License-Identifier: ISC\n"},
    "others' work": {"vendor/x/LICENSE": TEXTS["MIT"]},
}


@pytest.mark.parametrize("case", NEITHER)
def test_an_uncertain_license_is_not_named(tmp_path: Path, case: str) -> None:
    assert license_of(tree(tmp_path, NEITHER[case])) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE": "SPDX-License-Identifier: GPL-2.0-or-later\n"}, "GPL-2.0-or-later"),
        ({"LICENSE": "SPDX-License-Identifier: (mit OR apache-2.0)\n"}, "(MIT OR Apache-2.0)"),
        (
            {"COPYING": "SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0"},
            "GPL-2.0-only WITH Classpath-exception-2.0",
        ),
        ({"a.go": "// SPDX-License-Identifier: BSD-3-Clause\npackage a\n", "b.go": "package a\n"}, "BSD-3-Clause"),
        ({"LICENSES/Apache-2.0.txt": TEXTS["Apache-2.0"]}, "Apache-2.0"),
    ],
)
def test_spdx_tags_and_the_directory_of_reuse(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert license_of(tree(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE-MIT": "MIT", "LICENSE-APACHE": "Apache-2.0"}, "Apache-2.0, MIT"),
        ({"COPYING": "GPL-3.0", "COPYING.LESSER": "LGPL-3.0"}, "LGPL-3.0"),
        ({"LICENSE": "MIT", "COPYING": "MIT"}, "MIT"),
    ],
)
def test_several_licenses(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert license_of(tree(tmp_path, {file: TEXTS[name] for file, name in files.items()})) == expected


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text(TEXTS["MIT"])
    root = tree(tmp_path / "repo", {"a.go": "package a\n"})
    (root / "LICENSE").symlink_to(tmp_path / "outside")
    assert license_of(root) is None


@pytest.mark.parametrize("text", ["\n" * LARGEST, " " * LARGEST, "\t \n" * 40_000, "Copyright \n" * 10_000])
def test_no_text_takes_long(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    license_of(tree(tmp_path, {"LICENSE": text}))
    assert time.process_time() - started < 8


def test_many_license_files_do_not_take_long(tmp_path: Path) -> None:
    root = tree(tmp_path, {f"LICENSE-{number}": TEXTS["GPL-3.0"] * 3 for number in range(500)})
    started = time.process_time()
    license_of(root)
    assert time.process_time() - started < 8


# Languages


def test_the_language_is_that_of_most_bytes(tmp_path: Path) -> None:
    files = {"a.go": "x" * 50, "b/b.go": "x" * 50, "c.py": "x" * 90, "Makefile": "x" * 900, "notes.md": "x" * 900}
    assert language_of(tree(tmp_path, files)) == "Go"
    assert language_of(tree(tmp_path, {"d.PY": "x" * 20})) == "Python"


def test_vendored_code_and_data_do_not_count(tmp_path: Path) -> None:
    aside = ("vendor", "node_modules", "testdata", ".hidden", "_old")
    files = {"a.go": "x"} | {f"{directory}/deep/a.js": "x" * 1000 for directory in aside}
    assert language_of(tree(tmp_path, files)) == "Go"


def test_without_sources_there_is_no_language(tmp_path: Path) -> None:
    assert language_of(tree(tmp_path, {"README.md": "x"})) is None
