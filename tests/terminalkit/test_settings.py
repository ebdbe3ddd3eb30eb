"""Configuration: flag over environment over file over default. Errors name the source of the value, and secrets stay secret."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminalkit.config import loading
from terminalkit.config.loading import LoadedSettings, SettingsError, SettingValue, load, setting, settings


class Style(Enum):
    JSON = "json"
    TEXT = "text"


@settings
class Conf:
    """Settings of a service."""

    KEYS: ClassVar[Mapping[str, str]] = {
        "port": "server.port",
        "read_timeout": "server.readtimeout",
        "url": "database.url",
        "style": "logformat",
        "hosts": "server.hosts",
    }
    port: int = setting(default=8080, ge=0, le=65535, help="Port.")
    read_timeout: float = setting(default=15.0, duration=True)
    url: str = setting(default="sqlite:pantry.db")
    style: Style = setting(default=Style.JSON, env="X_LOG_FORMAT")
    token: str | None = setting(default=None, secret=True)
    hosts: tuple[str, ...] = setting(default=())
    data: Path = setting(default=Path("data"))
    verbose: bool = setting(default=False)
    ratio: float = setting(default=0.5)


def loaded(
    tmp_path: Path, *, flags: dict[str, Any] | None = None, env: dict[str, str] | None = None, file: str | None = None
) -> LoadedSettings[Conf]:
    path = None
    if file is not None:
        path = tmp_path / ".x.yaml"
        path.write_text(file)
    return load(Conf, prefix="X", flags=flags or {}, env=env or {}, file=path)


FILE = """
server:
  port: 1
  readtimeout: 1m30s
  hosts: [a.example, b.example]
database.url: postgres://me:secret@db/x
LogFormat: text
data: /var/x
verbose: true
ratio: 0.25
"""


def test_defaults_stand_where_nothing_is_set(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert found.values == Conf()
    assert set(found.origins.values()) == {"default"}


def test_a_file_is_read_with_nested_and_dotted_keys_in_any_case(tmp_path: Path) -> None:
    assert loaded(tmp_path, file=FILE).values == Conf(
        port=1,
        read_timeout=90.0,
        url="postgres://me:secret@db/x",
        style=Style.TEXT,
        hosts=("a.example", "b.example"),
        data=Path("/var/x"),
        verbose=True,
        ratio=0.25,
    )


def test_environment_comes_before_the_file_and_a_flag_before_both(tmp_path: Path) -> None:
    env = {"X_SERVER_PORT": "2", "X_LOG_FORMAT": "json", "X_SERVER_HOSTS": "c.example, d.example", "X_VERBOSE": "false"}
    found = loaded(tmp_path, file=FILE, env=env, flags={"port": 3, "read_timeout": "10s", "url": None})
    values = found.values
    assert (values.port, values.read_timeout, values.style, values.hosts) == (3, 10.0, Style.JSON, ("c.example", "d.example"))
    assert (values.verbose, values.ratio) == (False, 0.25)
    assert found.origins["server.port"] == "flag"
    assert found.origins["server.readtimeout"] == "flag"
    assert found.origins["logformat"] == "environment X_LOG_FORMAT"
    assert found.origins["database.url"] == f"file {tmp_path / '.x.yaml'}"
    assert found.origins["token"] == "default"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "environment": ({"env": {"X_SERVER_PORT": "http"}}, "X_SERVER_PORT: must be a whole number (it is 'http')"),
    "range": ({"env": {"X_SERVER_PORT": "65536"}}, "X_SERVER_PORT: must be at most 65535 (it is '65536')"),
    "duration": ({"env": {"X_SERVER_READTIMEOUT": "15 seconds"}}, "must be a duration like 15s, 10m or 1h30m, not '15 seconds'"),
    "enum": ({"env": {"X_LOG_FORMAT": "xml"}}, "X_LOG_FORMAT: must be one of: json, text (it is 'xml')"),
    "boolean": ({"env": {"X_VERBOSE": "yes"}}, "X_VERBOSE: must be true or false"),
    "flag": ({"flags": {"port": -1}}, "--port: must be at least 0 (it is -1)"),
    "type in file": ({"file": "server: {port: '8080'}"}, ".x.yaml: server.port: must be a whole number (it is '8080')"),
    "list in file": ({"file": "server: {hosts: a.example}"}, "server.hosts: must be a list"),
    "unknown key": ({"file": "server: {prot: 1}"}, ".x.yaml: server.prot is unknown; did you mean server.port?"),
    "no mapping": ({"file": "- a"}, ".x.yaml: the file must have keys and values"),
    "no YAML": ({"file": "a: [b"}, ".x.yaml cannot be read: while parsing"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_source(tmp_path: Path, name: str) -> None:
    given, text = WRONG[name]
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, **given)
    assert text in str(caught.value)


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, env={"X_SERVER_PORT": "x", "X_VERBOSE": "x"}, file="nonsense: 1")
    assert len(str(caught.value).splitlines()) == 3


def test_a_file_that_is_asked_for_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.yaml cannot be read"):
        load(Conf, prefix="X", flags={}, env={}, file=tmp_path / "none.yaml")


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, file="# nothing\n").values == Conf()


@settings
class Required:
    name: str = setting()


def test_what_has_no_default_has_to_be_set() -> None:
    with pytest.raises(SettingsError, match="name is not set; set R_NAME or name in the configuration file"):
        load(Required, prefix="R", flags={}, env={})
    assert load(Required, prefix="R", flags={}, env={"R_NAME": "x"}).values.name == "x"


def test_secrets_and_passwords_in_urls_are_masked(tmp_path: Path) -> None:
    env = {"X_TOKEN": "hunter2", "X_DATABASE_URL": "postgres://me:hunter2@db:5432/x?sslmode=disable"}
    found = loaded(tmp_path, env=env)
    assert found.values.token == "hunter2"
    shown = {one.key: one for one in found.show()}
    assert list(shown) == [
        "server.port",
        "server.readtimeout",
        "database.url",
        "logformat",
        "token",
        "server.hosts",
        "data",
        "verbose",
        "ratio",
    ]
    assert shown["server.port"] == SettingValue("server.port", 8080, "default", "X_SERVER_PORT", "Port.")
    assert shown["server.readtimeout"].value == "15s"
    assert shown["database.url"].value == "postgres://me:***@db:5432/x?sslmode=disable"
    assert (shown["token"].value, shown["token"].origin) == ("***", "environment X_TOKEN")
    assert "hunter2" not in str(shown)


def test_a_wrong_secret_is_not_in_the_error() -> None:
    @settings
    class Secretive:
        pin: int = setting(secret=True)

    with pytest.raises(SettingsError) as caught:
        load(Secretive, prefix="S", flags={}, env={"S_PIN": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15), ("10m", 600), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400), ("0s", 0), ("1m0.5s", 60.5)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert loading.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "s", "-1s", "1s ", "1 s", "1d", "1e3s", "9" * 20 + "h", "999999h", "1s1x", 15, None, "٣s"]
)
def test_a_text_that_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        loading.parse_duration(text)


@given(st.integers(0, 300 * 24 * 3600 * 1000))
def test_a_duration_that_is_shown_is_read_back(milliseconds: int) -> None:
    assert round(loading.parse_duration(loading.show_duration(milliseconds / 1000)) * 1000) == milliseconds
