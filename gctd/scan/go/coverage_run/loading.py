"""Loading the packages of a module with `go list`, and the platform of its builds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from gctd.engines.golang.constraints import Platform
from gctd.scan.errors import GoError, NeedsNewerGo
from gctd.scan.go.coverage_run.building import flags_of_build, tags_of
from gctd.scan.go.coverage_run.commands import GoCommands
from gctd.scan.go.coverage_run.events import REASON, PackageResult
from gctd.scan.go.coverage_run.steps import Rights
from gctd.scan.isolation.process import Finished

_EVERYWHERE = "unsafe"
"""A package that go knows in every module: the platform of the build is in its row."""
_CONTEXT = (
    '{{with context}}\t{{.GOOS}}\t{{.GOARCH}}\t{{.CgoEnabled}}\t{{join .BuildTags " "}}\t{{join .ToolTags " "}}'
    '\t{{join .ReleaseTags " "}}{{end}}'
)
_LIST = (
    '{{if not .ForTest}}{{.ImportPath}}\t{{.DepOnly}}\t{{.Standard}}\t{{with .Error}}{{printf "%q" .Err}}{{end}}'
    '\t{{range .DepsErrors}}{{printf "%q" .Err}}{{end}}'
    f'{{{{if eq .ImportPath "{_EVERYWHERE}"}}}}{_CONTEXT}{{{{end}}}}{{{{end}}}}'
)
_FIELDS, _OF_THE_PLATFORM = 5, 6
_DOWNLOAD = re.compile(
    r'(Get|Post) "?https?://|dial (tcp|udp)|no such host|i/o timeout|reading (https?|file)://|module lookup disabled'
    r"|unrecognized import path|git ls-remote|git fetch|terminal prompts disabled|verifying (module|go\.mod)|x509:|checksum"
)
_PASSING = re.compile(
    r"(dial|read|write) (tcp|udp)|proxyconnect|(i/o|handshake) timeout|timeout awaiting|deadline exceeded|: (unexpected )?EOF"
    r"|connection reset|: (408|429|5\d\d) [A-Z]"
    r"|Failed to connect|Connection (refused|timed out|reset)|returned error: (429|5\d\d)"  # of git
)
"""Causes of a failed download that may be gone at the next attempt."""
_FAILED = "module download failed"
_UNKNOWN_HOST = re.compile(r"unrecognized import path .* no such host")
"""A module is not in the proxy, and its host is not known to the worker's network: it is private, and no attempt gets it."""
_NEWER_GO = re.compile(r"requires go >= ?(?P<version>[0-9][0-9a-z.]*)\S* \(running|note: module requires Go|invalid go version")


@attrs.frozen
class PackageListing:
    """Result of `go list`: the module's packages, and the platform of the builds.

    `not_downloaded` are the reasons why modules could not be downloaded. `incomplete` are the packages that need such a module,
    each with the reason.
    """

    finished: Finished
    packages: tuple[str, ...]
    standard: tuple[str, ...]
    not_downloaded: tuple[str, ...]
    incomplete: Mapping[str, str]
    platform: Platform | None

    @property
    def usable(self) -> bool:
        """Whether go lists packages."""
        return self.finished.ok and bool(self.packages)

    @property
    def nothing_to_build(self) -> bool:
        """Whether build constraints leave no package over here, as in a module that only pins tools."""
        return self.finished.ok and not self.packages and not self.not_downloaded

    def explained(self, package: PackageResult) -> PackageResult:
        """The result of a package. If it does not build for lack of a module, the reason is the one of the download."""
        reason = self.incomplete.get(package.path) if package.outcome == "build failed" else None
        return package if reason is None else attrs.evolve(package, reason=f"{_FAILED}: {reason}"[:REASON])


async def load(commands: GoCommands, rights: Rights, seconds: float) -> PackageListing:
    """Load the packages and the dependencies of their tests. Loading downloads them.

    A broken package is not an error at this stage. Raises NeedsNewerGo if go names the version that the module, a dependency or
    the workspace needs. Raises GoError if a download failed for a cause that passes.
    """
    output = bytearray()
    finished = await commands.run(
        ["list", "-e", "-deps", "-test", *flags_of_build(rights.plan.test_args), "-f", _LIST, "./...", _EVERYWHERE],
        seconds,
        rights.modules(),
        on_stdout=output.extend,
    )
    finished = attrs.evolve(finished, output_tail=commands.redacted(finished.output_tail))
    rows = [row.split("\t") for row in bytes(output).decode(errors="replace").splitlines()]
    rows = [row for row in rows if len(row) in (_FIELDS, _FIELDS + _OF_THE_PLATFORM)]
    listed = {path for path, only_needed, *_ in rows if only_needed == "false" and path not in {"./...", _EVERYWHERE}}
    errors = {error: commands.redacted(error[1:-1].replace('\\"', '"')) for _, _, _, error, *_ in rows if error}  # by %q
    failures = {error: shown for error, shown in errors.items() if _DOWNLOAD.search(shown)}
    for shown in failures.values():
        commands.log(shown)
    platform = next((_platform(row[_FIELDS:], rights.plan.test_args) for row in rows if len(row) > _FIELDS), None)
    if finished.ok and platform is None:
        commands.log("go does not report its platform: the files of other platforms stay unknown")
    newer = _NEWER_GO.search(finished.output_tail) if not finished.ok else None
    if newer is not None and newer["version"]:
        reason = f"the module needs a newer Go than the worker has: {last_words(finished)}"
        raise NeedsNewerGo(reason, newer["version"])
    ended = [last_words(finished)] if finished.ended_by == "exit" and not finished.ok else []
    passing = next((reason for reason in (*failures.values(), *ended) if _passes(reason)), None)
    if passing is not None:
        raise download_failed(passing)
    return PackageListing(
        finished=finished,
        packages=tuple(sorted(path for path in listed if path.removesuffix(".test") not in listed or not path.endswith(".test"))),
        standard=tuple(path for path, _, is_standard, *_ in rows if is_standard == "true"),
        not_downloaded=tuple(failures.values()),
        incomplete={
            path.removesuffix(".test"): shown
            for path, only_needed, _, _, needed, *_ in rows
            for error, shown in failures.items()
            if only_needed == "false" and error in needed
        },
        platform=platform,
    )


def _passes(reason: str) -> bool:
    return bool(_PASSING.search(reason)) and not _UNKNOWN_HOST.search(reason)


def _platform(found: Sequence[str], test_args: Sequence[str]) -> Platform:
    """The platform of a row. Tags among the arguments replace the tags of the environment, and the last ones count."""
    goos, goarch, cgo, tags, *others = found
    given = tags_of(test_args)
    built_with = (*(tags.split() if given is None else given), *" ".join(others).split())
    return Platform(goos=goos, goarch=goarch, cgo=cgo == "true", tags=built_with)


def not_loaded(loaded: PackageListing) -> GoError:
    """Return the error of a module that cannot be loaded."""
    said = last_words(loaded.finished)
    if loaded.finished.ended_by != "exit":
        return GoError(f"the modules could not be loaded: go list {loaded.finished.how()}")
    if loaded.not_downloaded:
        return download_failed(loaded.not_downloaded[0])
    if _DOWNLOAD.search(loaded.finished.output_tail):
        return download_failed(said)
    if _NEWER_GO.search(loaded.finished.output_tail):
        return GoError(f"the module needs a newer Go than the worker has: {said}", permanent=True)
    return GoError(f"the module cannot be loaded: {said}", permanent=True)


def download_failed(reason: str) -> GoError:
    """Return the error of a module that could not be downloaded."""
    return GoError(f"{_FAILED}: {reason[:REASON]}")


def last_words(finished: Finished) -> str:
    """Return the last lines that go wrote, without those about downloads."""
    lines = [line.strip() for line in finished.output_tail.splitlines() if line.strip() and "go: downloading " not in line]
    return "; ".join(lines[-3:])[-REASON:] or f"go {finished.how()}"
