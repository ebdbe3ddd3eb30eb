"""The language that most of a repository is written in, by the bytes of its source files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from gctd.scan.go.discovery import SKIPPED

_LANGUAGES = {
    "C": "c h",
    "C#": "cs",
    "C++": "cc cpp cxx hh hpp hxx",
    "Clojure": "clj cljs",
    "CSS": "css less scss",
    "Dart": "dart",
    "Elixir": "ex exs",
    "Go": "go",
    "Haskell": "hs",
    "HTML": "html htm",
    "Java": "java",
    "JavaScript": "cjs js jsx mjs",
    "Kotlin": "kt kts",
    "Lua": "lua",
    "Objective-C": "m mm",
    "OCaml": "ml mli",
    "Perl": "pl pm",
    "PHP": "php",
    "Python": "py",
    "R": "r",
    "Ruby": "rb",
    "Rust": "rs",
    "Scala": "scala",
    "Shell": "bash sh zsh",
    "Swift": "swift",
    "TypeScript": "ts tsx",
    "Vue": "vue",
    "Zig": "zig",
}
_BY_SUFFIX = {f".{suffix}": language for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()}


def language_of(root: Path) -> str | None:
    """Return the language with the most bytes; None if no source file exists.

    Third-party code (`vendor`, `node_modules`), data (`testdata`) and names that begin with `.` or `_` do not count.
    """
    sizes = Counter[str]()
    for folder, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in SKIPPED and not name.startswith((".", "_"))]
        for name in files:
            language = _BY_SUFFIX.get(os.path.splitext(name)[1].lower())  # noqa: PTH122 - pathlib is five times slower
            if language is not None:
                sizes[language] += os.lstat(f"{folder}/{name}").st_size
    return max(sorted(sizes), key=lambda language: sizes[language]) if sizes else None
