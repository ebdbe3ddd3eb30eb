"""Commands find the system that runs on this machine, by one rule, and no other value of theirs changes by it."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import os
import socket
from pathlib import Path

import pytest

from gctd.settings import SETTINGS
from pantry.settings import SETTINGS as PANTRY
from terminalkit.config.loading import SettingsError
from terminalkit.config.running import SeveralRunning, announced_system, running_system
from terminalkit.failure import ExitCode, Failure
from terminalkit.service_commands import check_default_broker

VARIABLES = {"GCTD_URL": "http://127.0.0.1:1234", "PANTRY_URL": "http://127.0.0.1:1235", "GCTD_NATS_URL": "nats://a:b@c"}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def files(directory: Path) -> list[Path]:
    return sorted((directory / "terminalkit" / "running").iterdir())


def test_a_setting_comes_from_the_running_system_unless_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = SETTINGS.load().values
    with announced_system("gctd up", VARIABLES):
        (file,) = files(tmp_path)
        assert file.stat().st_mode & 0o777 == 0o600, "it has passwords"
        loaded = SETTINGS.load(running=("url",))
        assert (loaded.values.url, loaded.origins["url"]) == ("http://127.0.0.1:1234", f"running gctd up (process {os.getpid()})")
        assert loaded.values.nats_url == default.nats_url
        assert SETTINGS.load().values == default, "a program that serves does not join by accident"
        assert SETTINGS.load(running=("url", "nats_url")).values.nats_url == "nats://a:b@c"
        assert PANTRY.load(running=("url",)).values.url == "http://127.0.0.1:1235"
        assert SETTINGS.load({"url": "http://flag:1"}, running=("url",)).values.url == "http://flag:1"
        monkeypatch.setenv("GCTD_URL", "http://environment:1")
        assert SETTINGS.load(running=("url",)).values.url == "http://environment:1"
        monkeypatch.delenv("GCTD_URL")
        (tmp_path / ".gctd.yaml").write_text("url: http://file:1\n")
        assert SETTINGS.load(running=("url",)).values.url == "http://file:1"
        (tmp_path / ".gctd.yaml").unlink()
    assert SETTINGS.load(running=("url",)).values == default
    assert files(tmp_path) == []


def test_the_addresses_of_two_systems_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    default = SETTINGS.load().values
    with announced_system("gctd up", VARIABLES):
        monkeypatch.setenv("GCTD_URL", "http://elsewhere:1")
        assert SETTINGS.load(running=("nats_url",)).values.nats_url == default.nats_url
        monkeypatch.setenv("GCTD_URL", VARIABLES["GCTD_URL"])
        assert SETTINGS.load(running=("nats_url",)).values.nats_url == "nats://a:b@c", "it is the same system"


def test_several_systems_are_named_if_their_values_differ() -> None:
    with announced_system("gctd up", VARIABLES), announced_system("pantry up", {"PANTRY_URL": "http://127.0.0.1:1236"}):
        assert SETTINGS.load(running=("url",)).values.url == "http://127.0.0.1:1234"
        both = rf"gctd up \(process {os.getpid()}\).*pantry up \(process {os.getpid()}\)|pantry up .*gctd up "
        with pytest.raises(SettingsError, match=both):
            PANTRY.load(running=("url",))
        with pytest.raises(SeveralRunning, match="PANTRY_URL"):
            running_system({"PANTRY_URL"}, {})
        assert running_system({"PANTRY_URL"}, {"PANTRY_URL": "http://127.0.0.1:1236"}) is not None
    with announced_system("gctd up", VARIABLES), announced_system("gctd serve", VARIABLES):
        assert SETTINGS.load(running=("url",)).values.url == "http://127.0.0.1:1234"


def test_a_file_of_a_database_is_found_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with announced_system("bank serve", {"BANK_DATABASE_URL": "sqlite:bank.db", "BANK_NATS_URL": "nats://a"}):
        assert running_system({"BANK_NATS_URL"}, {"BANK_DATABASE_URL": "sqlite:bank.db"}) is not None
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        system = running_system({"BANK_DATABASE_URL"}, {})
        assert system is not None
        assert system.variables["BANK_DATABASE_URL"] == f"sqlite:{tmp_path / 'bank.db'}"
        assert running_system({"BANK_NATS_URL"}, {"BANK_DATABASE_URL": "sqlite:bank.db"}) is None


def test_a_part_of_a_running_system_is_none_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with announced_system("gctd up", VARIABLES), monkeypatch.context() as child:
        child.setattr(os, "getppid", os.getpid)
        child.setattr(os, "getpid", lambda: 1)
        with announced_system("gctd serve", VARIABLES | {"GCTD_NATS_URL": "nats://less:rights@c"}):
            system = running_system({"GCTD_NATS_URL"}, {})
    assert system is not None
    assert (system.name, system.variables["GCTD_NATS_URL"]) == ("gctd up", "nats://a:b@c")


def _announce_and_die(ready: multiprocessing.synchronize.Event) -> None:
    with announced_system("gctd up", VARIABLES):
        ready.set()
        os.kill(os.getpid(), 9)


@pytest.mark.real
def test_a_system_that_was_killed_is_not_found_and_its_file_goes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_announce_and_die, args=(ready,))
    process.start()
    process.join(60)
    assert (ready.is_set(), len(files(tmp_path))) == (True, 1)
    assert running_system({"GCTD_URL"}, {}) is None
    assert files(tmp_path) == []


def test_a_damaged_file_is_passed_over(tmp_path: Path) -> None:
    for text in ("", "[]", '{"pid": 1}', '{"name": "x", "pid": 1, "parent": 1, "variables": 3}'):
        with announced_system("gctd up", VARIABLES):
            (file,) = files(tmp_path)
            file.write_text(text)
            assert running_system({"GCTD_URL"}, {}) is None


def test_a_home_that_cannot_be_written_prevents_no_start(tmp_path: Path) -> None:
    (tmp_path / "terminalkit").write_text("")
    with announced_system("gctd up", VARIABLES):
        assert running_system({"GCTD_URL"}, {}) is None


def test_a_program_without_a_broker_at_the_default_place_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> socket.socket:
        raise OSError

    monkeypatch.setattr("terminalkit.service_commands.socket.create_connection", refused)
    with pytest.raises(Failure) as raised:
        check_default_broker(SETTINGS.load(), "serve", up="gctd up")
    assert (raised.value.why, raised.value.exit_code) == ("no NATS at nats://nats.infra.svc:4222", ExitCode.UNAVAILABLE)
    assert raised.value.hint == "run 'gctd up', or set GCTD_NATS_URL"
    with pytest.raises(Failure, match="no system of yours with its address runs on this machine"):
        check_default_broker(SETTINGS.load(), "token list", up="gctd up", looked=True)
    check_default_broker(SETTINGS.load({"nats_url": "nats://127.0.0.1:1"}), "serve", up="gctd up")
