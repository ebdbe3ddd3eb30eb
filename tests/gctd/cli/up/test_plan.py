"""The system as data: its programs have the time that their settings give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.cli.up.places import Places
from gctd.cli.up.system import Options, plan
from terminalkit.config.loading import SettingsError

pytestmark = pytest.mark.real

TRACKER, LEDGER, GATEWAY = "GCTD_SHUTDOWN_TIMEOUT", "PANTRY_SERVER_SHUTDOWNTIMEOUT", "GRAPHQL_SHUTDOWN_TIMEOUT"


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"serve": 40.0, "pantry": 40.0, "graphql": 40.0, "worker-1": 40.0}),
        ({TRACKER: "45s", "GCTD_DRAIN_TIMEOUT": "10m"}, {"serve": 55.0, "pantry": 55.0, "graphql": 55.0, "worker-1": 610.0}),
        ({TRACKER: "0s", LEDGER: "2m"}, {"serve": 10.0, "pantry": 130.0, "graphql": 10.0, "worker-1": 40.0}),
    ],
    ids=["by default", "of the tracker", "of one service"],
)
def test_a_program_is_killed_only_after_the_time_that_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: dict[str, float]
) -> None:
    for name in (LEDGER, GATEWAY):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    programs = {program.name: program for stage in plan(Options(), Places.below(tmp_path / "data")).stages for program in stage}
    assert {name: program.patience for name, program in programs.items()} == expected
    for name, variable in (("serve", TRACKER), ("pantry", LEDGER), ("graphql", GATEWAY)):
        assert programs[name].environment[variable] == given.get(variable, given.get(TRACKER, "30s"))


@pytest.mark.usefixtures("bare")
def test_a_time_that_cannot_be_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GATEWAY, "soon")
    with pytest.raises(SettingsError, match=rf"{GATEWAY}: must be a duration like 15s, 10m or 1h30m, not 'soon'"):
        plan(Options(), Places.below(tmp_path))
