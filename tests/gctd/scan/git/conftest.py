"""Fixtures of the tests of checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from tests.gctd.scan.conftest import LOOPBACK, local
from tests.gctd.scan.git.checking_out import Counted
from tests.support.tracker.git_http import counting_git


@pytest.fixture
def counted(cache: Path, tmp_path: Path) -> Counted:
    program = counting_git(tmp_path / "counting")
    git = Git(GitSettings(addresses=LOOPBACK, program=str(program)))
    return Counted(Checkouts(cache, git, parse_url=local), program.parent / "calls")
