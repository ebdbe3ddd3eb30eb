"""Needs of a job, and capabilities of workers: which worker can run which job."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import attrs

_GO = re.compile(r"(?:go)?1\.(\d{1,6})(?:\.(\d{1,6})|(rc|beta)(\d{1,6}))?(?:[-+ ].*)?")
_BARE, _BETA, _RC, _RELEASE = range(4)


@attrs.frozen(kw_only=True)
class Needs:
    """Capabilities that a job asks for. Empty: none.

    `engine` is the name of the engine, `go` the least version of Go as go.mod has it (`1.26`, `1.26.3`).
    """

    engine: str = ""
    go: str = ""


@attrs.frozen(kw_only=True)
class Capabilities:
    """Capabilities that a worker announces: names of engines, and its newest version of Go (`go1.26.8`).

    Empty: unknown, or without a limit, as for a worker that downloads the toolchains that modules need.
    """

    engines: frozenset[str] = frozenset()
    go_version: str = ""

    def missing(self, needs: Needs) -> str:
        """Return the name of the first missing capability, for users; empty if the worker can run the job.

        A capability that the worker does not announce counts as present.
        """
        if needs.engine and self.engines and needs.engine not in self.engines:
            return f"the engine {needs.engine}"
        if needs.go and (least := go_order(needs.go)) is not None:
            newest = go_order(self.go_version)
            if newest is not None and newest < least:
                return f"Go {needs.go} or newer"
        return ""


def go_order(version: str) -> tuple[int, int, int] | None:
    """Return a key that sorts versions of Go as Go does; None for a text that is not such a version.

    A language version (`1.27`) is before its release candidates, and these are before `1.27.0` (https://go.dev/doc/toolchain#version).
    """
    found = _GO.fullmatch(version.strip())
    if found is None:
        return None
    minor, patch, stage, number = found.groups()
    if patch is not None:
        return int(minor), _RELEASE, int(patch)
    if stage is not None:
        return int(minor), _RC if stage == "rc" else _BETA, int(number)
    # Before Go 1.21 the first release of a minor version had no third number.
    return int(minor), _RELEASE if int(minor) < 21 else _BARE, 0


def missing_everywhere(needs: Needs, workers: Collection[Capabilities]) -> str:
    """Return the reason for which no worker can run a job; empty if one can, or if there are no workers."""
    lacks = [worker.missing(needs) for worker in workers]
    if not lacks or not all(lacks):
        return ""
    wanted = sorted(set(lacks))
    if len(wanted) > 1:
        return f"no worker has both {' and '.join(wanted)}"
    newest = _newest(worker.go_version for worker in workers)
    has = f" (the newest is {newest})" if needs.go and wanted[0].startswith("Go ") and newest else ""
    return f"no worker has {wanted[0]}{has}"


def _newest(versions: Iterable[str]) -> str:
    ordered = [(order, version) for version in versions if (order := go_order(version)) is not None]
    return max(ordered, default=((0, 0, 0), ""))[1]
