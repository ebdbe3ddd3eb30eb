"""The database of `projections` if no option names one."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from gctd.readmodel import MODEL as TRACKER
from pantry.readmodel import MODEL as PANTRY
from projections.cli import options
from projections.model import ReadModel
from terminalkit.config.running import announced_system


def address_of(model: ReadModel) -> str | None:
    return options.address_of(model.settings, model.settings.database, {})


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The working directory and the home directory, with nothing in them."""
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    for name in ("GCTD_DATABASE_URL", "PANTRY_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return here, home


@pytest.mark.parametrize("text", ["database:\n  url: sqlite:a.db", "database.url: sqlite:a.db", "Database:\n  URL: sqlite:a.db"])
def test_the_settings_file_of_the_pantry_names_its_database(places: tuple[Path, Path], text: str) -> None:
    here, home = places
    (home / ".pantry.yaml").write_text(text)
    assert address_of(PANTRY) == "sqlite:a.db"
    assert address_of(TRACKER) is None
    (here / ".pantry.yaml").write_text("loglevel: info")
    assert address_of(PANTRY) is None  # the file of the working directory counts, as for the service


def test_a_variable_comes_before_the_file(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = places
    (here / ".gctd.yaml").write_text("database_url: sqlite:file.db")
    assert address_of(TRACKER) == "sqlite:file.db"
    monkeypatch.setenv("GCTD_DATABASE_URL", "sqlite:variable.db")
    assert address_of(TRACKER) == "sqlite:variable.db"


def test_the_running_service_gives_both_addresses_or_none(places: tuple[Path, Path]) -> None:
    settings = PANTRY.settings
    with announced_system("pantry up", {"PANTRY_DATABASE_URL": "sqlite:/a.db", "PANTRY_NATS_URL": "nats://a"}):
        assert address_of(PANTRY) == "sqlite:/a.db"
        assert options.address_of(settings, settings.nats, {settings.database: "sqlite:/a.db"}) == "nats://a"
        assert options.address_of(settings, settings.nats, {settings.database: "sqlite:/b.db"}) is None
        assert address_of(TRACKER) is None
        with (
            announced_system("gctd up", {"PANTRY_DATABASE_URL": "sqlite:/c.db"}),
            pytest.raises(click.UsageError, match="several"),
        ):
            address_of(PANTRY)
        (places[0] / ".pantry.yaml").write_text("nats_url: nats://b")
        assert address_of(PANTRY) is None, "the addresses of two systems are not mixed"


@pytest.mark.parametrize("text", ["database: [database:\n  url: 5"])
def test_a_file_that_is_none_is_named(places: tuple[Path, Path], text: str) -> None:
    (places[0] / ".pantry.yaml").write_text(text)
    with pytest.raises(click.UsageError, match=r"\.pantry\.yaml"):
        address_of(PANTRY)
