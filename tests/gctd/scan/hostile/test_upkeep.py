"""No tree that a repository leaves behind keeps a worker from starting or going on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gctd.scan.cache.directory import Cache, CacheLimits
from gctd.scan.isolation.files import Directory
from gctd.scan.isolation.removal import remove


def nest(directory: Path, levels: int) -> None:
    """Directories in each other, deeper than a path can say."""
    directory.mkdir(parents=True)
    here = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    file = os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here)
    os.write(file, b"x" * 8192)
    os.close(file)
    os.close(here)


@pytest.mark.real
@pytest.mark.parametrize("levels", [1_500, 30_000])
async def test_a_deep_tree_is_measured_and_removed(tmp_path: Path, levels: int) -> None:
    try:
        nest(tmp_path / "builds" / "deep", levels)
        cache = Cache(tmp_path, CacheLimits(keep_free=0))
        (item,) = await cache.builds.items()
        assert item.size is not None
        assert item.size >= 8192
        await Cache(tmp_path, CacheLimits(builds=1, keep_free=0)).make_room()
        assert await cache.builds.items() == []
    finally:
        await remove(tmp_path / "builds")  # pytest itself could not


@pytest.mark.real
async def test_a_directory_that_cannot_be_measured_goes_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, CacheLimits(keep_free=0))
    for name in ("bad", "good"):
        (tmp_path / "builds" / name).mkdir()
    measure = Directory.disk_usage

    def broken(directory: Directory) -> int:
        if Path(f"/proc/self/fd/{directory.fileno()}").readlink().name == "bad":
            raise PermissionError(13, "denied")
        return measure(directory)

    monkeypatch.setattr(Directory, "disk_usage", broken)
    await cache.make_room()
    assert [item.name for item in await cache.builds.items()] == ["good"]


def test_a_walk_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_bytes(bytes(1 << 20))
    inside = tmp_path / "inside"
    (inside / "full" / "more").mkdir(parents=True)
    (inside / "full" / "link").symlink_to(outside)
    (inside / "full" / "more" / "link").symlink_to(outside / "canary")
    with Directory.open(inside) as directory:
        assert directory.disk_usage() < 1 << 20
        directory.remove("full")
    assert list(inside.iterdir()) == []
    assert (outside / "canary").stat().st_size == 1 << 20
