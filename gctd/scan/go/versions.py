"""Versions of Go, as go.mod files ask for them and as toolchains have them."""

from __future__ import annotations

import re

import attrs

_VERSION = re.compile(r"1\.(?P<minor>[0-9]{1,3})(?:\.(?P<patch>[0-9]{1,4})|(?P<stage>beta|rc)(?P<number>[0-9]{1,2}))?")
_FIRST = 21
"""The first minor version whose toolchains can be downloaded under a version with three numbers."""


@attrs.frozen(order=True)
class GoVersion:
    """A version: `1.27` (a language version, before all of its releases), `1.27beta1`, `1.27rc2` or `1.27.3`."""

    minor: int
    stage: int = 0
    """0: language version, 1: beta, 2: release candidate, 3: release."""
    number: int = 0

    @property
    def toolchain(self) -> str:
        """The name of the toolchain to download: `go1.27.3`. A language version means its first release."""
        stage = {1: f"beta{self.number}", 2: f"rc{self.number}", 3: f".{self.number}"}.get(self.stage, ".0")
        return f"go1.{self.minor}{stage}"

    def __str__(self) -> str:
        return f"1.{self.minor}" if self.stage == 0 else self.toolchain.removeprefix("go")


def parse_version(text: str) -> GoVersion | None:
    """Return the version that a `go` line has; None for anything else, such as a name with a suffix."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    minor = int(found["minor"])
    if found["stage"]:
        return GoVersion(minor, 1 if found["stage"] == "beta" else 2, int(found["number"]))
    if found["patch"] is not None:
        return GoVersion(minor, 3, int(found["patch"]))
    return GoVersion(minor, 3 if minor < _FIRST else 0, 0)


def wanted_version(go: str, toolchain: str) -> GoVersion | None:
    """Return the newer of the versions that the lines `go` and `toolchain` of a go.mod ask for; None if neither has one.

    A toolchain with another name than an official one (`go1.26.9-custom`, a path) is not a version, and asks for nothing.
    """
    asked = [parse_version(go), parse_version(toolchain.removeprefix("go")) if toolchain.startswith("go") else None]
    return max((version for version in asked if version is not None), default=None)
