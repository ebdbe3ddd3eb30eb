"""Official toolchains: chosen by version, verified by the checksum database, cached and bounded; no program of a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.domain.repo.project import Project
from gctd.scan.errors import GoError, NeedsNewerGo
from gctd.scan.go.coverage_run.plan import Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain, target
from gctd.scan.go.toolchains import NoSuchToolchain, ToolchainBounds, Toolchains
from gctd.scan.go.versions import GoVersion, parse_version, wanted_version
from tests.support.tracker.toolchain_proxy import ToolchainProxy, toolchain_proxy

VERSION = "go1.99.1"
SCRIPT = """#!/bin/sh
root=${0%/bin/go}
[ "$1" = env ] && { echo NAME; echo "$root"; exit 0; }
echo "NAME ran: $*"
""".replace("NAME", VERSION)
PROJECT = Project(name=".", module_path="example.com/m", go_version="1.99.1", packages=1)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolchainProxy]:
    with toolchain_proxy(VERSION, SCRIPT, platform=target()) as served:
        point(monkeypatch, served)
        yield served


def point(monkeypatch: pytest.MonkeyPatch, served: ToolchainProxy) -> None:
    monkeypatch.setenv("GOPROXY", served.proxy)
    monkeypatch.setenv("GOSUMDB", served.sumdb)
    for name in ("GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOFLAGS", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def kept(host: Toolchain, tmp_path: Path, **bounds: Any) -> Toolchains:
    return Toolchains(host, tmp_path / "toolchains", Downloads(), ToolchainBounds(**bounds))


@pytest.mark.real
async def test_a_newer_toolchain_is_downloaded_once_and_runs(proxy: ToolchainProxy, toolchain: Toolchain, tmp_path: Path) -> None:
    toolchains, log = kept(toolchain, tmp_path), list[str]()
    version = toolchains.version_for(PROJECT)
    assert version == GoVersion(99, 3, 1)

    async def use() -> Toolchain:
        async with toolchains.using(version, log.append) as found:
            return found

    first, second = await asyncio.gather(use(), use())
    assert (first, first.version, first.go.name) == (second, VERSION, "go")
    assert first.go.is_relative_to(tmp_path / "toolchains")
    ran = await asyncio.create_subprocess_exec(first.go, "version", stdout=asyncio.subprocess.PIPE)
    assert (await ran.communicate())[0] == b"go1.99.1 ran: version\n"
    assert any("h1:" in line for line in log)
    other = kept(toolchain, tmp_path)
    async with other.using(version) as found:
        assert found == first
    assert proxy.downloads == 1
    assert any("/sumdb/lookup/" in path for path in proxy.requests)
    assert list((tmp_path / "toolchains").rglob("*.zip")) == []


@pytest.mark.real
async def test_an_archive_that_the_checksum_database_does_not_know_is_refused(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    with toolchain_proxy(VERSION, f"#!/bin/sh\n: > {ran}\n", platform=target(), forged=True) as served:
        point(monkeypatch, served)
        with pytest.raises(GoError, match="checksum database knows another archive") as refused:
            async with kept(toolchain, tmp_path).using(parse_version("1.99.1")):
                pass
        assert refused.value.permanent
        monkeypatch.setenv("GOSUMDB", "off")
        with pytest.raises(GoError, match="GOSUMDB=off"):
            async with kept(toolchain, tmp_path).using(parse_version("1.99.1")):
                pass
    assert not ran.exists()


@pytest.mark.real
async def test_a_program_on_the_path_with_the_name_of_the_toolchain_is_not_run(
    proxy: ToolchainProxy, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "path"
    trap.mkdir()
    (trap / VERSION).write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    (trap / VERSION).chmod(0o755)
    monkeypatch.setenv("PATH", str(trap), prepend=":")
    monkeypatch.chdir(trap)
    async with kept(toolchain, tmp_path).using(parse_version("1.99.1")) as found:
        assert found.version == VERSION
    assert (not (tmp_path / "ran").exists(), proxy.downloads) == (True, 1)


@pytest.mark.real
async def test_a_version_that_does_not_exist_is_a_problem_of_the_project(
    proxy: ToolchainProxy, toolchain: Toolchain, tmp_path: Path
) -> None:
    toolchains = kept(toolchain, tmp_path)
    strange = attrs.evolve(PROJECT, name="strange", go_version="1.77.3")
    old = attrs.evolve(PROJECT, name="old", go_version="1.21")
    there, missing, enough = await toolchains.checked((PROJECT, strange, old))
    assert (there.problem, enough.problem) == (None, None)
    assert missing.problem is not None
    assert missing.problem.startswith("go.mod asks for Go 1.77.3, which does not exist for ")
    assert proxy.downloads == 0
    with pytest.raises(NoSuchToolchain):
        async with toolchains.using(parse_version("1.77.3")):
            pass


@pytest.mark.real
async def test_if_the_proxy_does_not_answer_a_project_has_no_problem_and_a_download_is_tried_again(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:1")
    toolchains = kept(toolchain, tmp_path)
    assert await toolchains.checked((PROJECT,)) == (PROJECT,)
    with pytest.raises(GoError, match="cannot be downloaded") as failed:
        async with toolchains.using(parse_version("1.99.1")):
            pass
    assert not failed.value.permanent


@pytest.mark.real
async def test_the_toolchains_used_longest_ago_are_removed_and_one_in_use_stays(
    proxy: ToolchainProxy, toolchain: Toolchain, tmp_path: Path
) -> None:
    assert proxy.downloads == 0
    toolchains = kept(toolchain, tmp_path, most=1)
    place = tmp_path / "toolchains" / "kept"
    (place / "go1.98.0").mkdir()
    async with toolchains.using(parse_version("1.99.1")) as found:
        assert not (place / "go1.98.0").exists()
        (place / "go1.97.0").mkdir()
        assert found.go.exists()
    assert [path.name for path in place.iterdir() if path.is_dir()] == [VERSION]


@pytest.mark.real
async def test_a_dependency_that_needs_a_newer_go_is_told_with_its_version(
    toolchain: Toolchain, tmp_path: Path, go_cache: Path
) -> None:
    files = {
        "go.mod": "module example.com/m\n\ngo 1.21\n\nrequire example.com/dep v0.0.0\n\nreplace example.com/dep => ./dep\n",
        "m.go": 'package m\n\nimport "example.com/dep"\n\nfunc M() { dep.D() }\n',
        "dep/go.mod": "module example.com/dep\n\ngo 1.99.1\n",
        "dep/dep.go": "package dep\n\nfunc D() {}\n",
    }
    source, job = tmp_path / "source", tmp_path / "job"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    job.mkdir()
    plan = Plan(source=source, project=".", job=job, caches=GoCaches.below(go_cache), timeout=100.0)

    async def on_stage(_: str) -> None:
        pass

    with pytest.raises(NeedsNewerGo) as needed:
        await run_tests(toolchain, plan, on_stage)
    assert needed.value.version == "1.99.1"


@pytest.mark.real
async def test_without_downloads_the_toolchain_of_the_host_is_used(toolchain: Toolchain, tmp_path: Path) -> None:
    toolchains = kept(toolchain, tmp_path, fetch=False)
    assert toolchains.version_for(PROJECT) is None
    async with toolchains.using(None) as found:
        assert found == toolchain


@pytest.mark.parametrize(
    ("go", "line", "expected"),
    [
        ("1.26.9", "", "go1.26.9"),
        ("1.27", "", "go1.27.0"),
        ("1.27rc1", "", "go1.27rc1"),
        ("1.25", "go1.26.9", "go1.26.9"),
        ("1.27.2", "go1.26.9", "go1.27.2"),
        ("1.20", "", "go1.20.0"),
        ("1.25", "default", "go1.25.0"),
        ("1.25", "go1.26.9-custom", "go1.25.0"),
        ("1.25", "../evil", "go1.25.0"),
        ("1.25", "/bin/sh", "go1.25.0"),
        ("", "", None),
        ("2.0", "", None),
        ("1.26.9-custom", "", None),
        ("1.26.9/../x", "", None),
        ("1.٣", "", None),
    ],
)
def test_a_repository_asks_for_a_number_and_for_nothing_else(go: str, line: str, expected: str | None) -> None:
    wanted = wanted_version(go, line)
    assert (None if wanted is None else wanted.toolchain) == expected


ORDERED = ["1.20", "1.21", "1.21rc2", "1.21.0", "1.21.1", "1.21.10", "1.22beta1", "1.22rc1", "1.22rc3", "1.22.0", "1.100.0"]


@given(st.sampled_from(ORDERED), st.sampled_from(ORDERED))
def test_versions_are_ordered_as_go_orders_them(one: str, other: str) -> None:
    first, second = parse_version(one), parse_version(other)
    assert first is not None
    assert second is not None
    assert (first < second) == (ORDERED.index(one) < ORDERED.index(other))
    assert str(first) == (one if one != "1.20" else "1.20.0")
