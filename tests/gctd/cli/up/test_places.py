"""The directories of a system, and the command line that its screen names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gctd.cli.up import places, system
from gctd.cli.up.places import Places
from tests.support import ROOT


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_checkout_has_its_data_in_itself_and_an_installed_program_in_the_directories_of_the_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Places.chosen(None, cluster=False) == Places.below(ROOT / ".data")
    assert Places.chosen(None, cluster=True) == Places.below(ROOT / ".data" / "cluster")
    monkeypatch.setattr(places, "checkout_root", lambda: None)
    found = Places.chosen(None, cluster=False)
    assert found.data == home / ".local" / "share" / "gctd"
    assert found.logs == home / ".local" / "state" / "gctd" / "log"
    assert found.cache == home / ".cache" / "gctd"
    assert Places.chosen(home / "here", cluster=False) == Places.below(home / "here")
    found.make_private(passable=False)
    assert {place.stat().st_mode & 0o777 for place in (found.data, found.logs, found.cache)} == {0o700}


def test_the_next_command_is_the_one_that_can_be_typed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = home / "env" / "bin" / "gctd"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.chdir(home)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert system._program() == "env/bin/gctd"
    monkeypatch.chdir("/")
    assert system._program() == str(program).removeprefix("/")
    monkeypatch.setenv("PATH", str(program.parent))
    assert system._program() == "gctd"
