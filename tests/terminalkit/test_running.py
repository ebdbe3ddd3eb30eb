"""Commands find the system that runs on this machine, and no other value of theirs changes by it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gctd.settings import SETTINGS
from pantry.settings import SETTINGS as PANTRY
from terminalkit.config.running import announced, running_system
from terminalkit.exits import ExitCode
from terminalkit.failure import Failure
from terminalkit.runtime.default_broker import check_default_broker

VARIABLES = {"GCTD_URL": "http://127.0.0.1:1234", "PANTRY_URL": "http://127.0.0.1:1235", "GCTD_NATS_URL": "nats://a:b@c"}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_the_url_comes_from_the_running_system_unless_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = SETTINGS.load().values
    with announced("gctd", VARIABLES):
        file = tmp_path / "gctd" / "running.json"
        assert file.stat().st_mode & 0o777 == 0o600, "it has passwords"
        loaded = SETTINGS.load()
        assert (loaded.values.url, loaded.origins["url"]) == ("http://127.0.0.1:1234", f"running system {file}")
        assert loaded.values.nats_url == default.nats_url, "a program that serves does not join by accident"
        assert SETTINGS.load(whole=True).values.nats_url == "nats://a:b@c", "the doctor looks at the whole system"
        assert PANTRY.load().values.url == "http://127.0.0.1:1235"
        with announced("pantry", {"PANTRY_URL": "http://127.0.0.1:1236"}):
            assert PANTRY.load().values.url == "http://127.0.0.1:1236", "a ledger alone comes first"
        assert SETTINGS.load({"url": "http://flag:1"}).values.url == "http://flag:1"
        monkeypatch.setenv("GCTD_URL", "http://environment:1")
        assert SETTINGS.load().values.url == "http://environment:1"
        monkeypatch.delenv("GCTD_URL")
        (tmp_path / ".gctd.yaml").write_text("url: http://file:1\n")
        assert SETTINGS.load().values.url == "http://file:1"
        (tmp_path / ".gctd.yaml").unlink()
    assert SETTINGS.load().values == default


def test_a_system_that_was_killed_or_a_damaged_file_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gctd" / "running.json"
    with announced("gctd", VARIABLES):
        monkeypatch.setattr("terminalkit.config.running.os.kill", _no_such_process)
        assert running_system(["gctd"]) is None
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        for text in ("", "[]", '{"pid": 1}', f'{{"pid": {os.getpid()}, "variables": 3}}'):
            file.write_text(text)
            assert running_system(["gctd"]) is None
        file.write_text('{"pid": 1, "variables": {}}')
    assert file.exists(), "it is another system's now"


def _no_such_process(pid: int, number: int) -> None:
    raise ProcessLookupError


def test_a_program_without_a_broker_at_the_default_place_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> socket.socket:
        raise OSError

    monkeypatch.setattr("terminalkit.runtime.default_broker.socket.create_connection", refused)
    with pytest.raises(Failure) as raised:
        check_default_broker(SETTINGS.load(), "serve", up="gctd up")
    assert (raised.value.why, raised.value.exit_code) == ("no NATS at nats://nats.infra.svc:4222", ExitCode.UNAVAILABLE)
    assert raised.value.hint == "run 'gctd up', or set GCTD_NATS_URL"
    check_default_broker(SETTINGS.load({"nats_url": "nats://127.0.0.1:1"}), "serve", up="gctd up")
