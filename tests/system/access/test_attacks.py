"""Attacks by address, ref, project and option on a running system: each is refused without a program or an internal request."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.tracker import git_http as githttp
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

TOUCH = "touch pwn"

URLS = [
    # options and helpers
    f"--upload-pack={TOUCH};",
    "-u" + TOUCH.replace(" ", "${IFS}"),
    f"ext::sh -c {TOUCH.replace(' ', '% ')}",
    "fd::17",
    "https::https://HOST/a",
    f"ssh://-oProxyCommand={TOUCH}/x",
    f"-oProxyCommand={TOUCH}:x",
    "git@HOST:a/b",
    "ssh://git@HOST/a",
    "git://HOST/a",
    "http://HOST/a",
    "ftp://HOST/a",
    "file:///etc",
    "/etc",
    "../../etc",
    # addresses inside, in every notation
    "https://HOST/a",
    "https://OWN/a",
    "https://localhost:PORT/a",
    "https://localhost.:PORT/a",
    "https://git.localhost:PORT/a",
    "https://127.2:PORT/a",
    "https://2130706434:PORT/a",
    "https://0x7f000002:PORT/a",
    "https://0177.0.0.2:PORT/a",
    "https://127.0.0.2.:PORT/a",
    "https://0.0.0.0:PORT/a",
    "https://[::1]:PORT/a",
    "https://[::ffff:127.0.0.2]:PORT/a",
    "https://[::ffff:7f00:2]:PORT/a",
    "https://[64:ff9b::7f00:2]:PORT/a",
    "https://[fe80::1%25lo]:PORT/a",
    "https://169.254.169.254/latest/meta-data",
    "https://metadata.google.internal/a",
    "https://printer/a",
    # another host than the one that is seen, credentials, a second line
    "https://user:geheim@github.com/a/b",
    "https://github.com@HOST/a",
    "https://github.com%40HOST/a",
    "https://github.com\\@HOST/a",
    "https://github.com/a\nHost: HOST",
    "https://github.com/a%0d%0aHost:%20x",
    "https://github.com/../../HOST/a",
    "https://github.com/a?x=https://HOST/",
    "https://github.com/a#https://HOST/",
    "https://github.com/$(" + TOUCH + ")",
    "https://github.com/a/`" + TOUCH + "`",
    "https://g\u0131thub.com/a/b",
    "",
]
"""HOST, PORT and OWN stand for the servers that must not be asked."""

REFS = [
    f"--upload-pack={TOUCH};",
    "-h",
    "--help",
    "--exec=pwn",
    "main --exec",
    "main;" + TOUCH,
    "a..b",
    "main^{commit}",
    "HEAD~1",
    "HEAD@{1}",
    "@",
    ":/fix",
    "refs/heads/../../config",
    "a\x00b",
    "a\nb",
    "branch.lock",
    "/main",
    "a//b",
    "x" * 300,
]

PROJECTS = ["..", "../..", "a/../../b", "/etc", "a\\..\\b", "a\x00b", "./../x", "a//b", "x" * 1100]

OPTIONS: list[tuple[str, Any]] = [
    ("test_args", f"-exec '{TOUCH}'"),
    ("test_args", f"-exec=sh -toolexec='{TOUCH}'"),
    ("test_args", "-o /tmp/pwn"),
    ("test_args", "-coverprofile=/tmp/pwn"),
    ("test_args", "-outputdir /tmp"),
    ("test_args", "-cpuprofile=pwn"),
    ("test_args", "-args --pwn"),
    ("test_args", "./..."),
    ("test_args", f"$({TOUCH})"),
    ("test_args", "-run 'a\nb'"),
    ("test_args", "-C /"),
    ("test_args", "-json=false"),
    ("go_flags", f"-toolexec={TOUCH}"),
    ("go_flags", "-overlay=/etc/passwd"),
    ("go_flags", "-modfile=/tmp/go.mod"),
    ("go_flags", "-ldflags=-extld=pwn"),
    ("go_flags", "-gcflags=-d=pwn"),
    ("go_flags", "-pkgdir=/tmp/pwn"),
    ("go_flags", "-buildvcs=true"),
    ("go_flags", "-tags='a -toolexec=pwn'"),
    ("crap_args", ["--output=/tmp/pwn"]),
    ("crap_args", ["--config", "/etc/passwd"]),
    ("crap_args", ["/etc"]),
    ("crap_args", ["--exclude=("]),
    ("crap_args", ["--threshold=1e999"]),
]


@attrs.frozen
class Inside:
    """Servers that must not get requests: on another loopback address, and on an address of this machine's own if it has one."""

    loopback: socket.socket
    own: socket.socket

    def insert(self, text: str) -> str:
        """The text with their addresses."""
        host, port = self.loopback.getsockname()
        own = "{}:{}".format(*self.own.getsockname())
        return text.replace("HOST", f"{host}:{port}").replace("OWN", own).replace("PORT", str(port))

    def asked(self) -> list[str]:
        """Which of them was connected to."""
        found = []
        for server in (self.loopback, self.own):
            try:
                found.append(str(server.accept()[1]))
            except BlockingIOError:
                continue
        return found


@contextmanager
def inside() -> Iterator[Inside]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it asks which address it would go out from
        address = probe.getsockname()[0]
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server((host, 0))) for host in ("127.0.0.2", address)]
        for server in servers:
            server.setblocking(False)
        yield Inside(*servers)


def canaries(directory: Path) -> list[Path]:
    return [
        path
        for place in (directory, Path(), Path("/"), Path("/tmp"))
        for path in place.glob("**/pwn" if place == directory else "pwn")
    ]


async def error_of(system: TrackerSystem, url: str) -> str:
    """Why a repository could not be read, once that is known."""

    async def reason() -> str | None:
        repo = await system.get(f"/api/repos/status?url={url}")
        assert repo["Status"] != "ready"
        return repo["StatusReason"] if repo["Status"] == "error" else None

    return str(await wait_until(reason, timeout=30, every=0.02))


async def unrefused(system: TrackerSystem, path: str, bodies: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The requests that were not answered 400 with the field named."""
    wrong = []
    for field, body in bodies:
        status, problem = await system.status(path, "POST", json=body)
        if status != 400 or field not in str(problem["errors"]):
            wrong.append((body, status, problem))
    return wrong


async def test_no_attack_by_address_ref_project_or_option_gets_through(tmp_path: Path) -> None:
    gorepo.make(tmp_path / "git" / "good")
    bad = gorepo.make(tmp_path / "git" / "bad")
    with inside() as others, githttp.serve(tmp_path / "git", tls=True) as server:
        bad.write({".gitmodules": others.insert('[submodule "m"]\n\tpath = m\n\turl = https://HOST/m\n')})
        bad.git("add", ".gitmodules")
        bad.git("update-index", "--add", "--cacheinfo", f"160000,{bad.head()},m")
        bad.git("commit", "--quiet", "--message", "a submodule that is inside")
        server.redirect = {"/moved": others.insert("https://HOST/moved"), "/own": others.insert("https://OWN/own")}
        settings = {
            "GCTD_ALLOW_LOCAL": "false",
            "GCTD_PRIVATE_HOSTS": "127.0.0.1",
            "GCTD_CA_FILE": str(githttp.certificate()),
            "GOPROXY": "off",
        }
        (tmp_path / "system").mkdir()
        async with tracker_system(tmp_path / "system", **settings) as system:
            await system.start_worker(1, program=REAL_WORKER)
            urls = [others.insert(url) for url in URLS]
            assert await unrefused(system, "/api/repos", [("repo_url", {"repo_url": url}) for url in urls]) == []
            assert await unrefused(system, "/api/repos/analyze", [("repo_url", {"repo_url": url}) for url in urls]) == []
            assert [event.type for event in await system.events()] == ["WorkerStarted"]

            good = f"{server.url}/good"
            await system.register(good)
            bodies: list[tuple[str, dict[str, Any]]] = [
                *(("ref", {"repo_url": good, "ref": ref}) for ref in REFS),
                *(("project", {"repo_url": good, "project": project}) for project in PROJECTS),
            ]
            assert await unrefused(system, "/api/repos/analyze", bodies) == []
            configs = [
                *(("ref", {"url": good, "ref": ref}) for ref in REFS),
                *((name, {"url": good, name: value}) for name, value in OPTIONS),
                *(("subdir", {"url": good, "subdir": project}) for project in PROJECTS),
            ]
            assert await unrefused(system, "/api/repo-config", configs) == []

            for path in ("moved", "own"):
                await system.post("/api/repos", {"repo_url": f"{server.url}/{path}"})
                assert "moved" in await error_of(system, f"{server.url}/{path}")
            await system.register(f"{server.url}/bad")
            await system.post("/api/repo-config", {"url": f"{server.url}/bad", "submodules": True})
            answer = await system.post("/api/repos/analyze", {"repo_url": f"{server.url}/bad"})
            task = await system.until_task(answer[0]["id"], "failed")
            assert "the submodule m is refused: 127.0.0.2 is not a public address" in task["reason"]

            events = await system.events()
        assert sum(event.type == "TaskQueued" for event in events) == 1
        assert others.asked() == []
    assert canaries(tmp_path) == []
