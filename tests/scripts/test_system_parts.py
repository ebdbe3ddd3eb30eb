"""Root on Debian gets missing parts of the system; to others they are named, with their cost and the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

import attrs
import pytest
from launcher import system_parts
from launcher.system_parts import PARTS, provide


@attrs.define
class Machine:
    """A machine with `programs`, on which apt-get installs packages, unless it `fails` with this subcommand."""

    programs: set[str]
    fails: str = ""
    calls: list[str] = attrs.field(factory=list)
    said: list[str] = attrs.field(factory=list)

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.programs else None

    def run(self, command: list[str], env: Mapping[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        assert env["DEBIAN_FRONTEND"] == "noninteractive"
        self.calls.append(command[1])
        if command[1] == self.fails:
            return subprocess.CompletedProcess(command, 100, "E: no network\n")
        self.programs |= {part.programs[0] for part in PARTS if part.package in command}
        return subprocess.CompletedProcess(command, 0, "")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Debian for root, with git only."""
    bare = Machine({"git", "apt-get"})
    monkeypatch.setattr(shutil, "which", bare.which)
    monkeypatch.setattr(subprocess, "run", bare.run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return bare


def test_root_gets_the_packages_of_debian(machine: Machine) -> None:
    provide(machine.said.append)
    assert machine.calls == ["update", "install"]
    assert machine.said == ["installing chromium-headless-shell, bubblewrap by apt-get (--no-system-packages refuses this)"]
    provide(machine.said.append)
    assert machine.calls == ["update", "install"], "nothing is missing now"


@pytest.mark.parametrize("refusal", ["the flag", "another user", "another system"])
def test_without_an_installation_each_part_is_named_with_its_cost(
    machine: Machine, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if refusal == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if refusal == "another system":
        machine.programs.remove("apt-get")
    provide(machine.said.append, install=refusal != "the flag")
    assert machine.calls == []
    browser, sandbox = machine.said
    assert browser.startswith("chromium-headless-shell is missing: about ")
    assert "tests of pages are skipped\nhint: apt-get install chromium-headless-shell" in browser
    assert sandbox.startswith("bwrap is missing: about ")
    assert "hint: apt-get install bubblewrap" in sandbox


@pytest.mark.parametrize("step", ["update", "install"])
def test_a_failed_installation_is_reported_and_ends_nothing(machine: Machine, step: str) -> None:
    machine.fails = step
    provide(machine.said.append)
    assert f"apt-get {step} ended with status 100, so the tests run without it\nE: no network" in machine.said
    assert machine.said[-1].startswith("bwrap is missing")


def test_any_browser_serves(machine: Machine) -> None:
    machine.programs |= {"google-chrome", "bwrap"}
    assert system_parts.missing() == []
