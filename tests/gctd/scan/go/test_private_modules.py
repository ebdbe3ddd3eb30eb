"""Modules that need the operator's credentials: downloaded with them, reported without them. The secret appears nowhere."""

from __future__ import annotations

import base64
import io
import ssl
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import attrs
import pytest

from gctd.scan.errors import GoError
from gctd.scan.go.coverage_run.plan import Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain
from gctd.scan.isolation.sandbox import find_sandbox
from gctd.scan.policy import read_credentials
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.git_http import certificate

pytestmark = pytest.mark.real

PASSWORD = "geheim-41"
AUTHORIZATION = f"Basic {base64.b64encode(f'reader:{PASSWORD}'.encode()).decode()}"


@attrs.frozen
class Proxy:
    """A module proxy over TLS with one version of one module, which no other proxy has."""

    url: str
    module: str


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    module = f"private.example/m{uuid4().hex[:12]}"
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr(f"{module}@v1.0.0/go.mod", gorepo.module(module))
        archive.writestr(f"{module}@v1.0.0/dep.go", "package dep\n\n// One is 1.\nconst One = 1\n")
    files = {
        f"/{module}/@v/v1.0.0.info": b'{"Version": "v1.0.0"}',
        f"/{module}/@v/v1.0.0.mod": gorepo.module(module).encode(),
        f"/{module}/@v/v1.0.0.zip": body.getvalue(),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers.get("Authorization") == AUTHORIZATION
            content = files.get(self.path, b"") if allowed else b""
            self.send_response(401 if not allowed else 200 if content else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate())
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield Proxy(f"https://127.0.0.1:{server.server_address[1]}", module)
    server.shutdown()
    thread.join()
    server.server_close()


async def test_private_modules_come_with_credentials_only(
    tmp_path: Path, go_cache: Path, toolchain: Toolchain, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", proxy.url)
    monkeypatch.setenv("GOSUMDB", "off")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {proxy.url.removeprefix('https://')} login reader password {PASSWORD}\n")
    netrc.chmod(0o600)
    job = tmp_path / "job"
    source = job / "src"
    source.mkdir(parents=True)
    (source / "go.mod").write_text(f"{gorepo.module('example.com/one')}\nrequire {proxy.module} v1.0.0\n")
    use = f'package one\n\nimport dep "{proxy.module}"\n\n// One is 1.\nfunc One() int {{ return dep.One }}\n'
    (source / "one.go").write_text(use)
    (source / "one_test.go").write_text('package one\n\nimport "testing"\n\nfunc TestOne(t *testing.T) { One() }\n')
    plan = Plan(
        source=source,
        project=".",
        job=job,
        caches=GoCaches.below(go_cache),
        timeout=100.0,
        go_flags=("-mod=mod",),
        sandbox=await find_sandbox("auto", tmp_path),
    )
    log: list[str] = []

    async def stage(_: str) -> None:
        pass

    with pytest.raises(GoError, match="401"):
        await run_tests(toolchain, plan, stage, log.append)
    downloads = Downloads(credentials=read_credentials(netrc), netrc=netrc)
    done = await run_tests(toolchain, attrs.evolve(plan, downloads=downloads), stage, log.append)
    assert [package.outcome for package in done.packages] == ["ok"]
    assert PASSWORD not in "\n".join(log)
    written = [path for path in job.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert written == []
