"""Sdist and wheel are whole, have the pages, and the installed wheel runs the system without the checkout."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import attrs
import build_backend
import pytest
from launcher.installer import Installer
from pages import BUILT

from tests.support import ROOT
from tests.support.layers import CORE, SERVICES
from tests.support.programs.supervised import supervised
from tests.support.tracker import go_library
from tests.support.waiting import wait_until
from tests.support.web.browser import chromium, visitor
from tests.support.web.node import built_pages

PACKAGES = (*SERVICES, *CORE)
"""The packages of the distribution: not the examples."""

_LEFT_OUT = shutil.ignore_patterns(
    *(
        ".git",
        ".venv*",
        ".data",
        "__pycache__",
        "*.egg-info",
        "node_modules",
        ".*_cache",
        ".hypothesis",
        "build",
        "dist",
        "PKG-INFO",
    )
)


@attrs.frozen
class Built:
    """The two files, and the folder of the sources that they are made from."""

    source: Path
    sdist: Path
    wheel: Path


def hook(source: Path, call: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the build backend in a folder of sources."""
    script = f"import sys; sys.path.insert(0, 'scripts'); import build_backend as b; b.{call}"
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """An sdist of the sources with their built pages, and a wheel of the unpacked sdist, which needs no npm."""
    built_pages()
    folder = tmp_path_factory.mktemp("built")
    source, out = folder / "source", folder / "out"
    shutil.copytree(ROOT, source, ignore=_LEFT_OUT)
    out.mkdir()
    done = hook(source, f"build_sdist({str(out)!r})", GCTD_PAGES="built")
    assert done.returncode == 0, done.stderr
    [sdist] = out.glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder / "unpacked")
    [unpacked] = (folder / "unpacked").iterdir()
    done = hook(unpacked, f"build_wheel({str(out)!r})", PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    [wheel] = out.glob("*.whl")
    return Built(source, sdist, wheel)


@pytest.mark.long
def test_an_sdist_has_every_file_of_the_sources_and_the_built_pages(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames() if not archive.getmember(name).isdir()}
    sources = {str(file.relative_to(built.source)) for file in built.source.rglob("*") if file.is_file()}
    made = {name for name in packed if name.startswith(("gctd.egg-info/", "build/"))} | {"PKG-INFO"}
    written = {name for name in sources if not name.startswith(("gctd.egg-info/", "build/"))}
    assert packed - made == {name for name in written if "__pycache__" not in name}
    assert all(f"{place}/index.html" in packed for place in BUILT)


@pytest.mark.long
def test_a_wheel_has_every_file_of_the_packages_and_no_other(built: Built) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    data = [name for line in setup["options.data_files"].values() for name in line.split()]
    with zipfile.ZipFile(built.wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name and ".data/" not in name}
        installed = {Path(name).name for name in archive.namelist() if ".data/" in name}
        metadata = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
        license_text = next(archive.read(name) for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        entry_points = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
        notices = [archive.read(f"{place}/licenses.txt").decode() for place in BUILT]
    written = {
        str(file.relative_to(built.source))
        for package in PACKAGES
        for file in (built.source / package).rglob("*")
        if file.is_file() and "/__pycache__/" not in str(file)
    }
    assert packed == written
    assert installed == {Path(name).name for name in data}
    assert all("preact" in text for text in notices), "the notices of the bundled packages"
    assert "\nLicense-Expression: MIT\n" in metadata
    assert license_text == (ROOT / "LICENSE").read_bytes()
    assert not re.search(r"\]\((?![a-z]+://|#)", metadata), "a relative link leads nowhere on the page of the index"
    modules = {line.partition("= ")[2].partition(":")[0] for line in entry_points.splitlines() if "=" in line}
    assert modules
    for module in modules:
        path = module.replace(".", "/")
        assert {f"{path}.py", f"{path}/__init__.py"} & packed, f"the program of {module} is not there"


@pytest.mark.real
@pytest.mark.parametrize(("call", "suffix"), [("build_wheel", ".whl"), ("build_sdist", ".tar.gz")])
def test_a_build_without_pages_fails_and_leaves_nothing(tmp_path: Path, call: str, suffix: str) -> None:
    for name in ("setup.cfg", "README.md", "scripts"):
        place = ROOT / name
        (shutil.copytree if place.is_dir() else shutil.copy)(place, tmp_path / name)
    done = hook(tmp_path, f"{call}('.')")
    assert done.returncode == 1
    assert "the pages are not built: gctd/http/dashboard, pantry/http/kitchen, graphql_fn/http/editor are missing" in done.stderr
    assert "hint: build from a checkout or an sdist, or set GCTD_PAGES=skip" in done.stderr
    assert not list(tmp_path.glob(f"*{suffix}"))
    assert "GCTD_PAGES is 'no'" in hook(tmp_path, f"{call}('.')", GCTD_PAGES="no").stderr


def test_links_of_the_readme_are_absolute_or_plain_text_in_the_index() -> None:
    text = "![shot](docs/a.png) [all](docs/b.md#c) [out](https://example.com) [here](#d)"
    assert build_backend.for_index(text, None) == " all [out](https://example.com) [here](#d)"
    assert build_backend.for_index(text, "https://example.com/r/").startswith(
        "![shot](https://example.com/r/blob/main/docs/a.png)"
    )


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_the_installed_wheel_runs_the_demonstration_without_the_checkout(built: Built, tmp_path: Path) -> None:
    """An environment with the wheel and the required packages, an empty home: a page shows the scores of the demonstration."""
    environment, home = tmp_path / "environment", tmp_path / "home"
    home.mkdir()
    await go_library.give(home / ".cache" / "gctd")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=60)  # noqa: ASYNC221 - first
    Installer(ROOT, environment).file(built.wheel)
    [packages] = environment.glob("lib/python3.*/site-packages")
    requirements = Path(pytest.__file__).parents[1]  # without its .pth files, so without the checkout
    (packages / "requirements.pth").write_text(f"{requirements}\n")
    go = shutil.which("go")
    variables = {"HOME": str(home), "PATH": "/usr/bin:/bin", "GCTD_GO": str(go)} | {
        "EVENTLOG_NATS_SERVER": str(Path(sys.executable).with_name("nats-server"))
    }
    command = [
        str(environment / "bin" / "gctd"),
        "up",
        "--demo",
        "--ready-file",
        str(tmp_path / "ready.json"),
        "--port-base",
        "0",
    ]
    with supervised(command, tmp_path / "console.txt", variables, directory=home) as running:
        ready = await running.ready(120)
        await wait_until(lambda: "Ctrl-C stops" in running.said or running.process.poll() is not None, 400)
        assert "Order.Check" in running.said, running.said
        assert f"data       {home}/.local/share/gctd\n" in running.said
        assert str(ROOT) not in running.said
        async with chromium() as browser, visitor(browser, ready["gctd"]) as person:
            page = await person.open("/")
            await page.get_by_role("link", name="orders").first.click()
            await page.get_by_text("Order.Check").first.wait_for()
        assert await running.end(signal.SIGINT) == 130
    assert (home / ".local" / "share" / "gctd" / "gctd.db").exists()
    assert (home / ".local" / "state" / "gctd" / "log" / "serve.log").exists()
