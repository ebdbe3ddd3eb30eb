"""Ids that workers choose themselves: kept over a restart, and different from all other ids."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from gctd.domain.errors import BadInput, Refused
from gctd.worker.identity import claim, host_platform


def test_workers_without_an_id_never_meet_on_one_host(tmp_path: Path) -> None:
    """This is true for workers of one cache, which see each other's locks, and for workers of two caches, which do not."""
    claimed = [claim(tmp_path / cache) for cache in ("a", "a", "b", "b")]
    ids = [identity.id for identity in claimed]
    assert len(set(ids)) == 4
    assert ids[1] == f"{ids[0]}-2"
    for identity in claimed:
        identity.release()


def test_an_id_lasts_over_restarts_also_where_the_cache_is_named_in_another_way(tmp_path: Path) -> None:
    first = claim(tmp_path / "a")
    first.release()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    second = claim(tmp_path / "link")
    assert (second.id, second.session == first.session) == (first.id, False)
    second.release()


def test_a_host_with_a_long_or_odd_name_gets_an_id_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("h" * 200, "büro.example", ""):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        identity = claim(tmp_path)
        again = claim(tmp_path)
        named = claim(tmp_path / "named", identity.id)  # it can be given as one
        for one in (identity, again, named):
            assert len(one.id) <= 64
            one.release()


def test_an_id_that_was_asked_for_is_refused_where_it_is_taken_or_cannot_be_one(tmp_path: Path) -> None:
    taken = claim(tmp_path, "build-7")
    with pytest.raises(Refused, match="build-7 is running already"):
        claim(tmp_path, "build-7")
    taken.release()
    claim(tmp_path, "build-7").release()
    with pytest.raises(BadInput, match="1 to 64 characters"):
        claim(tmp_path, "a b")


@pytest.mark.parametrize(
    ("machine", "architecture"),
    [
        ("x86_64", "amd64"),
        ("aarch64", "arm64"),
        ("armv7l", "arm"),
        ("i686", "386"),
        ("loongarch64", "loong64"),
        ("riscv64", "riscv64"),
    ],
)
def test_a_host_has_the_platform_that_go_names(monkeypatch: pytest.MonkeyPatch, machine: str, architecture: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert host_platform() == f"linux/{architecture}"
