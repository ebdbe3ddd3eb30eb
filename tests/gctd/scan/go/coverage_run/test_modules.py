"""Modules, vendored packages and workspaces are loaded as go would load them in the repository."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from gctd.scan.errors import GoError
from gctd.scan.isolation.sandbox import find_sandbox
from tests.gctd.scan.go.coverage_run.go_projects import outcomes, reasons
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


async def test_a_module_that_needs_a_newer_go(make: Any) -> None:
    for files, reason in [
        ({"go.mod": gorepo.module("example.com/x", go="1.99"), "x.go": "package x\n"}, "newer Go"),
        ({"go.mod": "modul x\n", "x.go": "package x\n"}, "cannot be loaded"),
        ({"go.mod": gorepo.module("example.com/x"), "x.go": "package x\n\nfunc f() { g() }\n"}, "undefined: g"),
    ]:
        with pytest.raises(GoError, match=reason) as caught:
            await make(files).run()
        assert caught.value.permanent


async def test_without_a_network_the_reason_is_that_modules_could_not_be_downloaded(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one whose go.mod files are in reach, and for one where not even those are. Another attempt may do better."""
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GONOSUMCHECK", "1")
    files = {
        "go.mod": gorepo.module("example.com/x") + "\nrequire example.org/dep v1.0.0\n",
        "go.sum": "example.org/dep v1.0.0 h1:g61tztE5qeGQ89tm6NTjjM9VPIm088od1l6aSorWRWg=\n",
        "x.go": 'package x\n\nimport "example.org/dep"\n\nvar X = dep.X\n',
    }
    for number, sums in enumerate(("", "example.org/dep v1.0.0/go.mod h1:NqM8EUOU14njkJ3fqMW+pc6Ldnwhi/IjpwHt7yyuwOQ=\n")):
        project = attrs.evolve(make({**files, "go.sum": files["go.sum"] + sums}), cache=tmp_path / f"cache{number}")
        with pytest.raises(GoError, match=r"module download failed: .*127.0.0.1:9") as caught:
            await project.run()
        assert not caught.value.permanent


@contextmanager
def proxy_that_answers(status: int) -> Iterator[str]:
    """The address of a module proxy whose every answer has this status; 0: it closes each connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if status:
                self.send_error(status)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [0, 429, 502])
async def test_no_package_counts_as_broken_for_a_download_that_may_succeed_later(
    make: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("GONOSUMDB", "*")
    with proxy_that_answers(status) as url:
        monkeypatch.setenv("GOPROXY", url)
        project = make(gorepo.NEEDING)
        with pytest.raises(GoError, match=f"module download failed: example.org/dep@v1.0.0: .*{url}") as caught:
            await project.run()
    assert not caught.value.permanent


@pytest.mark.parametrize("coverpkg", [False, True])
async def test_a_module_that_no_proxy_has_is_the_reason_why_a_package_is_not_tested(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coverpkg: bool
) -> None:
    """The other packages are tested. The run does not hold for later ones: the module may be published by then."""
    monkeypatch.setenv("GONOSUMDB", "*")
    with proxy_that_answers(404) as url:
        archive = f"{url}/example.org/dep/@v/v1.0.0.zip"
        monkeypatch.setenv("GOPROXY", url)
        project = make(gorepo.NEEDING)
        sandbox = await find_sandbox("auto", tmp_path)
        run = await project.run(sandbox=sandbox, test_args=("-coverpkg=./...",) if coverpkg else ())
    assert outcomes(run) == {"a": "ok", "b": "build failed", "c": "build failed"}
    for name in ("b", "c"):
        assert reasons(run)[name] == f"module download failed: example.org/dep@v1.0.0: reading {archive}: 404 Not Found"
    assert not run.repeatable


async def test_modules_that_only_files_with_a_tag_need_are_downloaded(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONOSUMDB", "*")
    tagged = {name: f"//go:build e2e\n\n{text}" for name, text in gorepo.NEEDING.items() if name in ("b/b_test.go", "c/c.go")}
    with proxy_that_answers(502) as url:
        monkeypatch.setenv("GOPROXY", url)
        project = make({**gorepo.NEEDING, **tagged})
        assert set(outcomes(await project.run()).values()) == {"ok", "no tests"}
        with pytest.raises(GoError, match=r"module download failed: example\.org/dep@v1\.0\.0"):
            await project.run(test_args=("-tags=e2e",))


async def test_a_module_whose_files_all_have_a_tag_is_tested_with_that_tag(make: Any) -> None:
    tagged = {name: f"//go:build e2e\n\n{text}" for name, text in gorepo.tested("one").items()}
    project = make({"go.mod": gorepo.module("example.com/one"), **tagged})
    assert outcomes(await project.run(test_args=("-tags=e2e",))) == {"one": "ok"}
    assert outcomes(await project.run()) == {}


async def test_a_run_that_is_not_cut_short_can_be_repeated(make: Any) -> None:
    assert (await make("single").run()).repeatable


async def test_vendored_modules_need_no_network(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    files = {
        "go.mod": gorepo.module("example.com/x") + "\nrequire example.org/dep v1.0.0\n",
        "vendor/modules.txt": "# example.org/dep v1.0.0\n## explicit; go 1.21\nexample.org/dep\n",
        "vendor/example.org/dep/dep.go": "package dep\n\n// X is 1.\nvar X = 1\n",
        **gorepo.with_test("x", "if dep.X != 1 {\n\tt.Fail()\n}", "example.org/dep"),
    }
    assert outcomes(await make(files).run()) == {"x": "ok"}


# Workspaces


@pytest.mark.parametrize(("below", "member"), [("api", True), ("lib", True), ("tools", False)])
async def test_a_member_runs_in_its_workspace_and_another_module_without_it(make: Any, below: str, member: bool) -> None:
    run = await make("workspace", below).run(workspace=member)
    assert outcomes(run) == {below: "ok"}
    assert run.workspace is member


async def test_a_workspace_that_cannot_be_loaded_is_left_aside(make: Any) -> None:
    files = {**gorepo.KINDS["workspace"], "go.work": "go 1.21\n\nuse (\n\t./lib\n\t./gone\n)\n"}
    project = make(files, "lib")
    run = await project.run(workspace=True)
    assert outcomes(run) == {"lib": "ok"}
    assert not run.workspace
    assert any("gone" in line for line in project.log)


async def test_a_vendored_workspace_needs_no_network(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor directory is made as by `go work vendor`, and belongs to the workspace."""
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    files = {
        "go.work": "go 1.22\n\nuse ./one\n",
        "vendor/modules.txt": "## workspace\n# example.org/dep v1.0.0\n## explicit; go 1.21\nexample.org/dep\n",
        "vendor/example.org/dep/dep.go": "package dep\n\n// X is 1.\nvar X = 1\n",
        "one/go.mod": gorepo.module("example.com/one", go="1.22") + "\nrequire example.org/dep v1.0.0\n",
        **gorepo.under("one", gorepo.with_test("one", "if dep.X != 1 {\n\tt.Fail()\n}", "example.org/dep")),
    }
    run = await make(files, "one").run(workspace=True)
    assert outcomes(run) == {"one": "ok"}
    assert run.workspace


async def test_nested_modules_are_not_tested_with_their_parent(make: Any) -> None:
    assert set(outcomes(await make("nested").run())) == {"nested", "inner"}


async def test_a_workspace_above_the_checkout_has_no_effect(make: Any, tmp_path: Path) -> None:
    (tmp_path / "go.work").write_text("go 1.21\n\nuse ./elsewhere\n")
    assert outcomes(await make("single").run()) == {"single": "ok"}
