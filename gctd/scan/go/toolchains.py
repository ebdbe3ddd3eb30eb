"""Official Go toolchains that modules ask for, downloaded from the operator's module proxy and kept in the cache.

Go itself downloads and verifies them, as it does when it switches toolchains: the checksum database has to know the archive, also
with GOSUMDB=off. A repository can ask for a version only. The download runs in an empty directory with an empty PATH, because Go
prefers a program on PATH that is called like the toolchain. Afterwards the toolchain never switches to another one.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import structlog

from gctd.domain.repo.project import Project
from gctd.scan.cache.lru import LruDirectory
from gctd.scan.disk import MIB
from gctd.scan.errors import GoError, ScanError
from gctd.scan.git.messages import redact
from gctd.scan.go.downloading import UNREPORTED, DownloadStage
from gctd.scan.go.pinned import PinnedGo
from gctd.scan.go.toolchain import Downloads, GoPlaces, Toolchain, go_environment, target
from gctd.scan.go.versions import GoVersion, parse_version, wanted_version
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.output import OnLog, no_log
from gctd.scan.isolation.process import Limits, run
from gctd.scan.isolation.removal import remove

_log = structlog.get_logger(__name__)

MOST = 8
"""Toolchains that are kept at most."""
_ASKING = 60.0
_FETCHING = 900.0
_LIMITS = Limits(memory=4096 * MIB)
_MODULE = "golang.org/toolchain"
_READY = "ready"
_TEMPORARY = ("go-", "asked-")
_DAY = 86_400.0
_MISSING = re.compile(r": (404|410) |403 Forbidden\s+server response: .*not available|not found: |toolchain not available")


class NoSuchToolchain(GoError):
    """The module asks for a version of Go that does not exist, or that may not be downloaded."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, permanent=True)


@attrs.frozen(kw_only=True)
class ToolchainBounds:
    """Limits of the number and of the bytes of kept toolchains. `fetch` False: none is downloaded."""

    most: int = MOST
    max_bytes: int = 2048 * MIB
    fetch: bool = True


class Toolchains:
    """The toolchain of the host, and the toolchains in a directory that the workers of the host share.

    `pinned`: the host has none, and this is it. It is downloaded before its first use.
    """

    def __init__(
        self,
        host: Toolchain,
        directory: Path,
        downloads: Downloads,
        bounds: ToolchainBounds,
        *,
        pinned: PinnedGo | None = None,
    ) -> None:
        self._host = host
        self._pinned = pinned
        self._downloads = downloads
        self._bounds = bounds
        self._directory = directory.absolute()
        self._kept = LruDirectory(self._directory / "kept")
        self._own = parse_version(host.version.removeprefix("go").partition(" ")[0].partition("-")[0])

    @property
    def fetches(self) -> bool:
        """Whether toolchains are downloaded if modules ask for newer ones than the host's."""
        return self._bounds.fetch

    def version_for(self, project: Project) -> GoVersion | None:
        """Return the version to download for a project; None if the toolchain of the host is new enough."""
        return self.newer(wanted_version(project.go_version, project.toolchain))

    def newer(self, wanted: GoVersion | None) -> GoVersion | None:
        """Return a version that is newer than the host's; None for any other, and if no toolchain is to be downloaded."""
        if wanted is None or self._own is None or not self._bounds.fetch or wanted <= self._own:
            return None
        return wanted

    def name(self, version: GoVersion | None) -> str:
        """Return the name of a toolchain, as `go version` reports it: the host's for None."""
        return self._host.version if version is None else version.toolchain

    async def checked(self, projects: tuple[Project, ...]) -> tuple[Project, ...]:
        """Return the projects, with a problem if one asks for a version that does not exist.

        If the proxy does not answer, the project has no problem.
        """
        wanted = {version for project in projects if (version := self.version_for(project)) is not None}
        problems = {version: await self._problem(version) for version in sorted(wanted)}

        def one(project: Project) -> Project:
            version = self.version_for(project)
            problem = None if version is None else problems[version]
            return project if problem is None or project.problem is not None else attrs.evolve(project, problem=problem)

        return tuple(map(one, projects))

    @asynccontextmanager
    async def using(
        self, version: GoVersion | None, on_log: OnLog = no_log, stage: DownloadStage = UNREPORTED
    ) -> AsyncIterator[Toolchain]:
        """Provide the toolchain of a version, downloaded if it is missing. It is not removed before the block ends.

        None: the host's. `stage` reports a download. Raises NoSuchToolchain, and GoError if the download fails.
        """
        if self._pinned is not None:
            await self._pinned.ensure(on_log, stage)
        if version is None:
            yield self._host
            return
        name = version.toolchain
        async with self._kept.using(name) as directory:
            if _ready(directory, name) is None:
                await stage.begin()
            async with locked(self._kept.lock(name)):
                toolchain = _ready(directory, name) or await self._fetched(version, directory, on_log)
            yield toolchain
        await self._make_room()

    async def _fetched(self, version: GoVersion, directory: Path, on_log: OnLog) -> Toolchain:
        name = version.toolchain
        on_log(f"the module needs {name}, this worker has {self._host.version}: {name} is downloaded")
        fetched, said = await self._go(["env", "GOVERSION", "GOROOT"], directory, _FETCHING, toolchain=name)
        if not fetched:
            raise self._failed(version, said)
        digest = await asyncio.to_thread(_settle, directory, name, said.splitlines()[-2:])
        _log.info("toolchain downloaded", version=name, digest=digest)
        on_log(f"{name} is verified: {digest}")
        await self._make_room()
        toolchain = _ready(directory, name)
        if toolchain is None:
            raise GoError(f"{name} was downloaded and has no program")
        return toolchain

    async def _problem(self, version: GoVersion) -> str | None:
        """Return the reason why a version is not available; None if it is, or if the proxy does not answer."""
        name = version.toolchain
        if self._kept.path(name).joinpath(_READY).exists():
            return None
        with tempfile.TemporaryDirectory(prefix="asked-", dir=self._directory) as place:
            exists, said = await self._go(["list", "-m", f"{_MODULE}@v0.0.1-{name}.{target()}"], Path(place), _ASKING)
        if exists:
            return None
        error = self._failed(version, said)
        if isinstance(error, NoSuchToolchain):
            return str(error)
        _log.warning("it is not known whether a toolchain exists", version=name, reason=str(error))
        return None

    def _failed(self, version: GoVersion, said: str) -> GoError:
        last = "; ".join(line.strip() for line in said.splitlines() if line.strip())[-400:]
        if _MISSING.search(said):
            return NoSuchToolchain(f"go.mod asks for Go {version}, which does not exist for {target()}: correct the go line")
        if "SECURITY ERROR" in said:
            return GoError(
                f"{version.toolchain} was refused: the checksum database knows another archive: {last}", permanent=True
            )
        return GoError(f"{version.toolchain} cannot be downloaded: {last}")

    async def _go(self, arguments: list[str], modules: Path, seconds: float, *, toolchain: str = "local") -> tuple[bool, str]:
        """Run go in an empty directory, with the network and without a program on PATH. Return its success and its output."""
        if self._pinned is not None:
            try:
                await self._pinned.ensure()
            except GoError as error:
                return False, str(error)
        with tempfile.TemporaryDirectory(prefix="go-", dir=self._directory) as place:
            empty = Path(place) / "empty"
            empty.mkdir()
            places = GoPlaces(own=Path(place), build=Path(place) / "build", modules=modules)
            environment: Mapping[str, str] = {
                **go_environment(self._host, places, downloads=self._downloads),
                "PATH": str(empty),
                "GOTOOLCHAIN": toolchain,
            }
            environment = {
                name: value for name, value in environment.items() if name not in ("GOWORK", "GONOSUMDB", "GOINSECURE")
            }
            output = bytearray()
            command = [str(self._host.go), *arguments]
            try:
                finished = await run(
                    command, cwd=empty, env=environment, timeout=seconds, limits=_LIMITS, on_stdout=output.extend
                )
            except ScanError as error:
                return False, str(error)
        text = output.decode(errors="replace") if finished.ok else f"{finished.output_tail}\ngo {finished.how()}"
        secrets = self._downloads.secrets()
        return finished.ok, redact(text, secrets) if secrets else text

    async def _make_room(self) -> None:
        """Remove old temporary folders, and beyond the bounds the toolchains that were used longest ago and are not in use."""
        for remains in await asyncio.to_thread(_old, self._directory):
            await remove(remains)
        items = [item for item in await self._kept.items() if item.name.startswith("go1.")]
        count, size = len(items), sum(item.size or 0 for item in items)
        for item in items:
            if count <= self._bounds.most and size <= self._bounds.max_bytes:
                return
            if await self._kept.forget(item.name):
                count, size = count - 1, size - (item.size or 0)
                _log.info("toolchain removed", version=item.name)


def _settle(directory: Path, name: str, reported: list[str]) -> str:
    """Remove the archive, which is unpacked, and note that the toolchain is complete. Returns its digest.

    `reported` are the version and the root that it reports of itself. Raises GoError if they are others.
    """
    root = Path(reported[-1] if reported else "/").resolve()
    if reported[:-1] != [name] or not root.is_relative_to(directory.resolve()):
        raise GoError(f"{name} was downloaded and does not work: it reports {' '.join(reported)[-200:]!r}", permanent=True)
    downloaded = directory / "cache" / "download" / _MODULE / "@v"
    digest = next((file.read_text().strip() for file in downloaded.glob("*.ziphash")), "no digest")
    for archive in downloaded.glob("*.zip"):
        archive.unlink()
    note = directory / f"{_READY}.new"
    note.write_text(f"{root.relative_to(directory.resolve())}\n{digest}\n")
    note.replace(directory / _READY)
    return digest


def _old(directory: Path) -> list[Path]:
    """Return the temporary folders that are older than a day."""
    return [one for one in directory.iterdir() if one.name.startswith(_TEMPORARY) and time.time() - one.stat().st_mtime > _DAY]


def _ready(directory: Path, name: str) -> Toolchain | None:
    """Return a toolchain that is complete in its directory."""
    try:
        root = (directory / _READY).read_text().splitlines()[0]
    except (FileNotFoundError, IndexError):
        return None
    program = directory.resolve() / root / "bin" / "go"
    return Toolchain(program, name) if os.access(program, os.X_OK) else None
