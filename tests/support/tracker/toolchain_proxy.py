"""A module proxy and a checksum database on loopback that know one Go toolchain, made up of a shell script.

The database is a transparency log with one record, signed by a key of this module (go.dev/ref/mod#checksum-database).
"""

from __future__ import annotations

import base64
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MODULE = "golang.org/toolchain"
_NAME = "sum.example"


@attrs.frozen
class ToolchainProxy:
    """The values of GOPROXY and GOSUMDB. `requests` are the requested paths."""

    proxy: str
    sumdb: str
    requests: list[str]

    @property
    def downloads(self) -> int:
        """How often the archive was asked for."""
        return sum(path.endswith(".zip") for path in self.requests)


@contextmanager
def toolchain_proxy(
    version: str, script: str, *, platform: str = "linux-amd64", forged: bool = False
) -> Iterator[ToolchainProxy]:
    """Serve the toolchain `version` (`go1.99.1`), whose bin/go is this script; `forged`: not the one that the database knows."""
    name = f"v0.0.1-{version}.{platform}"
    mod = f"module {MODULE}\n".encode()
    known, served = _archive(name, script), _archive(name, script + "\n# forged\n" if forged else script)
    record = f"{MODULE} {name} {_digest(known)}\n{MODULE} {name}/go.mod {_hash1({'go.mod': mod})}\n"
    leaf = sha256(b"\0" + record.encode()).digest()
    key = Ed25519PrivateKey.generate()
    public = b"\x01" + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    mark = sha256(f"{_NAME}\n".encode() + public).digest()[:4]
    tree = f"go.sum database tree\n1\n{base64.b64encode(leaf).decode()}\n"
    signature = base64.b64encode(mark + key.sign(tree.encode())).decode()
    note = f"{tree}\n\N{EM DASH} {_NAME} {signature}\n"
    files = {
        f"/{MODULE}/@v/{name}.info": f'{{"Version": "{name}"}}'.encode(),
        f"/{MODULE}/@v/{name}.mod": mod,
        f"/{MODULE}/@v/{name}.zip": served,
        "/sumdb/latest": note.encode(),
        f"/sumdb/lookup/{MODULE}@{name}": f"0\n{record}\n{note}".encode(),
        "/sumdb/tile/8/0/000.p/1": leaf,
    }
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        verifier = f"{_NAME}+{mark.hex()}+{base64.b64encode(public).decode()}"
        yield ToolchainProxy(url, f"{verifier} {url}/sumdb", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def known_digest(version: str, script: str, *, platform: str) -> str:
    """Return the digest of the genuine archive."""
    return _digest(_archive(f"v0.0.1-{version}.{platform}", script))


def _archive(name: str, script: str) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for path, text in _files(script).items():
            archive.writestr(f"{MODULE}@{name}/{path}", text)
    return body.getvalue()


def _files(script: str) -> dict[str, str]:
    return {"bin/go": script, "bin/gofmt": "#!/bin/sh\n", "lib/x": "", "pkg/tool/x": "", "src/_go.mod": "module std\n"}


def _digest(archive: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return _hash1({name: opened.read(name) for name in opened.namelist()})


def _hash1(files: dict[str, bytes]) -> str:
    lines = "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return f"h1:{base64.b64encode(sha256(lines.encode()).digest()).decode()}"
