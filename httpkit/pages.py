"""Pages and other static files, with entity tags and their compressed forms."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Iterator
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import attrs
from aiohttp import web

from httpkit.messages.encoding import takes_gzip


def file_answer(
    request: web.Request,
    body: bytes,
    media: str,
    *,
    cache: str = "no-cache",
    save_as: str | None = None,
    public: bool = False,
) -> web.Response:
    """Return the bytes as an answer, or 304 if the client has them.

    `media` may have a charset. `cache` is Cache-Control. `save_as` is the name, of printable ASCII, under which a browser saves
    it. `public`: pages of other origins may show it.
    """
    etag = hashlib.sha256(body).hexdigest()[:32]
    headers = {"ETag": f'"{etag}"', "Cache-Control": cache}
    if public:
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if any(tag.value in ("*", etag) for tag in request.if_none_match or ()):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    if save_as is not None:
        quoted = save_as.replace("\\", "_").replace('"', "_")
        headers["Content-Disposition"] = f'attachment; filename="{quoted}"'
    headers["Content-Type"] = media
    return web.Response(body=body, headers=headers)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
WASM_POLICY = POLICY.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'")
"""The policy of pages that compile WebAssembly. It permits no evaluation of text."""
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
_HASHED = re.compile(r"[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
_COMPRESSIBLE = re.compile(r"text/|application/(json|javascript|manifest\+json|wasm)|image/svg\+xml")
_WORTH = 1024


@attrs.frozen(eq=False)
class Asset:
    """A file as it is sent. `zipped` is None where compressing gains nothing."""

    body: bytes
    zipped: bytes | None
    media: str
    etag: str
    cache: str
    policy: str = POLICY

    @classmethod
    def of(cls, name: str, body: bytes, policy: str = POLICY) -> Asset:
        """Prepare a file and its content policy. A content hash in its name (`app-3fJ9xQ2a.js`) means that it never changes."""
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        zipped = gzip.compress(body, mtime=0) if len(body) > _WORTH and _COMPRESSIBLE.match(media) else None
        immutable = _HASHED.search(name) and not name.endswith(".html")
        cache = "public, max-age=31536000, immutable" if immutable else "no-cache"
        return cls(body, zipped, media, hashlib.sha256(body).hexdigest()[:32], cache, policy)

    def not_found(self) -> web.Response:
        """The file as the answer at a path that has none."""
        headers = {"Cache-Control": "no-cache", **self._headers, "Vary": "Accept, Accept-Encoding"}
        return web.Response(status=404, body=self.body, headers=headers, content_type=self.media, charset=self._charset)

    async def answer(self, request: web.Request) -> web.Response:
        """Handler of the file: 304 where the client has it, gzip where the client takes it."""
        headers = {"ETag": f'"{self.etag}"', "Cache-Control": self.cache, **self._headers}
        if any(tag.value in ("*", self.etag) for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        if self.zipped is not None and takes_gzip(request.headers.get("Accept-Encoding")):
            headers["Content-Encoding"] = "gzip"
            return web.Response(body=self.zipped, headers=headers, content_type=self.media, charset=self._charset)
        return web.Response(body=self.body, headers=headers, content_type=self.media, charset=self._charset)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Content-Security-Policy": self.policy, **_HEADERS}

    @property
    def _charset(self) -> str | None:
        return "utf-8" if _COMPRESSIBLE.match(self.media) and self.media != "application/wasm" else None


class Pages:
    """The files of one directory of a package, or of a directory in the file system, by their path in it.

    `index` is the file that is served at each of `paths` (`/`, and the deep links of a page that does its own routing). With
    `answers_all` a browser gets the index, with status 404, at any path that nothing else is served at: its own addresses have
    to be absolute then. `wasm`: the page compiles WebAssembly. `built`: a build makes the directory; without an index in it,
    the index is a page with the steps of that build. Raises FileNotFoundError if another directory has no index.
    """

    def __init__(
        self,
        package: str | Path,
        directory: str,
        *,
        index: str = "index.html",
        paths: tuple[str, ...] = ("/",),
        answers_all: bool = False,
        wasm: bool = False,
        built: bool = False,
    ) -> None:
        root = files(package).joinpath(directory) if isinstance(package, str) else package.joinpath(directory)
        policy = WASM_POLICY if wasm else POLICY
        if built and not root.joinpath(index).is_file():
            bodies = {index: files("httpkit").joinpath("not_built.html").read_bytes()}
        else:
            bodies = dict(_files(root))
        assets = {name: Asset.of(name, body, policy) for name, body in bodies.items()}
        if index not in assets:
            raise FileNotFoundError(f"{package}/{directory} has no {index}")
        self.by_path = dict.fromkeys(paths, assets[index]) | {f"/{name}": asset for name, asset in assets.items()}
        self.missing = assets[index] if answers_all else None


def _files(root: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in root.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()
