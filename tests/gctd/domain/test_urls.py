"""Repository addresses: accepted ones, refused ones, and texts that name the same repository."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.domain.errors import BadInput
from gctd.domain.remote.addresses import AddressPolicy
from gctd.domain.remote.urls import RepoUrl, parse_repo_url, repo_id

SAME = [
    (
        "https://github.com/owner/name",
        [
            "https://github.com/owner/name.git",
            "https://github.com/owner/name/",
            "https://github.com/owner/name.git/",
            "https://GitHub.COM/owner/name",
            "HTTPS://github.com/owner/name",
            "https://github.com:443/owner/name",
            "github.com/owner/name",
            "https://github.com/%6fwner/n%61me",
        ],
    ),
    ("https://git.example.com:8443/a/b/c", ["https://git.example.com:8443/a/b/c.git", "https://GIT.example.com:08443/a/b/c//"]),
    ("https://dev.azure.com/org/My%20Project/_git/repo", ["https://dev.azure.com/org/My%20Project/_git/repo"]),
    ("https://xn--bcher-kva.example/a/b", ["https://xn--bcher-kva.example/a/b"]),
    ("https://8.8.8.8/a", ["https://8.8.8.8/a"]),
    ("https://[2606:4700::1111]/a", ["https://[2606:4700:0::1111]/a.git"]),
    ("https://git.sr.ht/~user/repo", ["https://git.sr.ht/~user/repo"]),
]

REFUSED = [
    "",
    "-",
    "--upload-pack=touch pwn;",
    "-oProxyCommand=touch${IFS}pwn",
    "ext::sh -c touch% pwn",
    "ext::sh",
    "fd::17",
    "transport::address",
    "https::https://github.com/a/b",
    "ssh://-oProxyCommand=touch/x",
    "-oProxyCommand=touch:x",
    "git@-oProxyCommand=touch:x",
    "https://-oProxyCommand=touch/x",
    "https://github.com/-x/y",
    "https://github.com/a/-upload-pack",
    "file:///etc/passwd",
    "file://localhost/srv/repo",
    "/srv/repo",
    "//srv/repo",
    "./repo",
    "../repo",
    "repo",
    "git://github.com/a/b",
    "http://github.com/a/b",
    "ftp://github.com/a/b",
    "javascript://github.com/a/b",
    "gopher://github.com/a/b",
    "git+ssh://git@github.com/a/b",
    "ssh://git@github.com/a/b",
    "git@github.com:a/b",
    "http://127.0.0.1/a",
    "https://127.0.0.1/a",
    "https://127.1/a",
    "https://2130706433/a",
    "https://0x7f000001/a",
    "https://0x7f.0.0.1/a",
    "https://0177.0.0.1/a",
    "https://localhost/a",
    "https://localhost:8080/a",
    "https://git.localhost/a",
    "https://gitea/a",
    "https://metadata.google.internal/a",
    "https://169.254.169.254/latest",
    "https://10.0.0.1/a",
    "https://192.168.1.1/a",
    "https://172.16.0.1/a",
    "https://100.64.0.1/a",
    "https://0.0.0.0/a",
    "https://224.0.0.1/a",
    "https://[::1]/a",
    "https://[::]/a",
    "https://[::ffff:127.0.0.1]/a",
    "https://[::ffff:a9fe:a9fe]/a",
    "https://[fe80::1]/a",
    "https://[fe80::1%25eth0]/a",
    "https://[fc00::1]/a",
    "https://[2002:7f00:1::]/a",
    "https://[64:ff9b::7f00:1]/a",
    "https://[not-an-address]/a",
    "https://user@github.com/a/b",
    "https://user:secret@github.com/a/b",
    "https://github.com@evil.example/a",
    "https://github.com%40evil.example/a",
    "https://:443/a",
    "https:///a/b",
    "https://github.com",
    "https://github.com/",
    "https://github.com//",
    "https://github.com/.git",
    "https://github.com/a//b",
    "https://github.com/a/../b",
    "https://github.com/a/./b",
    "https://github.com/a/%2e%2e/b",
    "https://github.com/a/.%2E/b",
    "https://github.com/a%2f..%2fb",
    "https://github.com/a/b?x=1",
    "https://github.com/a/b#main",
    "https://github.com/a/b%23main",
    "https://github.com/a/b%00",
    "https://github.com/a/b%0aHost:x",
    "https://github.com/a/b%0d",
    "https://github.com/a/b%",
    "https://github.com/a/b%zz",
    "https://github.com/a\\b",
    "https:\\\\github.com\\a",
    "https://github.com/a b",
    " https://github.com/a/b",
    "https://github.com/a/b ",
    "https://github.com/a/b\n",
    "https://github.com/a/b\r\nHost: x",
    "https://github.com/a/b\x00",
    "https://github.com/a/b\u2028",
    "https://github.com/a/\u202eb",
    "https://g\u0131thub.com/a/b",
    "https://github.com./a/b",
    "https://git_hub.com/a/b",
    "https://.github.com/a/b",
    "https://github..com/a/b",
    "https://github.com:0/a",
    "https://github.com:65536/a",
    "https://github.com:x/a",
    "https://github.com:/a",
    "https://github.com:443:443/a",
    "https://github.com/$(touch pwn)/b",
    "https://github.com/`touch`/b",
    "https://github.com/a;touch/b",
    "https://github.com/a|b",
    "https://github.com/a/'b'",
    "https://" + "a" * 64 + ".com/a",
    "https://github.com/" + "a" * 2048,
    "\ud800",
]


@pytest.mark.parametrize(("canonical", "texts"), SAME)
def test_one_repository_has_one_identity(canonical: str, texts: list[str]) -> None:
    """Case of the host, `.git`, slashes at the end, default port, needless escapes do not make another repository."""
    assert {parse_repo_url(text).canonical for text in [canonical, *texts]} == {canonical}


@pytest.mark.parametrize("text", REFUSED)
def test_a_harmful_address_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_repo_url(text, field="url")
    assert caught.value.field == "url"
    assert caught.value.reason


@pytest.mark.parametrize(
    "text", [text for text in REFUSED if not re.match(r"ssh://git@|git@github|file://|/srv|http://github", text)]
)
def test_allowing_other_transports_lets_nothing_else_in(text: str) -> None:
    with pytest.raises(BadInput):
        parse_repo_url(text, allow_local=True, allow_ssh=True, allow_http=True)


def test_case_in_the_path_and_the_port_are_part_of_the_identity() -> None:
    texts = ["https://h.example/A/b", "https://h.example/a/b", "https://h.example:444/a/b"]
    assert len({repo_id(parse_repo_url(text).canonical) for text in texts}) == 3


def test_a_password_is_never_repeated() -> None:
    for text in ("https://user:geheim@github.com/a", "ssh://user:geheim@github.com/a", "user:geheim@github.com:a/b"):
        with pytest.raises(BadInput) as caught:
            parse_repo_url(text, allow_ssh=True)
        assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "canonical", "clone_url"),
    [
        ("git@github.com:owner/name.git", "ssh://git@github.com/owner/name", "git@github.com:owner/name.git"),
        ("git@github.com:/owner/name", "ssh://git@github.com/owner/name", "git@github.com:/owner/name"),
        ("ssh://git@GitHub.com:22/owner/name.git", "ssh://git@github.com/owner/name", "ssh://git@github.com/owner/name.git"),
        ("ssh://git@host.example:2222/a", "ssh://git@host.example:2222/a", "ssh://git@host.example:2222/a"),
        ("host.example:a/b", "ssh://host.example/a/b", "host.example:a/b"),
    ],
)
def test_ssh_in_both_forms_where_it_is_allowed(text: str, canonical: str, clone_url: str) -> None:
    url = parse_repo_url(text, allow_ssh=True)
    assert (url.kind, url.canonical, url.clone_url) == ("ssh", canonical, clone_url)


@pytest.mark.parametrize(
    "text", ["/srv/my repos/x", "file:///srv/my%20repos/x", "/srv/./my repos//x/", "file://localhost/srv/my%20repos/x"]
)
def test_local_repositories_where_they_are_allowed(text: str) -> None:
    url = parse_repo_url(text, allow_local=True)
    assert url == RepoUrl(
        canonical="file:///srv/my%20repos/x", clone_url="file:///srv/my%20repos/x", host="", path="/srv/my repos/x", kind="local"
    )


@pytest.mark.parametrize(
    "text", ["/", "/srv/../etc", "file:///srv/%2e%2e/etc", "file:///a%00b", "file://host/a", "/a\nb", "//a/b", "file:////a"]
)
def test_local_paths_that_are_refused_all_the_same(text: str) -> None:
    with pytest.raises(BadInput):
        parse_repo_url(text, allow_local=True)


def test_private_hosts_are_accepted_where_the_operator_lists_them() -> None:
    policy = AddressPolicy.of(["gitea", "10.0.0.0/8", "fd00::1", "git.corp.internal"])
    accepted = [
        "https://gitea/a",
        "https://10.1.2.3/a",
        "https://[fd00::1]/a",
        "https://git.corp.internal/a",
        "https://[::ffff:10.0.0.1]/a",
    ]
    for text in accepted:
        assert parse_repo_url(text, addresses=policy).kind == "https"
    for text in ("https://11gitea/a", "https://192.168.0.1/a", "https://[fd00::2]/a", "https://x.corp.internal/a"):
        with pytest.raises(BadInput):
            parse_repo_url(text, addresses=policy)


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "1.2.3", "host/path"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(BadInput):
        AddressPolicy.of([entry])


def test_the_id_is_32_hex_digits_and_always_the_same() -> None:
    assert repo_id("https://github.com/owner/name") == "a0aeab5f0c1bb49430e99884dec0279a"


@given(st.text(max_size=60) | st.from_regex(r"(https://|git@|file://|)[a-z0-9.:/@%\[\]~-]{0,40}", fullmatch=True))
def test_any_text_is_refused_or_has_a_canonical_form_that_stays(text: str) -> None:
    """Parsing the canonical form of anything accepted gives the same again, and it begins with a scheme."""
    try:
        url = parse_repo_url(text, allow_local=True, allow_ssh=True, allow_http=True)
    except BadInput:
        return
    again = parse_repo_url(url.canonical, allow_local=True, allow_ssh=True, allow_http=True)
    assert again.canonical == url.canonical
    assert re.match(r"(https|http|ssh|file)://", url.canonical)
    assert url.canonical.isascii()
    assert url.canonical.isprintable()
    assert not url.clone_url.startswith("-")
