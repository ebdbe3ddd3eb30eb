"""Private repositories: read with the operator's credentials, refused plainly without, and the secret is found nowhere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.tracker import git_http as githttp
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

PASSWORD = "geheim-7f3a"
SPELLINGS = [PASSWORD, base64.b64encode(f"reader:{PASSWORD}".encode()).decode()]


def found_in(directory: Path) -> list[Path]:
    """The files that have the secret in them."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if any(spelling.encode() in path.read_bytes() for spelling in SPELLINGS)]


async def status_of(system: TrackerSystem, url: str, wanted: str) -> str:
    """Wait for a status of the repository; the reason for it."""

    async def reached() -> Any:
        repo = await system.get(f"/api/repos/status?url={url}")
        return (repo["StatusReason"],) if repo["Status"] == wanted else None

    found = await wait_until(reached, timeout=30, every=0.02)
    return str(found[0])


async def test_a_private_repository_is_read_with_credentials_that_are_seen_nowhere(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1\nlogin reader\npassword {PASSWORD}\nmachine other.example login a password b\n")
    netrc.chmod(0o600)
    files = {"go.mod": gorepo.module("example.com/one"), "one.go": "package one\n\n// One is 1.\nfunc One() int { return 1 }\n"}
    gorepo.make(tmp_path / "git" / "private", files=files)
    with githttp.serve(tmp_path / "git", tls=True) as server:
        server.credential = f"reader:{PASSWORD}"
        url = f"{server.url}/private"
        settings = {"GCTD_PRIVATE_HOSTS": "127.0.0.1", "GCTD_CA_FILE": str(githttp.certificate()), "GOPROXY": "off"}
        (tmp_path / "system").mkdir()
        async with tracker_system(tmp_path / "system", **settings, GCTD_LOG_LEVEL="debug") as system:
            without = await system.start_worker(1, program=REAL_WORKER)
            await system.post("/api/repos", {"repo_url": url})
            assert "it is private and this tracker has no access to it" in await status_of(system, url, "error")
            await without.stop()

            await system.start_worker(2, program=REAL_WORKER, GCTD_CREDENTIALS_FILE=str(netrc))
            await system.post("/api/repos", {"repo_url": url})
            await status_of(system, url, "ready")
            answers = msgspec.json.encode([await system.get("/api/repos"), await system.events()], enc_hook=str)
        assert not any(spelling.encode() in answers for spelling in SPELLINGS)
    assert found_in(tmp_path / "system") == []
