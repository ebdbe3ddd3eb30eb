"""Shared fixtures of the tests of checkouts and runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from gctd.domain.remote.addresses import AddressPolicy
from gctd.domain.remote.urls import RepoUrl, parse_repo_url
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from gctd.scan.go.toolchain import Toolchain, find_toolchain
from tests.support.tracker import go_library

LOOPBACK = AddressPolicy.of(["127.0.0.0/8"])

local = partial(parse_repo_url, allow_local=True)
web = partial(parse_repo_url, allow_http=True, addresses=LOOPBACK)


def url_of(path: Path) -> RepoUrl:
    return local(str(path))


@pytest.fixture
def git() -> Git:
    """git that may connect to this machine."""
    return Git(GitSettings(addresses=LOOPBACK))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def checkouts(cache: Path, git: Git) -> Checkouts:
    return Checkouts(cache, git, parse_url=local)


@pytest_asyncio.fixture
async def go_cache(request: pytest.FixtureRequest) -> Path:
    """Go's caches, which last over runs of the tests."""
    cache = Path(request.config.cache.mkdir("go"))
    await go_library.give_packages(cache / "build")
    return cache


@pytest_asyncio.fixture
async def toolchain(tmp_path: Path) -> Toolchain:
    return await find_toolchain(tmp_path)
