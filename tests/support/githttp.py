"""A git server over HTTP on loopback: git's own http-backend behind Python's HTTP server, with faults on request."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs

from tests.support.gorepo import GIT_ENVIRONMENT


@attrs.define
class GitServer:
    """`url` serves the repositories below a directory. `requests` are the lines that came in, `headers` those of the last one.

    `redirect`: paths that begin with a key are sent to the value. `status`: every request is answered with it.
    """

    url: str = ""
    requests: list[str] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    redirect: dict[str, str] = attrs.field(factory=dict)
    status: int | None = None


@contextmanager
def serve(directory: Path) -> Iterator[GitServer]:
    """Serve the repositories below a directory until the end of the context."""
    state = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, body: bytes) -> None:
            state.requests.append(self.requestline)
            state.headers = {name.lower(): value for name, value in self.headers.items()}
            path, _, query = self.path.partition("?")
            for source, target in state.redirect.items():
                if path.startswith(source):
                    self.send_response(301)
                    self.send_header("Location", self.path.replace(source, target, 1))
                    self.end_headers()
                    return
            if state.status is not None:
                self.send_error(state.status)
                return
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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def counting_git(directory: Path) -> Path:
    """A program `git` that writes the subcommand of each call into `calls` beside it, then is git; for a test that counts."""
    real = next(Path(place) / "git" for place in os.environ["PATH"].split(os.pathsep) if (Path(place) / "git").is_file())
    directory.mkdir()
    program = directory / "git"
    program.write_text(
        f'#!/bin/sh\nfor a in "$@"; do case $a in ls-remote|fetch|read-tree|init) echo $a >> {directory}/calls;; esac; done\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    return program
