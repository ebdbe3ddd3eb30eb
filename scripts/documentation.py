"""Builds the site of docs/: pages with a search, complete without a network. `python scripts/documentation.py`.

The pages are the Markdown files as they are, and the generated reference, by Sphinx with its parser of CommonMark. A link
without a target is a warning, and a warning is a failure. Diagrams are drawn as pictures. Files outside of docs/ that a page
links to are copied into the site. A browser opens it from the disk, and any web server can serve it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pictures.diagrams import DiagramFailed, drawn
from reference.pages import pages
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DEFAULT = ROOT / "build" / "documentation"
START = "README"
"""The page that the site begins with."""

CONTENTS: Mapping[str, Sequence[str]] = {
    "Tutorials": ("tutorials/analyse-a-repository", "tutorials/gate-a-pull-request", "tutorial", "second-service"),
    "Guides": ("guides/*",),
    "Reference": ("reference/*",),
    "Explanation": ("explanation/*", "explanation/decisions/README"),
    "Writing": ("style",),
}
"""The parts of the site, with the names or patterns of their pages."""
_DECISIONS = "explanation/decisions/README"
_GENERATED = "reference/generated"
"""The page of the generated reference, and the folder of its files."""
_SETTINGS: dict[str, Any] = {
    "project": "gctd",
    "copyright": "the gctd authors",
    "root_doc": START,
    "extensions": ["myst_parser"],
    "myst_heading_anchors": 4,
    "html_theme": "furo",
    "html_title": "gctd",
    "html_copy_source": False,
    "html_use_index": False,
    "html_show_search_summary": False,  # it would be fetched, which browsers refuse for files of the disk
}
_DIAGRAM = re.compile(r"^```mermaid\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]\n]+)\]\((\.\./[^)\s]*)\)")


class SiteFailed(SphinxError):
    """The build gave warnings, which are on standard error, or a diagram cannot be drawn."""


def build(directory: Path, docs: Path = DOCS) -> None:
    """Build the site of the pages in `docs` into a directory, in place of an older one. Raises SiteFailed."""
    shutil.rmtree(directory, ignore_errors=True)
    with TemporaryDirectory() as folder, patch_docutils(), docutils_namespace():
        site = Sphinx(
            srcdir=_sources(docs, Path(folder)),
            confdir=None,
            outdir=directory,
            doctreedir=Path(folder) / "trees",
            buildername="html",
            confoverrides=_SETTINGS,
            status=None,
            warning=sys.stderr,
            warningiserror=True,
        )
        site.connect("source-read", _read)
        site.build()
        if site.statuscode:
            raise SiteFailed("the build of the documentation gave warnings")
    shutil.copy(directory / f"{START}.html", directory / "index.html")


def _sources(docs: Path, folder: Path) -> Path:
    """Return a copy of the pages with the generated ones, in a folder that has all other files of the checkout as links."""
    for entry in docs.parent.iterdir():
        if entry != docs:
            (folder / entry.name).symlink_to(entry)
    sources = shutil.copytree(docs, folder / docs.name)
    if (sources / f"{_GENERATED}.md").exists():
        (sources / _GENERATED).mkdir()
        for name, text in pages().items():
            (sources / _GENERATED / name).write_text(text, encoding="utf-8")
    return sources


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Change the text of a page that was read: add the contents of the site, and remove links to places outside of it."""
    source[0] = _with_pictures(source[0])
    source[0] = _LINK.sub(lambda link: link[1] if _has_no_target(page, link[2]) else link[0], source[0])
    if page == START:
        source[0] += "".join(_contents(caption, names) for caption, names in CONTENTS.items())
    elif page == _DECISIONS:
        source[0] += _contents("", ["[0-9]*"])
    elif page == _GENERATED:
        files = sorted(file.name for file in (Path(app.srcdir) / _GENERATED).glob("*.json"))
        source[0] += "\nSchemas: " + ", ".join(f"[{name}](generated/{name})" for name in files) + ".\n"
        source[0] += _contents("", ["generated/*"])


def _with_pictures(text: str) -> str:
    """Replace the diagrams of a page by pictures. Raises SiteFailed."""
    try:
        pictures = iter(drawn([found["source"] for found in _DIAGRAM.finditer(text)]))
    except DiagramFailed as error:
        raise SiteFailed(str(error)) from error
    white = 'style="background: #fff"'  # also on the dark page
    return _DIAGRAM.sub(lambda _: f"```{{raw}} html\n<figure {white}>{next(pictures)}</figure>\n```", text)


def _has_no_target(page: str, link: str) -> bool:
    """Whether the target of a link is a directory, or a page outside of docs/."""
    target = Path(os.path.normpath((DOCS / page).parent / link.partition("#")[0]))
    return target.is_dir() or (target.suffix == ".md" and not target.is_relative_to(DOCS))


def _contents(caption: str, names: Sequence[str]) -> str:
    """Return the text for a list of pages at the side, with its caption if it has one."""
    options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "", "```{toctree}", *options, "", *names, "```", ""])


def main(argv: Sequence[str] | None = None) -> None:
    """Build the site into a directory, and print its first page."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path, default=DEFAULT, help="of the site, in place of an older one")
    parser.add_argument("docs", nargs="?", type=Path, default=DOCS, help="directory of the pages")
    arguments = parser.parse_args(argv)
    directory = arguments.directory.absolute()
    try:
        build(directory, arguments.docs.absolute())
    except SiteFailed as error:
        sys.exit(f"error: {error}")
    print(directory / "index.html")


if __name__ == "__main__":
    main()
