"""A coverage profile is read, and not what a test puts in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gctd.scan.go.coverage_run.go_projects import module


@pytest.mark.real
async def test_a_profile_that_a_test_replaced_by_a_link_is_not_read(make: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mode: set\nsecret.go:1.1,2.2 1 1\n")
    body = f"""places, _ := filepath.Glob("{tmp_path}/job/*/profile")
for _, place := range places {{
\tos.Remove(place)
\tos.Symlink("{secret}", place)
}}"""
    project = make(module(body, "os", "path/filepath"))
    run = await project.run()
    assert b"secret.go" not in (run.profile or b"")
    assert secret.exists()
