"""The version of the package is the newest one of the change log, and the script of the check-list sees a difference."""

from __future__ import annotations

import configparser
import importlib.util
from importlib.machinery import SourceFileLoader
from types import ModuleType

import pytest

from tests.support import ROOT


@pytest.fixture(scope="module")
def release() -> ModuleType:
    loader = SourceFileLoader("release", str(ROOT / "scripts" / "release"))
    spec = importlib.util.spec_from_loader("release", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_version_is_the_newest_one_of_the_change_log(release: ModuleType) -> None:
    noted, date = release.newest((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert (noted, len(date)) == (release.current(), 10)


def test_a_section_without_a_version_or_a_date_is_not_ready(release: ModuleType) -> None:
    assert release.newest("# Log\n\n## [1.2.0] - 2026-01-02\n\n## [1.1.0]\n") == ("1.2.0", "2026-01-02")
    for text in ("# Log\n", "## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n", "## [1.2.0]\n"):
        with pytest.raises(release.NotReady, match="has no version with a date"):
            release.newest(text)


def test_the_classifiers_name_the_versions_that_the_check_list_tries(release: ModuleType) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    mark = "Programming Language :: Python :: 3."
    named = [line.removeprefix(mark) for line in setup["metadata"]["classifiers"].splitlines() if line.startswith(mark)]
    assert named
    assert {f"3.{minor}" for minor in named} <= set(release.PYTHONS)
