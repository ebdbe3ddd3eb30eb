"""The operator's credentials: accepted and refused entries of the file, and their use."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from gctd.domain.errors import BadInput
from gctd.scan.policy import git_settings, module_downloads, read_credentials
from gctd.settings import Settings


def netrc(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "netrc"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_every_host_has_its_own(tmp_path: Path) -> None:
    path = netrc(tmp_path, "machine Git.example.com login me password one\nmachine b.example login you password t:wo\n")
    assert read_credentials(path) == {"git.example.com": "me:one", "b.example": "you:t:wo"}
    assert read_credentials(None) == {}


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("machine a.example login me password geheim\n", 0o644, "chmod 600"),
        ("machine a.example login me password geheim\n", 0o620, "chmod 600"),
        ("default login me password geheim\n", 0o600, "default entry"),
        ("machine a.example login me pass geheim\n", 0o600, "line 1 cannot be read"),
    ],
)
def test_a_file_that_could_give_a_password_away_is_refused_without_repeating_it(
    tmp_path: Path, text: str, mode: int, reason: str
) -> None:
    with pytest.raises(BadInput, match=reason) as caught:
        read_credentials(netrc(tmp_path, text, mode))
    assert "geheim" not in str(caught.value)
    assert caught.value.field == "credentials_file"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_credentials(tmp_path / "none")


def test_they_reach_git_and_go_and_show_in_neither_s_settings(tmp_path: Path) -> None:
    path = netrc(tmp_path, "machine git.example.com login me password geheim\n")
    settings = Settings(
        credentials_file=path, http_proxy="http://me:geheim@proxy.example:3128", ssh_key=tmp_path / "a key", ssh_known_hosts=path
    )
    git, downloads = git_settings(settings), module_downloads(settings)
    assert git.credentials == {"git.example.com": "me:geheim"}
    assert git.ssh_options[:2] == ("-i", str(tmp_path / "a key"))
    assert f'UserKnownHostsFile="{path}"' in git.ssh_options
    variables = downloads.variables()
    assert variables["NETRC"] == str(path)
    assert variables["HTTPS_PROXY"] == settings.http_proxy
    assert variables["GIT_CONFIG_KEY_0"] == "http.https://git.example.com/.extraHeader"
    assert variables["GIT_CONFIG_VALUE_0"] == "Authorization: Basic " + base64.b64encode(b"me:geheim").decode()
    assert "geheim" not in repr((git, downloads))
