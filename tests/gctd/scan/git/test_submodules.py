"""Submodules come on request only, and from addresses that any repository may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.scan.errors import GitError
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from tests.gctd.scan.conftest import url_of
from tests.gctd.scan.git.checking_out import listing
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


def with_submodule(tmp_path: Path, address: str, path: str = "sub") -> gorepo.GoRepo:
    """Make a repository `outer` with one submodule at the commit of the repository `inner` next to it."""
    inner = gorepo.make(tmp_path / "inner", kind="single")
    outer = gorepo.make(tmp_path / "outer", kind="multi")
    outer.write({".gitmodules": f'[submodule "s"]\n\tpath = {path}\n\turl = {address}\n'})
    outer.git("add", ".gitmodules")
    outer.git("update-index", "--add", "--cacheinfo", f"160000,{inner.head()},sub")
    outer.git("commit", "-q", "-m", "submodule")
    return outer


@pytest.mark.parametrize("address", ["../inner", "file://{}/inner"])
async def test_submodules_come_only_where_they_are_asked_for(tmp_path: Path, checkouts: Checkouts, address: str) -> None:
    outer = with_submodule(tmp_path, address.format(tmp_path))
    async with checkouts.checkout(url_of(outer.path)) as checkout:
        assert listing(checkout.path / "sub") == []
    async with checkouts.checkout(url_of(outer.path), submodules=True) as checkout:
        assert listing(checkout.path / "sub") == sorted(gorepo.KINDS["single"])


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% pwn",
        "--upload-pack=touch pwn",
        "https://127.0.0.1/x",
        "https://user:pw@host.example/x",
        "git://host.example/x",
    ],
)
async def test_the_address_of_a_submodule_is_judged_like_any_other(tmp_path: Path, checkouts: Checkouts, address: str) -> None:
    outer = with_submodule(tmp_path, address)
    with pytest.raises(GitError, match=r"the submodule sub is refused|disallowed submodule url"):
        await enter_with_submodules(checkouts, outer)
    assert not any("pwn" in name for name in listing(tmp_path))


async def test_local_submodules_are_refused_where_local_repositories_are(tmp_path: Path, cache: Path, git: Git) -> None:
    outer = with_submodule(tmp_path, f"{tmp_path}/inner")
    with pytest.raises(GitError, match="local disk"):
        await enter_with_submodules(Checkouts(cache, git), outer)


async def enter_with_submodules(checkouts: Checkouts, repo: gorepo.GoRepo) -> None:
    async with checkouts.checkout(url_of(repo.path), submodules=True):
        pass
