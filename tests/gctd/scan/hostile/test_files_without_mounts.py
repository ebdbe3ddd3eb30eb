"""A host without namespaces: Landlock restricts tests to the files of their job, and the worker names the remaining gaps."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from gctd.scan.errors import NoSandbox
from gctd.scan.isolation import landlock
from gctd.scan.isolation.process import run
from gctd.scan.isolation.sandbox import Sandbox, View, find_sandbox
from tests.gctd.scan.hostile.conftest import Host, attacking, host_of
from tests.support.tracker import go_repo as gorepo

pytestmark = [
    pytest.mark.skipif(not landlock.restricts_files(), reason="the kernel has no Landlock of Linux 6.2"),
    pytest.mark.real,
]

SANDBOX = Sandbox(kind="landlock")
SECRET = "canary-of-a-secret"


def broken() -> Sequence[Sandbox]:
    """The sandboxes of a host without namespaces."""
    return [Sandbox(kind="bubblewrap", program=("/bin/false",)), Sandbox(kind="namespaces", program=("/bin/false",))]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files of the operator, with a secret, next to the job's folder."""
    (place := tmp_path / "operator").mkdir()
    (place / "credentials").write_text(SECRET)
    return place


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (place := tmp_path / "jobs" / "one").mkdir(parents=True)
    return place


async def python(code: str, job: Path) -> str:
    view = View(cwd=job, scratch=job, writable=[job])
    argv = SANDBOX.around(["/usr/bin/env", "python3", "-I", "-S", "-c", code], view)
    done = await run(argv, cwd=job, env={"PATH": os.defpath, "TMPDIR": str(job)}, timeout=60, files=SANDBOX.files(view))
    return done.output_tail


ATTEMPTS = {
    "read": "open('{outside}/credentials').read()",
    "list": "os.listdir('{outside}')",
    "write": "open('{outside}/credentials', 'a')",
    "truncate": "os.truncate('{outside}/credentials', 0)",
    "make": "open('{outside}/made', 'x')",
    "make a directory": "os.mkdir('{outside}/made')",
    "remove": "os.unlink('{outside}/credentials')",
    "move in": "os.rename('{outside}/credentials', 'mine')",
    "link in": "os.link('{outside}/credentials', 'mine')",
    "move out": "os.rename('own', '{outside}/own')",
    "through a link": "(os.symlink('{outside}/credentials', 'link'), open('link').read())",
    "other jobs": "os.listdir('..')",
    "home": "os.listdir('{home}')",
    "temporary files of others": "os.listdir('/tmp')",
    "the worker's environment": "open('/proc/{worker}/environ').read()",
    "the worker's memory": "open('/proc/{worker}/mem', 'rb')",
    "the worker's files": "open('/proc/{worker}/root{outside}/credentials').read()",
    "the worker's directory": "os.listdir('/proc/{worker}/cwd')",
}


async def test_only_the_job_s_files_can_be_read_and_written(job: Path, outside: Path) -> None:
    """As root also, to whom the modes of files refuse nothing."""
    places = {"outside": outside, "home": Path.home(), "worker": os.getpid()}
    lines = [
        "import errno, os",
        "def refused(error):\n    assert error.errno in (errno.EACCES, errno.EPERM, errno.EXDEV), error",
        "open('own', 'w').write('x'); os.mkdir('made'); os.rename('own', 'made/own'); os.rename('made/own', 'own')",
    ]
    for name, attempt in ATTEMPTS.items():
        lines += [f"try: {attempt.format(**places)}; print('DONE', {name!r})", "except OSError as error: refused(error)"]
    lines += ["open('/dev/null', 'w').write('x'); open('/etc/passwd').read(); print('goes on', open('own').read())"]
    assert await python("\n".join(lines), job) == "goes on x\n"
    assert os.listdir(outside) == ["credentials"]  # noqa: PTH208 - of a local directory, once
    assert (outside / "credentials").read_text() == SECRET


async def test_it_is_taken_where_no_other_works_and_never_where_a_sandbox_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", broken)
    found = await find_sandbox("auto", tmp_path)
    assert (found.kind, os.listdir(tmp_path)) == ("landlock", [])  # noqa: PTH208 - of a local directory, once
    assert "exited with code 1" in found.reason
    said = "; ".join(found.walls())
    assert "the network" in said
    assert "no control groups" in said
    with pytest.raises(NoSandbox, match="required"):
        await find_sandbox("require", tmp_path)
    monkeypatch.setattr(landlock, "version", lambda: 2)
    found = await find_sandbox("auto", tmp_path)
    assert (found.kind, "Linux 6.2" in found.reason) == ("none", True)


async def test_a_landlock_with_a_hole_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", broken)
    monkeypatch.setattr(Sandbox, "files", lambda *_: None)
    found = await find_sandbox("auto", tmp_path)
    assert found.kind == "none"
    assert "other files can be read" in found.reason


@pytest_asyncio.fixture
async def host(hostile_cache: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", broken)
    async with host_of(hostile_cache, monkeypatch, "auto") as host:
        yield host


BODY = """
    failed := 0
    for _, place := range []string{"OUTSIDE/credentials", os.Getenv("GOCACHE") + "/README", os.Getenv("GOMODCACHE") + "/x"} {
        if file, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
            file.WriteString("written by a test")
        } else {
            failed++
        }
    }
    if _, err := os.ReadFile("OUTSIDE/credentials"); err != nil {
        failed++
    }
    if err := os.WriteFile("own", []byte("x"), 0o600); err != nil {
        t.Fatal(err)
    }
    if err := os.WriteFile(t.TempDir() + "/own", []byte("x"), 0o600); err != nil {
        t.Fatal(err)
    }
    t.Logf("refused %d of 4", failed)
    if failed != 4 {
        t.Fatalf("refused %d of 4", failed)
    }
"""


async def test_a_repository_is_analysed_and_its_tests_write_to_no_cache(host: Host, tmp_path: Path, outside: Path) -> None:
    """Also again, with the caches of the first time."""
    repo: gorepo.GoRepo = attacking(tmp_path / "repo", BODY.replace("OUTSIDE", str(outside)), "os")
    for _ in range(2):
        analysis = await host.scan(repo, "-count=1 -v")
        assert (analysis.sandbox, analysis.uncovered) == ("landlock", ()), host.log
        assert any("refused 4 of 4" in line for line in host.log), host.log
    assert (outside / "credentials").read_text() == SECRET
    assert not any("written by a test" in path.read_text(errors="replace") for path in host.of(repo).rglob("README"))
