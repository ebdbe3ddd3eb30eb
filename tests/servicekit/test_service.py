"""The parts of a service: its streams, its program, its settings, and the refused combinations."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
import yaml

from eventlog import Decider
from eventlog.admin.declarations import EVENT_STREAM, default_file, event_stream, load_declarations
from examples.bank.service import ACCOUNT, BANK, MODEL
from projections import Projection, models
from servicekit import Service, ServiceSettings
from terminalkit.config.loading import setting, settings

SETTINGS = ServiceSettings(database_url="sqlite:bank.db", replicas=3, event_store_max_bytes="2GiB")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Only the settings of the test. The model that a program gives is forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("BANK_DATABASE_URL", "BANK_PORT", "NATS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(models, "_given", [])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return tmp_path


def test_its_stream_has_the_categories_of_its_aggregates_and_what_a_log_needs() -> None:
    [stream] = BANK.declarations(SETTINGS).streams
    assert (stream.name, stream.incarnation, stream.apart) == ("BANK", True, False)
    assert stream.config["subjects"] == ["bank.account.*"]
    assert (stream.config["num_replicas"], stream.config["max_bytes"]) == (3, 2 * 1024**3)
    [tracker] = load_declarations(replicas=3).only("GCTD").streams
    own = {"subjects", "description", "max_bytes"}
    assert {name: value for name, value in stream.config.items() if name not in own} == {
        name: value for name, value in tracker.config.items() if name not in own
    }


def test_the_template_of_the_file_and_the_derived_stream_are_one() -> None:
    assert yaml.safe_load(default_file().read_text(encoding="utf-8"))["templates"]["events"] == EVENT_STREAM


def test_a_file_with_the_stream_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(json.dumps({"streams": {"BANK": {**EVENT_STREAM, "subjects": ["bank.>"], "max_bytes": "5MiB"}}}))
    service = attrs.evolve(BANK, streams_file=file)
    [stream] = service.declarations(ServiceSettings()).streams
    assert (stream.config["subjects"], stream.config["max_bytes"]) == (["bank.>"], 5 * 1024**2)
    [stream] = service.declarations(SETTINGS).streams
    assert stream.config["max_bytes"] == 2 * 1024**3
    [other] = event_stream("OTHER", ["other.thing"], file=file).streams
    assert other.config["subjects"] == ["other.thing.*"]


def test_a_decider_without_a_registered_state_is_refused() -> None:
    stranger: Decider[Any, Any, Any] = Decider("bank.vault", ACCOUNT.decide, ACCOUNT.evolve, initial=None)
    with pytest.raises(ValueError, match=r"no state is registered for bank\.vault"):
        attrs.evolve(BANK, deciders=[ACCOUNT, stranger])


def test_a_category_that_a_projection_reads_needs_a_registered_state() -> None:
    model = attrs.evolve(MODEL, projections=(*MODEL.projections, Projection("vaults", 1, (), {"bank.vault": lambda _: ()})))
    with pytest.raises(ValueError, match=r"no state is registered for bank\.vault: put `@REGISTRY\.state\(CATEGORY\)`"):
        attrs.evolve(BANK, model=model)


def test_a_category_without_a_decider_is_refused_since_its_events_would_not_be_shown() -> None:
    with pytest.raises(ValueError, match=r"`deciders` has no decider of bank\.account, .*event stream: add it"):
        attrs.evolve(BANK, deciders=[])


def test_its_program_shows_its_settings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BANK_PORT", "9")
    Path(".bank.yaml").write_text("database_url: sqlite:other.db")
    assert BANK.main(["config", "show", "--json"]) == 0
    shown = {one["key"]: (one["value"], one["origin"]) for one in json.loads(capsys.readouterr().out)}
    assert shown["port"] == (9, "environment BANK_PORT")
    assert shown["database_url"] == ("sqlite:other.db", "file .bank.yaml")


def test_a_wrong_setting_ends_its_program_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert BANK.main(["serve", "--port", "99999"]) == 2
    assert "--port: must be at most 65535" in capsys.readouterr().err
    assert BANK.main(["--version"]) == 0
    assert capsys.readouterr().out == "bank 0\n"


def test_its_program_has_the_commands_of_projections_for_its_model(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".bank.yaml").write_text("database_url: sqlite:bank.db")
    assert BANK.main(["projections", "migrate", "up"]) == 0
    assert BANK.main(["projections", "migrate", "version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"version": 1, "dirty": False}
    assert (models.default_name(), models.load("bank")) == ("bank", MODEL)


class Rounding(Enum):
    UP = "up"
    DOWN = "down"


@settings
class BranchSettings(ServiceSettings):
    """Settings of all types that a setting can have, and one that has to be set."""

    owner: str = setting(help="The owner of the branch.")
    rate: float = setting(default=0.5, ge=0, le=1, help="Part of a fee.")
    fee: Decimal = setting(default=Decimal("0.01"), places=2, help="Fee in a currency.")
    limit: int | None = setting(default=None, ge=1, help="Most accounts.")
    tills: tuple[int, ...] = setting(default=(1,), help="Numbers of tills.")
    names: list[str] = setting(default=attrs.Factory(list), help="Names of tills.")
    floor: Literal[0, 1] = setting(default=0, help="Floor of the building.")
    rounding: Rounding = setting(default=Rounding.UP, help="Rounding of fees.")
    pause: float | None = setting(default=None, duration=True, help="Pause at noon.")
    vault: Path | None = setting(default=None, help="A file.")


BRANCH = attrs.evolve(BANK, settings=BranchSettings)
GIVEN: dict[str, tuple[str, Any]] = {
    "rate": ("0.25", 0.25),
    "fee": ("0.02", Decimal("0.02")),
    "limit": ("7", 7),
    "tills": ("3", (3,)),
    "names": ("left", ["left"]),
    "floor": ("1", 1),
    "rounding": ("down", Rounding.DOWN),
    "pause": ("90s", 90.0),
    "vault": ("/v", Path("/v")),
}


def test_the_help_of_its_program_names_each_setting_also_one_that_has_to_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert BRANCH.main(["serve", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--owner TEXT The owner of the branch. [env: BANK_OWNER; required]" in text
    for flag, metavar, default in (
        ("rate", "TEXT", "0.5"),
        ("fee", "TEXT", "0.01"),
        ("limit", "TEXT", "none"),
        ("tills", "TEXT", "1"),
        ("names", "TEXT", "none"),
        ("floor", "0|1", "0"),
        ("rounding", "up|down", "up"),
        ("pause", "DURATION", "none"),
        ("vault", "PATH", "none"),
    ):
        assert f"--{flag} {metavar} " in text
        assert f"[env: BANK_{flag.upper()}; default: {default}]" in text


def by_flags(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BranchSettings:
    """The settings with which the program serves if its flags have the values."""
    served: list[BranchSettings] = []

    async def serve(_: Service, values: BranchSettings, **__: Any) -> None:
        served.append(values)

    monkeypatch.setattr(Service, "serve", serve)
    flags = [part for name, (text, _) in GIVEN.items() for part in (f"--{name}", text)]
    assert BRANCH.main(["serve", "--owner", "eve", *flags]) == 0, capsys.readouterr().err
    return served[0]


def by_variables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BranchSettings:
    """The same if the environment has them."""
    monkeypatch.setenv("BANK_OWNER", "eve")
    for name, (text, _) in GIVEN.items():
        monkeypatch.setenv(f"BANK_{name.upper()}", text)
    values: BranchSettings = BRANCH.source.load().values
    return values


@pytest.mark.parametrize("source", [by_flags, by_variables])
def test_a_setting_of_any_type_is_given_by_its_flag_and_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: Callable[..., BranchSettings]
) -> None:
    values = source(monkeypatch, capsys)
    assert values.owner == "eve"
    assert {name: getattr(values, name) for name in GIVEN} == {name: value for name, (_, value) in GIVEN.items()}


def test_the_settings_of_any_type_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BANK_OWNER", "eve")
    monkeypatch.setenv("BANK_ROUNDING", "down")
    assert BRANCH.main(["config", "show", "--json"]) == 0
    shown = {one["key"]: one["value"] for one in json.loads(capsys.readouterr().out)}
    assert {name: shown[name] for name in ("rate", "fee", "tills", "floor", "rounding", "pause")} == {
        "rate": 0.5,
        "fee": "0.01",
        "tills": [1],
        "floor": 0,
        "rounding": "down",
        "pause": None,
    }
    assert BRANCH.main(["config", "show"]) == 0
    assert "rounding\tdown\tenvironment BANK_ROUNDING\n" in capsys.readouterr().out
