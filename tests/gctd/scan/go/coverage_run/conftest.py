"""Fixtures of the tests of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gctd.scan.go.toolchain import Toolchain
from tests.gctd.scan.go.coverage_run.go_projects import Project
from tests.support.tracker import go_repo as gorepo


@pytest.fixture
def make(tmp_path: Path, go_cache: Path, toolchain: Toolchain) -> Any:
    """Makes a Project of a kind of repository, or of files."""

    def project(files: str | Mapping[str, str], below: str = ".") -> Project:
        root, job = tmp_path / f"src{len(list(tmp_path.iterdir()))}", tmp_path / "job"
        for name, text in (gorepo.KINDS[files] if isinstance(files, str) else files).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        job.mkdir(exist_ok=True)
        return Project(root, below, job, go_cache, toolchain)

    return project
