"""A git server over HTTP on loopback: git's own http-backend behind Python's HTTP server, with faults on request."""

from __future__ import annotations

import atexit
import base64
import functools
import gzip
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import trustme

from tests.support.tracker.go_repo import GIT_ENVIRONMENT

_COMMAND = re.compile(r"command=([a-z-]+)")


@functools.cache
def certificate() -> Path:
    """Return a file with the certificate and the key of 127.0.0.1 and the authority that signed it. Each run has a new one."""
    directory = tempfile.mkdtemp(prefix="certificate-")
    atexit.register(shutil.rmtree, directory)
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1")
    file = Path(directory) / "loopback.pem"
    parts = [server.private_key_pem, *server.cert_chain_pems, authority.cert_pem]
    file.write_bytes(b"".join(part.bytes() for part in parts))
    return file


def _basic(credential: str) -> str:
    return f"Basic {base64.b64encode(credential.encode()).decode()}"


@attrs.define
class GitServer:
    """`url` serves the repositories below a directory. `requests` are the lines that came in, `headers` belong to the last one.

    `commands` are the commands of git's protocol (gitprotocol-v2): `ls-refs`, and `fetch` if objects are asked for. `redirect`:
    paths that begin with a key are sent to the value, a path or a URL. `status`: every request is answered with it. `credential`:
    `user:password` that is asked for. `only`: paths that begin otherwise are not found.
    """

    url: str = ""
    requests: list[str] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    commands: list[str] = attrs.field(factory=list)
    redirect: dict[str, str] = attrs.field(factory=dict)
    status: int | None = None
    credential: str | None = None
    only: str = "/"


def _server(handler: type[BaseHTTPRequestHandler], *, tls: bool) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate())
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


@contextmanager
def serve(directory: Path, *, tls: bool = False) -> Iterator[GitServer]:
    """Serve the repositories below a directory until the end of the context; with `tls`, with `certificate()`."""
    state = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, body: bytes) -> None:
            state.requests.append(self.requestline)
            plain = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
            state.commands += _COMMAND.findall(plain.decode(errors="replace"))
            state.headers = {name.lower(): value for name, value in self.headers.items()}
            path, _, query = self.path.partition("?")
            for source, target in state.redirect.items():
                if path.startswith(source):
                    self.send_response(301)
                    self.send_header("Location", self.path.replace(source, target, 1))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
            refused = 401 if state.credential and self.headers.get("Authorization") != _basic(state.credential) else None
            missing = None if path.startswith(state.only) else 404
            if status := state.status or refused or missing:
                self.send_error(status)
            else:
                self._backend(path, query, body)

        def _backend(self, path: str, query: str, body: bytes) -> None:
            environment = {
                **GIT_ENVIRONMENT,
                "GIT_PROJECT_ROOT": str(directory),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "CONTENT_LENGTH": str(len(body)),
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=environment, check=False, capture_output=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = _server(Handler, tls=tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def counting_git(directory: Path) -> Path:
    """Make a program `git` that writes the subcommand of each call into `calls` next to it and then runs git, for counting."""
    real = next(Path(place) / "git" for place in os.environ["PATH"].split(os.pathsep) if (Path(place) / "git").is_file())
    directory.mkdir()
    program = directory / "git"
    program.write_text(
        f'#!/bin/sh\nfor a in "$@"; do case $a in ls-remote|fetch|read-tree|init) echo $a >> {directory}/calls;; esac; done\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    return program
