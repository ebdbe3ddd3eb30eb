"""The settings for the APIs of git hosts: their meaning and the refused values."""

from __future__ import annotations

import pytest

from gctd.domain.errors import BadInput
from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.domain.remote.urls import parse_repo_url
from gctd.scan.hosts.apis import api_of, parse_apis


@pytest.mark.parametrize(
    ("entries", "url", "api"),
    [
        ([], "https://github.com/a/b", "https://api.github.com"),
        ([], "https://gitlab.com/a/b", "https://gitlab.com/api/v4"),
        ([], "https://codeberg.org/a/b", None),
        (["git.example.com=gitlab"], "https://git.example.com/a/b", "https://git.example.com/api/v4"),
        (["GHE.example.com=GitHub"], "https://ghe.example.com/a/b", "https://ghe.example.com/api/v3"),
        (["x.example.com:8443=gitlab"], "https://x.example.com:8443/a/b", "https://x.example.com:8443/api/v4"),
        (["x.example.com:8443=gitlab"], "https://x.example.com/a/b", None),
        (["x.example.com=gitlab"], "https://x.example.com:8443/a/b", "https://x.example.com/api/v4"),
        (["x.example.com=github@https://api.x.example.com/"], "https://x.example.com/a/b", "https://api.x.example.com"),
        (["github.com=github@https://mirror.example.com"], "https://github.com/a/b", "https://mirror.example.com"),
    ],
)
def test_which_api_knows_a_repository(entries: list[str], url: str, api: str | None) -> None:
    found = api_of(parse_repo_url(url), parse_apis(entries, [], PUBLIC_ONLY))
    assert (found.url if found else None) == api


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "git.example.com",
        "git.example.com=gitea",
        "=github",
        "a b=github",
        "x.example.com=github@ftp://x.example.com",
        "x.example.com=github@http://x.example.com",
        "x.example.com=github@https://",
        "x.example.com=github@https://user:pw@x.example.com",
        "x.example.com=github@https://x.example.com/?a=b",
        "x.example.com=github@https://x.example.com:99999",
        "x.example.com=github@https://x.example.com/#f",
    ],
)
def test_an_address_that_is_no_api_is_refused(entry: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_apis([entry], [], PUBLIC_ONLY)
    assert refused.value.field == "git_hosts"


def test_plain_http_is_for_hosts_that_the_operator_listed() -> None:
    entry = "x.example.com=github@http://10.1.2.3:3000"
    with pytest.raises(BadInput):
        parse_apis([entry], [], PUBLIC_ONLY)
    assert parse_apis([entry], [], AddressPolicy.of(["10.0.0.0/8"]))["x.example.com"].url == "http://10.1.2.3:3000"


@pytest.mark.parametrize("token", ["github.com", "unknown.example.com=s3cret", "github.com=", "github.com=s3 cret", "s3cret"])
def test_a_token_that_cannot_be_right_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_apis([], [token], PUBLIC_ONLY)
    assert refused.value.field == "git_host_tokens"
    assert "s3" not in str(refused.value)
