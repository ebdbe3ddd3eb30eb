"""Go for a host that has none: one official release, downloaded by the first job that needs it.

The archive is a module of the module proxy. Its digest is in this file, in the form of go.sum, so neither a Go nor the checksum
database is needed to verify it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import attrs

from gctd.scan.errors import GoError
from gctd.scan.go.downloading import UNREPORTED, DownloadStage
from gctd.scan.go.toolchain import PUBLIC_PROXY, Downloads, Toolchain, target
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.output import OnLog, no_log

VERSION = "go1.26.6"
"""The release of requirements/go.lock, which the native engine is compared with."""

DIGESTS: Mapping[str, str] = {
    "linux-amd64": "h1:owmNw4SPM9h46FGOeGJVUWzFEEDSmO6g7gAtWoXp28s=",
    "linux-arm64": "h1:YU5g0Kv9+YZGTJQ8l89vdVDpHOHzXHCuxsoUJm1d1TU=",
}
"""The digest of the archive for each platform."""

_MODULE = "golang.org/toolchain"
_CHUNK = 256 * 1024
_NOTE_EVERY = 10 * 1024**2
_MIB = 1024**2
_SECONDS = 900.0
_MODE = 0o755


@attrs.frozen
class PinnedGo:
    """The release, below a directory that the workers of the host share."""

    directory: Path
    downloads: Downloads

    @classmethod
    def available(cls) -> bool:
        """Whether the release exists for this host."""
        return target() in DIGESTS

    @property
    def toolchain(self) -> Toolchain:
        """The toolchain, which `ensure` provides."""
        return Toolchain(self._place / "bin" / "go", VERSION)

    @property
    def _place(self) -> Path:
        return self.directory.absolute() / f"pinned-{VERSION}"

    async def ensure(self, on_log: OnLog = no_log, stage: DownloadStage = UNREPORTED) -> None:
        """Download and verify the release if it is missing. Raises GoError."""
        if self._place.exists():
            return
        await stage.begin()
        self.directory.mkdir(parents=True, exist_ok=True)
        async with locked(self.directory / "pinned.lock"):
            if not self._place.exists():
                await self._fetch(on_log, stage)

    async def _fetch(self, on_log: OnLog, stage: DownloadStage) -> None:
        name = f"v0.0.1-{VERSION}.{target()}"
        url = f"{_proxy()}/{_MODULE}/@v/{name}.zip"
        on_log(f"this host has no Go: {VERSION} is downloaded from {_without_password(url)}")
        with tempfile.TemporaryDirectory(prefix="go-", dir=self.directory) as folder:
            archive, unpacked = Path(folder) / "archive.zip", Path(folder) / "unpacked"
            try:
                await self._download(url, archive, on_log, stage)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
                raise GoError(f"{VERSION} cannot be downloaded from {_without_password(url)}: {reason}") from error
            digest = await asyncio.to_thread(_unpack, archive, unpacked, f"{_MODULE}@{name}/")
            if digest != DIGESTS[target()]:
                raise GoError(f"{VERSION} was refused: the archive has the digest {digest}", permanent=True)
            unpacked.rename(self._place)
        on_log(f"{VERSION} is verified: {digest}")

    async def _download(self, url: str, file: Path, on_log: OnLog, stage: DownloadStage) -> None:
        timeout = aiohttp.ClientTimeout(total=_SECONDS, sock_connect=30, sock_read=60)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True, raise_for_status=True) as session,
            session.get(url, proxy=self.downloads.proxy) as response,
        ):
            size, done, noted = response.content_length, 0, 0
            await stage.progressed(0, size)
            with file.open("wb") as output:
                async for chunk in response.content.iter_chunked(_CHUNK):
                    output.write(chunk)
                    done += len(chunk)
                    if done - noted >= _NOTE_EVERY:
                        noted = done
                        on_log(f"{VERSION}: {done // _MIB} MiB" + (f" of {size // _MIB}" if size else ""))
                        await stage.progressed(done, size)


def _proxy() -> str:
    """Return the first module proxy of GOPROXY, as Go asks it; the public one if it names none."""
    listed = os.environ.get("GOPROXY", "").replace("|", ",").split(",")
    return next((one.strip().rstrip("/") for one in listed if one.strip().startswith(("https://", "http://"))), PUBLIC_PROXY)


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2] if '@' in rest.partition('/')[0] else rest}"


def _unpack(archive: Path, directory: Path, prefix: str) -> str:
    """Unpack an archive of a module into a directory. Return the digest of its contents, as in go.sum.

    Source of the rule: package golang.org/x/mod/sumdb/dirhash, Hash1. Raises GoError for a file outside of `prefix`.
    """
    lines: list[tuple[str, str]] = []
    try:
        with zipfile.ZipFile(archive) as opened:
            for item in opened.infolist():
                if item.is_dir():
                    continue
                name = item.filename
                parts = name.removeprefix(prefix).split("/")
                if not name.startswith(prefix) or not {"", ".", ".."}.isdisjoint(parts):
                    raise GoError(f"{VERSION} was refused: the archive has a file {name!r}", permanent=True)
                place = directory.joinpath(*parts)
                place.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(item) as source, place.open("wb") as output:
                    shutil.copyfileobj(source, output, _CHUNK)
                with place.open("rb") as written:
                    lines.append((name, hashlib.file_digest(written, "sha256").hexdigest()))
                if parts[-1] == "_go.mod":  # a zip of a module has no other modules in it: Go itself adds these copies
                    shutil.copyfile(place, place.with_name("go.mod"))
                if parts[0] == "bin" or parts[:2] == ["pkg", "tool"]:
                    place.chmod(_MODE)
    except zipfile.BadZipFile as error:
        raise GoError(f"{VERSION} was refused: {error}", permanent=True) from error
    listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(lines))
    return f"h1:{base64.b64encode(hashlib.sha256(listing.encode()).digest()).decode()}"
