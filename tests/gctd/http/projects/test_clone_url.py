"""git gets the address that a repository was registered with: its canonical form may name nothing, or another repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.domain.analysis import analysis_id
from tests.support.tracker import git_http, go_repo
from tests.support.tracker.system import REAL_WORKER, tracker_system

pytestmark = pytest.mark.real

FILES = {"go.mod": go_repo.module("example.com/one"), "one.go": "package one\n\n// One is 1.\nfunc One() int { return 1 }\n"}


async def test_a_repository_of_a_server_that_knows_it_only_with_git_at_the_end_is_analysed_and_compared(tmp_path: Path) -> None:
    repo = go_repo.make(tmp_path / "git" / "one.git", files=FILES)
    first = repo.head()
    repo.write({"two.go": "package one\n\n// Two is 2.\nfunc Two() int { return 2 }\n"}).commit()
    (tmp_path / "system").mkdir()
    with git_http.serve(tmp_path / "git", tls=True) as server:
        server.only = "/one.git/"
        url = f"{server.url}/one.git"
        settings = {"GCTD_PRIVATE_HOSTS": "127.0.0.1", "GCTD_CA_FILE": str(git_http.certificate()), "GOPROXY": "off"}
        async with tracker_system(tmp_path / "system", **settings) as system:
            await system.start_worker(1, program=REAL_WORKER)
            found = await system.register(url)
            (task,) = await system.post("/api/repos/analyze", {"repo_url": url})
            done = await system.until_task(task["id"], "completed", "failed", timeout=110)
            assert (done["status"], done["reason"]) == ("completed", "")
            verdict = await system.get(f"/api/repos/{analysis_id(found['ID'], '.')}/gate?base=main")
            assert (verdict["base"]["kind"], verdict["base"]["commit_sha"]) == ("first parent", first)
