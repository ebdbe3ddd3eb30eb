"""A wheel is whole: every file of the packages is in it, and no other file."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support import ROOT
from tests.support.layers import CORE, SERVICES

PACKAGES = (*SERVICES, *CORE)
"""The packages of the distribution: not the examples."""


def test_a_wheel_has_every_file_of_the_packages_and_no_other(tmp_path: Path) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    data = [name for line in setup["options.data_files"].values() for name in line.split()]
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", *data):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path)
    for name in (*PACKAGES, "tests", "scripts"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "out", "."]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=100)
    [wheel] = (tmp_path / "out").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name and ".data/" not in name}
        installed = {Path(name).name for name in archive.namelist() if ".data/" in name}
        metadata = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
        license_text = next(archive.read(name) for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        entry_points = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
    written = {
        str(file.relative_to(tmp_path))
        for package in PACKAGES
        for file in (tmp_path / package).rglob("*")
        if file.is_file() and "/__pycache__/" not in str(file)
    }
    assert packed == written
    assert installed == {Path(name).name for name in data}
    assert "\nLicense-Expression: MIT\n" in metadata
    assert license_text == (ROOT / "LICENSE").read_bytes()
    modules = {line.partition("= ")[2].partition(":")[0] for line in entry_points.splitlines() if "=" in line}
    assert modules
    for module in modules:
        path = module.replace(".", "/")
        assert {f"{path}.py", f"{path}/__init__.py"} & packed, f"the program of {module} is not there"
