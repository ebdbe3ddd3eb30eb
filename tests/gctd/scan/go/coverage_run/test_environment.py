"""The go of a run is the one that was named, with no secret and no setting of the worker or of the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gctd.scan.errors import NoToolchain
from gctd.scan.go.toolchain import Toolchain, find_toolchain
from tests.gctd.scan.go.coverage_run.go_projects import module, outcomes
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


async def test_a_test_sees_no_secret_and_no_setting_of_the_worker(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its HOME and TMPDIR are in the job's folder; credentials for modules do not reach it."""
    secrets = ("GCTD_NATS_URL", "GITHUB_TOKEN", "NETRC", "HTTPS_PROXY", "https_proxy", "GOPRIVATE", "AWS_SECRET_ACCESS_KEY")
    for name in secrets:
        monkeypatch.setenv(name, "geheim")
    monkeypatch.setenv("GOPROXY", "https://user:geheim@proxy.example")
    monkeypatch.setenv("GOFLAGS", "-toolexec=/geheim")
    monkeypatch.setenv("GOENV", "/geheim")
    project = make(module('for _, v := range os.Environ() {\n\tfmt.Println("ENV " + v)\n}', "fmt", "os"))
    await project.run()
    seen = dict(line.removeprefix("ENV ").split("=", 1) for line in project.log if line.startswith("ENV "))
    assert not any("geheim" in value for value in seen.values())
    assert Path(seen["HOME"]).is_relative_to(project.job)
    assert Path(seen["TMPDIR"]).is_relative_to(project.job)
    assert set(seen) <= {
        *("PATH", "HOME", "TMPDIR", "LANG", "PWD", "GCTD_RUN", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
        *("GOCACHE", "GOMODCACHE", "GOPATH", "GOTOOLCHAIN", "GOENV", "GOFLAGS", "GOWORK", "GOPROXY", "GOSUMDB"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "GOCOVERDIR"),
    }


async def test_the_repository_s_own_settings_of_go_are_not_read(make: Any, tmp_path: Path) -> None:
    """A go.env in the module, a `toolchain` line, a generator, a script of git: none is followed."""
    canary = tmp_path / "pwn"
    tool = f"#!/bin/sh\ntouch {canary}\n"
    files = {
        **gorepo.KINDS["single"],
        "go.mod": gorepo.module("example.com/single") + "\ntoolchain go1.99.0\n",
        "go.env": "GOFLAGS=-toolexec=./tool\n",
        "tool": tool,
        "gen.go": "package single\n\n//go:generate ./tool\n",
        ".git/hooks/post-checkout": tool,
        ".git/config": "[core]\n\tfsmonitor = ./tool\n",
    }
    project = make(files)
    (project.directory / "tool").chmod(0o755)
    assert outcomes(await project.run()) == {"single": "ok"}
    assert not canary.exists()


# The toolchain


async def test_go_is_found_where_it_is_named_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself, where what is found is a script that starts it, as in the wheel."""
    found = await find_toolchain(tmp_path)
    assert found.version.startswith("go1.")
    assert found.go.parent.parent == Path(goroot())
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "go").touch()
    program = tmp_path / "script"
    program.write_text(f"#!/bin/sh\necho go1.2.3; echo {root}\n")
    program.chmod(0o755)
    monkeypatch.setenv("GCTD_GO", str(program))
    assert await find_toolchain(tmp_path) == Toolchain(root / "bin" / "go", "go1.2.3")


def goroot() -> str:
    return subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()


async def test_a_go_that_is_missing_or_broken_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        patched.setattr("sys.executable", str(tmp_path / "python"))
        with pytest.raises(NoToolchain, match="this machine has no go"):
            await find_toolchain(tmp_path)
    monkeypatch.setenv("GCTD_GO", str(tmp_path / "none"))
    with pytest.raises(NoToolchain, match="GCTD_GO names"):
        await find_toolchain(tmp_path)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("GCTD_GO", str(broken))
    with pytest.raises(NoToolchain, match="exited with code 1: no"):
        await find_toolchain(tmp_path)
