"""git returns the commit of a ref, and gives no other control to the remote host, its address, its options or its text."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.domain.remote.addresses import AddressPolicy
from gctd.domain.remote.urls import Kind, RepoUrl
from gctd.scan.errors import GitError, ScanError
from gctd.scan.git.commands import Git
from gctd.scan.git.messages import redact
from gctd.scan.git.program import GitSettings
from gctd.scan.git.refs import RemoteRef
from tests.gctd.scan.conftest import LOOPBACK, url_of, web
from tests.support.pace import within
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.git_http import GitServer, counting_git, serve


@pytest.fixture
def repo(tmp_path: Path) -> gorepo.GoRepo:
    return gorepo.make(tmp_path / "repo", kind="single")


@pytest.fixture
def server(repo: gorepo.GoRepo) -> Any:
    with serve(repo.path.parent) as state:
        yield state


# The commit of a ref


@pytest.mark.real
async def test_no_ref_means_the_default_branch(repo: gorepo.GoRepo, git: Git) -> None:
    repo.git("branch", "-m", "trunk/of-tree")
    expected = RemoteRef(name="trunk/of-tree", full="refs/heads/trunk/of-tree", commit_sha=repo.head())
    assert await git.resolve(url_of(repo.path)) == expected
    assert await git.resolve(url_of(repo.path), "HEAD") == expected


@pytest.mark.real
async def test_only_the_full_name_counts(repo: gorepo.GoRepo, git: Git) -> None:
    """`main` is not `feature/main`, though `git ls-remote main` lists both."""
    main = repo.head()
    repo.git("checkout", "-q", "-b", "feature/main")
    repo.commit()
    repo.git("tag", "feature/tag")
    assert (await git.resolve(url_of(repo.path), "main")).commit_sha == main
    with pytest.raises(GitError, match="no branch or tag 'tag'"):
        await git.resolve(url_of(repo.path), "tag")


@pytest.mark.real
async def test_a_branch_comes_before_a_tag_of_its_name(repo: gorepo.GoRepo, git: Git) -> None:
    first = repo.head()
    repo.git("tag", "v1")
    repo.git("checkout", "-q", "-b", "v1")
    second = repo.commit()
    assert await git.resolve(url_of(repo.path), "v1") == RemoteRef(name="v1", full="refs/heads/v1", commit_sha=second)
    assert (await git.resolve(url_of(repo.path), "refs/tags/v1")).commit_sha == first


@pytest.mark.real
async def test_annotated_tags_are_peeled_to_their_commit(repo: gorepo.GoRepo, git: Git) -> None:
    repo.git("tag", "-a", "-m", "x", "v2")
    repo.git("tag", "-a", "-m", "x", "v2-of-tag", "v2")
    assert repo.git("rev-parse", "v2") != repo.head()
    for name in ("v2", "v2-of-tag"):
        assert (await git.resolve(url_of(repo.path), name)).commit_sha == repo.head()


async def test_a_commit_id_needs_no_question(git: Git) -> None:
    url = RepoUrl(canonical="https://x.invalid/a", clone_url="https://x.invalid/a", host="x.invalid", path="/a", kind="https")
    assert await git.resolve(url, "a" * 40) == RemoteRef(name="a" * 40, full=None, commit_sha="a" * 40)


@pytest.mark.real
@pytest.mark.parametrize(
    ("ref", "reason"), [("none", "no branch or tag 'none'"), ("abcdef1", "must be given in full"), ("refs/heads/x", "no branch")]
)
async def test_a_ref_that_is_not_there(repo: gorepo.GoRepo, git: Git, ref: str, reason: str) -> None:
    with pytest.raises(GitError, match=reason) as caught:
        await git.resolve(url_of(repo.path), ref)
    assert caught.value.permanent


@pytest.mark.real
async def test_an_empty_repository_and_one_that_is_not_there(tmp_path: Path, git: Git) -> None:
    gorepo.make(tmp_path / "x").git("init", "--quiet", "--bare", str(tmp_path / "empty"))
    with pytest.raises(GitError, match="empty"):
        await git.resolve(url_of(tmp_path / "empty"))
    with pytest.raises(GitError, match="no such repository"):
        await git.resolve(url_of(tmp_path / "missing"))


@pytest.mark.real
async def test_all_refs_of_a_repository_are_asked_for_at_once(repo: gorepo.GoRepo, tmp_path: Path) -> None:
    first = repo.head()
    repo.git("tag", "-a", "-m", "x", "v1")
    second = repo.commit()
    program = counting_git(tmp_path / "counting")
    git = Git(GitSettings(addresses=LOOPBACK, program=str(program)))
    found = await git.resolve_all(url_of(repo.path), [None, "main", "v1", "none", "a" * 40])
    error = found["none"]
    assert isinstance(error, GitError)
    assert "no branch or tag 'none'" in str(error)
    assert {ref: one.commit_sha for ref, one in found.items() if isinstance(one, RemoteRef)} == {
        None: second,
        "main": second,
        "v1": first,
        "a" * 40: "a" * 40,
    }
    assert (program.parent / "calls").read_text().split() == ["ls-remote"]


# The inputs that git does not get

PWN = "touch pwn"


def canaries(directory: Path) -> list[Path]:
    """Return the files that the attack would have made, in the directories of the test and of git."""
    return [*directory.rglob("pwn*"), *Path("/").glob("pwn*")]


@pytest.mark.real
@pytest.mark.parametrize(
    ("clone_url", "kind"),
    [
        (f"--upload-pack={PWN};", "local"),
        (f"-u{PWN};", "local"),
        ("ext::sh -c touch% pwn", "local"),
        ("ext::sh -c touch% pwn", "https"),
        ("fd::17", "local"),
        (f"ssh://-oProxyCommand={PWN}/x", "ssh"),
        (f"-oProxyCommand={PWN}:x", "ssh"),
        ("git://127.0.0.1/x", "https"),
        ("file:///tmp", "https"),
        ("https://127.0.0.1/x", "local"),
        ("/tmp", "ssh"),
    ],
)
async def test_even_an_address_that_no_parser_saw_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clone_url: str, kind: Kind
) -> None:
    """The second line of defence: a transport that is not the URL's own is not used, an option is not taken for one.

    The user's own configuration, which allows all, is not read.
    """
    (tmp_path / ".gitconfig").write_text('[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file:ssh:https")
    monkeypatch.chdir(tmp_path)
    git = Git(GitSettings(addresses=LOOPBACK))
    url = RepoUrl(canonical="x", clone_url=clone_url, host="127.0.0.1", path="/x", kind=kind)
    mirror = tmp_path / "mirror"
    await git.make_mirror(mirror)
    with pytest.raises(ScanError):
        await git.resolve(url)
    with pytest.raises(ScanError):
        await git.fetch(url, RemoteRef(name="x", full="refs/heads/main", commit_sha="0" * 40), mirror)
    assert canaries(tmp_path) == []


@pytest.mark.real
@pytest.mark.parametrize("ref", [f"--upload-pack={PWN};", "-h", "--help", "main --exec"])
async def test_even_a_ref_that_no_parser_saw_is_no_option(repo: gorepo.GoRepo, git: Git, tmp_path: Path, ref: str) -> None:
    mirror = tmp_path / "mirror"
    await git.make_mirror(mirror)
    with pytest.raises(GitError):
        await git.resolve(url_of(repo.path), ref)
    with pytest.raises(GitError):
        await git.fetch(url_of(repo.path), RemoteRef(name=ref, full=ref, commit_sha="0" * 40), mirror)
    assert canaries(tmp_path) == []


@pytest.mark.real
async def test_no_configuration_is_read_but_ours(
    repo: gorepo.GoRepo, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the configuration of the user, nor of a repository around the working directory of the worker."""
    elsewhere = f'[url "{repo.path}/nowhere"]\n\tinsteadOf = {repo.url}\n'
    (tmp_path / ".gitconfig").write_text(elsewhere)
    (repo.path / ".git" / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n{elsewhere}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(repo.path)
    assert (await git.resolve(url_of(repo.path))).commit_sha == repo.head()


# Where git goes


@pytest.mark.real
async def test_over_http_git_asks_for_refs_only(repo: gorepo.GoRepo, server: GitServer, git: Git) -> None:
    assert (await git.resolve(web(f"{server.url}/repo"))).commit_sha == repo.head()
    assert [line.split()[0] for line in server.requests] == ["GET", "POST"]


@pytest.mark.real
async def test_a_name_is_looked_up_once_and_git_is_bound_to_the_judged_address(
    repo: gorepo.GoRepo, server: GitServer, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second look-up by git, which could give another address (DNS rebinding): the name exists only in our look-up."""
    port = int(server.url.rpartition(":")[2])

    async def look_up(*_: object, **__: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    url = web(f"http://repo.example.invalid:{port}/repo")
    assert (await git.resolve(url)).commit_sha == repo.head()
    assert server.headers["host"] == f"repo.example.invalid:{port}"


@pytest.mark.real
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "fe80::1",
        "fd00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
    ],
)
async def test_a_name_that_leads_inside_is_refused_before_a_connection(
    server: GitServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Also where only one of its addresses does."""

    async def look_up(*_: object, **__: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("93.184.215.14", address)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    git = Git(GitSettings(addresses=AddressPolicy()))
    with pytest.raises(GitError, match="not a public address") as caught:
        await git.resolve(web(f"http://rebinding.example:{server.url.rpartition(':')[2]}/repo"))
    assert caught.value.permanent
    assert server.requests == []


@pytest.mark.real
async def test_a_redirect_is_not_followed(repo: gorepo.GoRepo, server: GitServer, git: Git) -> None:
    server.redirect = {"/moved": "/repo"}
    with pytest.raises(GitError, match="moved"):
        await git.resolve(web(f"{server.url}/moved"))
    assert not any("/repo" in line for line in server.requests)


@pytest.mark.real
async def test_a_host_that_wants_dot_git_gets_it(repo: gorepo.GoRepo, server: GitServer, git: Git, tmp_path: Path) -> None:
    """GitLab redirects requests without it."""
    repo.git("clone", "-q", "--bare", ".", str(repo.path.parent / "bare.git"))
    server.redirect = {"/bare/": "/bare.git/"}
    url = web(f"{server.url}/bare")
    ref = await git.resolve(url)
    await git.make_mirror(tmp_path / "mirror")
    assert await git.fetch(url, ref, tmp_path / "mirror") == repo.head()


@pytest.mark.real
@pytest.mark.parametrize(
    ("status", "reason", "permanent"),
    [
        (401, "private", True),
        (403, "private", True),
        (404, "no such repository", True),
        (429, "rate", False),
        (503, "reports an internal error", False),
    ],
)
async def test_the_answer_of_the_host_is_given_in_plain_words(
    server: GitServer, git: Git, status: int, reason: str, permanent: bool
) -> None:
    server.status = status
    with pytest.raises(GitError, match=reason) as caught:
        await git.resolve(web(f"{server.url}/repo"))
    assert caught.value.permanent is permanent


@pytest.mark.real
async def test_a_host_that_does_not_answer_is_given_up(git: Git) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, within(5), pytest.raises(GitError, match="its time was over") as caught:
        await git.resolve(web(f"http://127.0.0.1:{silent.getsockname()[1]}/repo"), seconds=0.5)
    assert not caught.value.permanent


@pytest.mark.real
async def test_a_closed_port_is_no_permanent_failure(git: Git) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(GitError, match="cannot be reached") as caught:
        await git.resolve(web(f"http://127.0.0.1:{port}/repo"))
    assert not caught.value.permanent


# Secrets


@pytest.mark.real
async def test_a_credential_goes_to_its_host_over_https_only(server: GitServer) -> None:
    """Not over http, where everyone could read it."""
    git = Git(GitSettings(addresses=LOOPBACK, credentials={"127.0.0.1": "user:geheim"}))
    await git.resolve(web(f"{server.url}/repo"))
    assert "authorization" not in server.headers


def test_secrets_are_taken_out_of_the_output_of_git() -> None:
    said = "fatal: unable to access 'https://user:geheim@host/x': Authorization: Basic Z2VoZWlt and token-1 \x1b[31m"
    clean = redact(said, ["user:token-1"])
    assert "geheim" not in clean
    assert "Z2VoZWlt" not in clean
    assert "token-1" not in clean
    assert "\x1b" not in clean


@pytest.mark.real
async def test_ssh_is_bound_to_the_judged_address_and_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nexit 1\n')
    program.chmod(0o755)
    settings = GitSettings(addresses=LOOPBACK, ssh_options=("-i", "/the key"))
    git = Git(attrs.evolve(settings, search_path=f"{program.parent}:{settings.search_path}"))
    url = RepoUrl(canonical="ssh://git@127.0.0.1/a", clone_url="git@127.0.0.1:a/b", host="127.0.0.1", path="/a/b", kind="ssh")
    with pytest.raises(GitError):
        await git.resolve(url)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert {"BatchMode=yes", "HostName=127.0.0.1", "HostKeyAlias=127.0.0.1", "ProxyCommand=none", "/the key"} <= set(arguments)
    assert arguments[-2:] == ["git@127.0.0.1", "git-upload-pack 'a/b'"]


@pytest.mark.real
async def test_an_old_git_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\necho git version 2.30.2\n")
    program.chmod(0o755)
    with pytest.raises(GitError, match=r"2\.37 or newer"):
        await Git(GitSettings(program=str(program))).make_mirror(tmp_path / "m")
    with pytest.raises(GitError, match="not installed"):
        await Git(GitSettings(program="no-such-git")).make_mirror(tmp_path / "m")
