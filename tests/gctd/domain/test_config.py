"""The flags of `go test` that the settings of a project give."""

from __future__ import annotations

import pytest

from gctd.domain.repo.config import ProjectConfig, go_test_flags


@pytest.mark.parametrize(
    ("config", "engine", "flags"),
    [
        (ProjectConfig(), "native", ()),
        (ProjectConfig(coverpkg=True), "native", ("-coverpkg=./...",)),
        (ProjectConfig(coverpkg=False), "native", ()),
        (ProjectConfig(coverpkg=True, test_args="-short"), "native", ("-short", "-coverpkg=./...")),
        (ProjectConfig(coverpkg=True, test_args="-coverpkg=./a"), "native", ("-coverpkg=./a",)),
        (ProjectConfig(coverpkg=True), "native-compat", ()),
        (ProjectConfig(test_args="-coverpkg=./a"), "native-compat", ("-coverpkg=./a",)),
    ],
)
def test_coverpkg_is_a_flag_of_go_test_for_the_native_engine(config: ProjectConfig, engine: str, flags: tuple[str, ...]) -> None:
    assert go_test_flags(config, engine) == flags
