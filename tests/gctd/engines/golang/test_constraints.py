"""Build constraints, compared with `go list` on the standard library, and line by line for cases without an example."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gctd.engines.golang.complexity import analyse_source
from gctd.engines.golang.constraints import Platform, not_built
from gctd.engines.golang.syntax import Unparsable
from tests.gctd.engines.gotool import go_program

LINUX = Platform(goos="linux", goarch="amd64", cgo=True, tags=("e2e", "go1.1", "go1.21"))


def listed(packages: str, goos: str, goarch: str) -> Iterator[tuple[Path, bool]]:
    """The files of these packages of the standard library, and whether go builds them."""
    environment = {**os.environ, "GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "1", "GOFLAGS": "", "GOENV": "off"}
    fields = "Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles"
    done = subprocess.run(
        [go_program(), "list", "-e", f"-json={fields}", packages], env=environment, check=True, capture_output=True, text=True
    )
    decoder, at = json.JSONDecoder(), 0
    while at < len(done.stdout.rstrip()):
        package, at = decoder.raw_decode(done.stdout, at)
        at += len(done.stdout[at:]) - len(done.stdout[at:].lstrip())
        for field in fields.split(",")[1:]:
            for name in package.get(field, ()):
                yield Path(package["Dir"]) / name, field != "IgnoredGoFiles"


def platform(goos: str, goarch: str) -> Platform:
    environment = {**os.environ, "GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "1", "GOFLAGS": "", "GOENV": "off"}
    text = '{{with context}}{{join .ToolTags " "}} {{join .ReleaseTags " "}}{{end}}'
    done = subprocess.run(
        [go_program(), "list", "-f", text, "unsafe"], env=environment, check=True, capture_output=True, text=True
    )
    return Platform(goos=goos, goarch=goarch, cgo=True, tags=tuple(done.stdout.split()))


@cache
def conditions(path: Path) -> tuple[str, bool] | None:
    """The constraint of a file and whether it imports C, for every platform; None if it cannot be parsed."""
    try:
        file = analyse_source(path.name, path.read_bytes())
    except Unparsable:
        return None
    return file.constraint, file.cgo


@pytest.mark.real
@pytest.mark.parametrize(("packages", "least"), [("os/...", 100), pytest.param("std", 2000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("goos", "goarch"), [("linux", "amd64"), ("windows", "arm64")])
def test_the_files_that_go_builds_are_told_as_go_tells_them(goos: str, goarch: str, packages: str, least: int) -> None:
    where, differing, seen = platform(goos, goarch), [], 0
    for path, built in listed(packages, goos, goarch):
        found = conditions(path)
        if found is None:
            continue
        seen += 1
        constraint, cgo = found
        if (not_built(path.name, constraint, where, cgo=cgo) == "") != built:
            differing.append(str(path))
    assert (differing, seen > least) == ([], True)


@pytest.mark.parametrize(
    ("name", "header", "reason"),
    [
        ("a.go", "", ""),
        ("linux.go", "", ""),
        ("a_windows.go", "", "the name a_windows.go is not for linux/amd64"),
        ("a_windows_test.go", "", "the name a_windows_test.go is not for linux/amd64"),
        ("a_linux_arm64.go", "", "the name a_linux_arm64.go is not for linux/amd64"),
        ("a_linux_amd64.go", "", ""),
        ("a_unix.go", "", ""),
        ("_a.go", "", "files whose name begins with _ or . are never built"),
        ("a.go", "//go:build unix && !windows\n\n", ""),
        ("a.go", "// Licence.\n\n//go:build e2e && (windows || linux)\n\n", ""),
        ("a.go", "//go:build !e2e\n\n", "//go:build !e2e is not for linux/amd64"),
        ("a.go", "//go:build go1.22\n\n", "//go:build go1.22 is not for linux/amd64"),
        ("a.go", "//go:build linux &&\n\n", "//go:build linux && is not for linux/amd64"),
        ("a.go", "/*\n//go:build never\n*/\n\n", ""),
        ("a.go", "// +build windows,amd64 !linux\n\n", "//go:build (windows && amd64) || !linux is not for linux/amd64"),
        ("a.go", "// +build linux\n// +build !amd64\n\n", "//go:build (linux) && (!amd64) is not for linux/amd64"),
        ("a.go", "// +build never\n", ""),
        ("a.go", "//go:build linux\n// +build never\n\n", ""),
        ("a.go", "\ufeff//go:build never\n\n", "//go:build never is not for linux/amd64"),
        ("a.go", "\ufeff// +build never\n\n", "//go:build never is not for linux/amd64"),
    ],
)
def test_constraints_by_name_and_by_line(name: str, header: str, reason: str) -> None:
    file = analyse_source(name, f"{header}package a\n".encode())
    assert not_built(name, file.constraint, LINUX, cgo=file.cgo) == reason


def test_a_file_that_imports_c_needs_cgo() -> None:
    file = analyse_source("a.go", b'package a\n\nimport "C"\n')
    without = Platform(goos="linux", goarch="amd64", cgo=False)
    assert not_built("a.go", file.constraint, LINUX, cgo=file.cgo) == ""
    assert not_built("a.go", file.constraint, without, cgo=file.cgo) == 'it imports "C", and cgo is off'


@pytest.mark.parametrize(
    ("text", "generated"),
    [
        ("// Code generated by mockgen. DO NOT EDIT.\n\npackage a\n", True),
        ("// Licence.\n\n// Code generated by stringer; DO NOT EDIT.\r\npackage a\n", True),
        ("\ufeff// Code generated by mockgen. DO NOT EDIT.\npackage a\n", True),
        ("// Code generated by hand, do not edit.\npackage a\n", False),
        ("package a\n\n// Code generated by mockgen. DO NOT EDIT.\n", False),
    ],
)
def test_generated_files_are_known_by_the_comment_that_go_has_for_them(text: str, generated: bool) -> None:
    assert analyse_source("a.go", text.encode()).generated is generated
