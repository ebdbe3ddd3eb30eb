"""The packages whose tests do not build, found before the tests run.

With `-coverpkg` one package that does not build makes `go test` fail for every package. So it must not be among the packages that
are tested, and neither must a package whose tests import it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gctd.scan.go.coverage_run.events import KILLED, REASON, PackageResult

ARGUMENTS = ("list", "-e", "-export", "-json=ImportPath,Export,GoFiles,CgoFiles,Error,DepsErrors,TestImports,XTestImports")
"""The command of go that compiles packages and prints what `broken_packages` reads; flags of the build and patterns follow."""

_OF_THE_BUILD = ("-tags=", "-mod=", "-race", "-trimpath")


def tags_of(flags: Sequence[str]) -> tuple[str, ...] | None:
    """Return the build tags among flags of go, of which the last `-tags` counts; None without one."""
    given = [flag.removeprefix("-tags=") for flag in flags if flag.startswith("-tags=")]
    return tuple(given[-1].replace(",", " ").split()) if given else None


def flags_of_build(test_args: tuple[str, ...]) -> tuple[str, ...]:
    """The flags of `go test` that `go list` knows also, and that decide what is compiled."""
    return tuple(flag for flag in test_args if flag.startswith(_OF_THE_BUILD))


def broken_packages(output: str) -> tuple[PackageResult, ...]:
    """The packages whose tests do not build, with the reason, by path. `output` comes from the command."""
    packages = tuple(_documents(output))
    broken = {one["ImportPath"]: _why(one) for one in packages if _is_broken(one)}
    for one in packages:
        needed = (*one.get("TestImports", ()), *one.get("XTestImports", ()))
        found = next((path for path in needed if path in broken), None)
        if found is not None and one["ImportPath"] not in broken:
            broken[one["ImportPath"]] = f"its tests import {found}, which does not build"
    return tuple(
        PackageResult(path=path, outcome="killed" if KILLED in why else "build failed", reason=why[:REASON])
        for path, why in sorted(broken.items())
    )


def _documents(output: str) -> Iterator[Mapping[str, Any]]:
    decoder, at = json.JSONDecoder(), output.find("{")
    while at >= 0:
        document, end = decoder.raw_decode(output, at)
        yield document
        at = output.find("{", end)


def _is_broken(package: Mapping[str, Any]) -> bool:
    """Whether the source did not compile; a package of tests only has neither."""
    return not package.get("Export") and any(package.get(field) for field in ("GoFiles", "CgoFiles", "Error"))


def _why(package: Mapping[str, Any]) -> str:
    errors = [package["Error"]] if "Error" in package else package.get("DepsErrors", [])
    lines = [line.strip() for error in errors for line in error["Err"].splitlines() if line.strip() and not line.startswith("#")]
    return " ".join("; ".join(lines[:5]).split()) or "the reason is not known"
