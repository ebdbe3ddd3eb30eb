"""A coverage profile is read and staged whatever a test puts in its place."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gctd.scan.go.staging import STAGED, staged
from gctd.scan.isolation.files import Directory
from tests.gctd.scan.go.coverage_run.go_projects import module


@pytest.mark.real
async def test_the_profile_is_staged_in_the_module_and_removed(make: Any) -> None:
    project = make("single")
    run = await project.run()
    with Directory.open(project.source) as source, staged(source, project.source, ".", run.profile) as profile:
        assert profile is not None
        assert profile == project.directory / ".go-crap-cover.out"
        assert profile.read_bytes() == run.profile
    assert not profile.exists()
    with Directory.open(project.source) as source, staged(source, project.source, ".", None) as profile:
        assert profile is None


@pytest.mark.parametrize("there", ["file", "directory", "link", "full directory"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_is_in_the_place_of_the_profile_is_removed_and_not_followed(tmp_path: Path, there: str, when: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    module_dir = tmp_path / "module"
    module_dir.mkdir()

    def put() -> None:
        place = module_dir / STAGED
        if there == "file":
            place.write_text("x")
        elif there == "link":
            place.symlink_to(outside)
        else:
            place.mkdir()
            if there == "full directory":
                (place / "x").touch()

    if when == "before":
        put()
    with suppress(LookupError), Directory.open(tmp_path) as source, staged(source, tmp_path, "module", b"mode: set\n"):
        assert (module_dir / STAGED).read_text() == "mode: set\n"
        if when == "after":
            (module_dir / STAGED).unlink()
            put()
        raise LookupError
    assert list(module_dir.iterdir()) == []
    assert outside.read_text() == "kept"


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
