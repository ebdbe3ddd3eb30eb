"""Settings: flag over environment over file over default, documented, shown with their source, secrets masked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.settings import SETTINGS, Settings
from httpkit.messages.fields import attributes_of
from terminalkit.config.loading import SettingsError
from tests.gctd.cli.conftest import Here
from tests.support.programs.cli import gctd
from tests.support.tracker.fake_api import FakeApi

NAMES = [attribute.name for attribute in attributes_of(Settings)]


pytestmark = pytest.mark.usefixtures("bare")


def test_the_documented_defaults() -> None:
    settings = SETTINGS.load().values
    assert settings.nats_url == "nats://nats.infra.svc:4222"
    assert (settings.max_attempts, settings.worker_engine) == (3, "native")
    assert (settings.host, settings.port, settings.url) == ("127.0.0.1", 8080, "http://127.0.0.1:8080")
    assert (settings.allow_local, settings.allow_ssh, settings.private_hosts, settings.auth_token) == (False, False, (), None)


def test_files_are_kept_where_the_system_keeps_them(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(bare / "data"))
    settings = SETTINGS.load().values
    assert settings.cache_directory == bare / "cache" / "gctd"
    assert settings.database_url == f"sqlite:{bare / 'data' / 'gctd' / 'gctd.db'}"


def test_a_flag_comes_before_the_environment_before_the_file_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".gctd.yaml").write_text("port: 1001\nconcurrency: 5\nnats_url: nats://file:1\n", encoding="utf-8")
    monkeypatch.setenv("GCTD_PORT", "1002")
    monkeypatch.setenv("GCTD_NATS_URL", "nats://environment:1")
    loaded = SETTINGS.load({"port": 1003})
    assert (loaded.values.port, loaded.values.nats_url) == (1003, "nats://environment:1")
    assert (loaded.values.concurrency, loaded.values.replicas) == (5, 1)
    origins = {shown.key: shown.origin for shown in loaded.show()}
    assert [origins[key] for key in ("port", "nats_url", "concurrency", "replicas")] == [
        "flag",
        "environment GCTD_NATS_URL",
        "file .gctd.yaml",
        "default",
    ]


def test_the_file_here_comes_before_the_one_at_home_and_a_named_one_before_both(bare: Path) -> None:
    (bare / "home" / ".gctd.yaml").write_text("port: 1\nconcurrency: 7\n", encoding="utf-8")
    assert SETTINGS.load().values.port == 1
    Path(".gctd.yaml").write_text("port: 2\n", encoding="utf-8")
    assert (SETTINGS.load().values.port, SETTINGS.load().values.concurrency) == (2, 1)
    (bare / "named.yaml").write_text("port: 3\n", encoding="utf-8")
    assert SETTINGS.load(file=bare / "named.yaml").values.port == 3


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ack_wait", "3s", 3.0),
        ("task_timeout", "1h30m", 5400.0),
        ("allowed_hosts", "a, b", ("a", "b")),
        ("private_hosts", "git.internal,10.0.0.0/8", ("git.internal", "10.0.0.0/8")),
        ("allow_local", "true", True),
        ("worker_id", "build-7", "build-7"),
        ("event_store_max_bytes", "20GiB", "20GiB"),
        ("log_format", "json", "json"),
    ],
)
def test_variables_of_the_environment_are_read(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object) -> None:
    monkeypatch.setenv(f"GCTD_{name.upper()}", text)
    assert getattr(SETTINGS.load().values, name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "65536"),
        ("port", "-1"),
        ("port", "http"),
        ("concurrency", "0"),
        ("max_attempts", "0"),
        ("worker_id", "a b"),
        ("task_timeout", "30"),
        ("task_timeout", "0s"),
        ("allow_local", "perhaps"),
        ("log_level", "loud"),
        ("log_format", "xml"),
        ("auth_token", "short"),
        ("event_store_max_bytes", "much"),
        ("host", ""),
    ],
)
def test_a_value_that_cannot_be_right_is_named(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(f"GCTD_{name.upper()}", text)
    monkeypatch.setenv("GCTD_REPLICAS", "0")
    with pytest.raises(SettingsError, match=f"GCTD_{name.upper()}: ") as caught:
        SETTINGS.load()
    assert "GCTD_REPLICAS" in str(caught.value)
    assert name != "auth_token" or text not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_help_text(name: str) -> None:
    about = SETTINGS.describe(name)
    assert about.help.endswith(".")
    assert about.env == f"GCTD_{name.upper()}"
    assert about.default


@pytest.mark.real
async def test_config_show_has_every_setting_with_its_source_and_no_secret(tmp_path: Path) -> None:
    env = {"GCTD_AUTH_TOKEN": "very-secret", "GCTD_NATS_URL": "nats://user:very-secret@broker:4222", "GCTD_ALLOW_LOCAL": "true"}
    (tmp_path / ".gctd.yaml").write_text("log_level: debug\nallowed_hosts: [a, b]\n", encoding="utf-8")
    result = await gctd("config", "show", "--json", url=None, home=tmp_path, env=env)
    assert [one["key"] for one in result.json] == NAMES
    shown = {one["key"]: (one["value"], one["origin"]) for one in result.json}
    assert shown["auth_token"] == ("***", "environment GCTD_AUTH_TOKEN")
    assert shown["nats_url"] == ("nats://user:***@broker:4222", "environment GCTD_NATS_URL")
    assert shown["log_level"] == ("debug", "file .gctd.yaml")
    assert shown["task_timeout"] == ("30m", "default")
    assert "very-secret" not in result.out
    lines = await gctd("config", "show", url=None, home=tmp_path, env=env)
    assert ["allowed_hosts", "a,b", "file .gctd.yaml"] in lines.rows
    assert ["allow_local", "true", "environment GCTD_ALLOW_LOCAL"] in lines.rows
    assert "very-secret" not in lines.out


@pytest.mark.real
async def test_a_flag_says_where_the_server_is_before_the_environment_and_the_file(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "named.yaml").write_text(f"url: {api.url}\n", encoding="utf-8")
    wrong = "http://127.0.0.1:1"
    by_flag = await gctd("worker", "list", "--url", api.url, url=wrong, home=tmp_path)
    by_file = await gctd("worker", "list", "--config", "named.yaml", url=None, home=tmp_path)
    by_environment = await gctd("worker", "list", "--config", "named.yaml", url=wrong, home=tmp_path)
    assert [by_flag.code, by_file.code, by_environment.code] == [0, 0, 6]


@pytest.mark.parametrize(
    ("arguments", "env", "complaint"),
    [
        (("config", "show"), {"GCTD_PORT": "x"}, "config show: GCTD_PORT: "),
        (("task", "list"), {"GCTD_PORT": "x"}, "task list: GCTD_PORT: "),
        (("serve", "--port", "99999"), {}, "serve: --port: "),
        (("worker", "--id", "a b"), {}, "worker: --worker-id: "),
        (("worker", "--concurrency", "3", "list"), {}, "worker: --concurrency is for running a worker"),
        (("config", "show", "--config", "missing.yaml"), {}, "missing.yaml"),
        (("config", "show", "--config", "wrong.yaml"), {}, "wrong.yaml: prot is unknown; did you mean port?"),
    ],
)
def test_settings_that_cannot_be_right_are_an_error_in_usage(
    here: Here, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], env: dict[str, str], complaint: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    Path("wrong.yaml").write_text("prot: 1\n", encoding="utf-8")
    result = here(*arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
