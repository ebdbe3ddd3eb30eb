"""No test writes to a cache that a later job uses, whether of its repository or of another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from gctd.scan.go.coverage_run.built import YOUNG
from gctd.worker.work import WorkFailed
from tests.gctd.scan.hostile.conftest import Host, attacking
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


@pytest.fixture(params=["namespaces", pytest.param("bubblewrap", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of sandbox: programs of test_kernel.py and test_sandbox.py have each one."""
    kind: str = request.param
    return kind


def contents(directory: Path) -> dict[str, str]:
    """Return the digest of each file, except the entries of Go's caches, which have the time of their creation."""
    return {
        str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in {"trim.txt", "lock"} and not path.name.endswith("-a")
    }


PLANT = """goroot, _ := exec.Command("go", "env", "GOROOT").Output()
places := []string{os.Getenv("GOCACHE"), os.Getenv("GOMODCACHE"), os.Getenv("GOMODCACHE") + "/cache/vcs",
\tos.Getenv("GOMODCACHE") + "/cache/download", strings.TrimSpace(string(goroot)), os.Getenv("HOME"), os.Getenv("GOPATH")}
for _, place := range places {
\tfilepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
\t\tif err == nil && entry.IsDir() {
\t\t\tos.WriteFile(path+"/canary", []byte("canary"), 0o755)
\t\t} else if err == nil {
\t\t\tif file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
\t\t\t\tfile.WriteAt([]byte("canary"), 0)
\t\t\t\tfile.Close()
\t\t\t}
\t\t}
\t\treturn nil
\t})
\tos.MkdirAll(place+"/canaries/hooks", 0o755)
\tos.WriteFile(place+"/canaries/config", []byte("[core]\\n\\tfsmonitor = touch /canary\\n"), 0o644)
}"""


async def test_a_test_changes_no_cache_and_leaves_nothing_in_one(place: Path, host: Host) -> None:
    """Module cache, clones of modules, build cache, Go's installation, HOME: no canary, and not a byte of another file."""
    repo = attacking(place, "os.Getpid()", "os")
    await host.scan(repo)
    before = contents(host.of(repo))
    repo.write(attacking_files(PLANT))
    repo.commit()
    await host.scan(repo)
    after = contents(host.of(repo))
    assert {name: digest for name, digest in after.items() if name in before} == before
    assert list(host.cache.rglob("canar*")) == []


def attacking_files(body: str) -> dict[str, str]:
    return gorepo.with_test("hostile", body, "io/fs", "os", "os/exec", "path/filepath", "strings")


async def test_clones_of_modules_of_an_earlier_job_are_not_there_for_the_next(place: Path, host: Host) -> None:
    """Git would obey the configuration of a clone that was left in the module cache."""
    body = """found, _ := os.ReadDir(os.Getenv("GOMODCACHE") + "/cache/vcs")
if len(found) > 0 {
\tt.Fatal("there is a clone")
}"""
    repo = attacking(place, body, "os")
    await host.scan(repo)
    assert list((host.of(repo) / "modules" / "cache" / "vcs").iterdir()) == []


async def test_directives_of_a_repository_reach_nothing_outside(tmp_path: Path, place: Path, host: Host) -> None:
    """`replace` outside, a newer toolchain, flags in a checked-in go.env, a generator: no canary."""
    canary = tmp_path / "canary"
    files = {
        "go.env": f"GOFLAGS=-toolexec=touch\\ {canary}\nGOTOOLCHAIN=go1.99.0\n",
        ".gitconfig": f"[core]\n\tfsmonitor = touch {canary}\n",
        "other.go": f"package hostile\n\n//go:generate touch {canary}\n\n// F does nothing.\nfunc F() {{}}\n",
        "go.work.sum": "",
    }
    repo = attacking(place, "os.Getpid()", "os")
    repo.write(files)
    repo.commit()
    await host.scan(repo)
    assert not canary.exists()


OWN_GO = """folder := t.TempDir()
for name, text := range map[string]string{"go.mod": "module own\\n", "own.go": "package own\\n"} {
\tos.WriteFile(folder+"/"+name, []byte(text), 0o644)
\tos.Chtimes(folder+"/"+name, time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 0))
}
command := exec.Command("go", "list", ".")
command.Dir = folder
if output, err := command.CombinedOutput(); err != nil {
\tt.Fatal(string(output))
}"""


async def test_a_scan_reads_the_index_of_packages_that_its_build_has_made(tmp_path: Path, host: Host) -> None:
    """Tests cannot write the index: a test that runs go needs none. The attempt after a damaged build builds all."""
    repo = attacking(tmp_path / "repo", OWN_GO, "os", "os/exec", "time")
    first = await host.scan(repo)
    assert first.uncovered == ()
    for file in (host.of(repo) / "build").glob("*/*"):
        if file.is_file() and file.read_bytes().startswith(b"go index "):
            file.unlink()
    with pytest.raises(WorkFailed, match="the build cache is not complete") as failure:
        await host.scan(repo)
    assert not failure.value.permanent
    again = await host.scan(repo)
    assert (again.summary, again.uncovered) == (first.summary, ())


async def test_an_amended_commit_is_not_scanned_with_the_index_of_the_commit_before(place: Path, host: Host) -> None:
    """Both commits have the time of their author, and a file of the same size that imports another package."""
    repo = attacking(place, "one.F()", "example.com/hostile/one")
    repo.write({f"{name}/{name}.go": f"package {name}\n\n// F does nothing.\nfunc F() {{}}\n" for name in ("one", "two")})
    repo.git("add", ".")
    repo.git("commit", "--quiet", "--amend", "--no-edit")
    first = await host.scan(repo)
    repo.write(gorepo.with_test("hostile", "two.F()", "example.com/hostile/two"))
    repo.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    second = await host.scan(repo)
    assert second.commit_sha != first.commit_sha
    assert second.uncovered == first.uncovered


async def test_a_young_commit_is_scanned_without_an_index(tmp_path: Path, host: Host) -> None:
    """Go makes no index of files younger than two seconds. When the commit is older, it is built again, with one."""
    repo = attacking(tmp_path / "repo", OWN_GO, "os", "os/exec", "time")
    young = (datetime.now(UTC) - timedelta(seconds=YOUNG / 2)).isoformat()
    repo.git("commit", "--quiet", "--amend", "--reset-author", "--no-edit", "--date", young)
    first = await host.scan(repo)
    built = host.of(repo) / "built"
    assert len(list(built.iterdir())) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gctd.scan.go.coverage_run.built.YOUNG", YOUNG / 4)
        second = await host.scan(repo)
    assert len(list(built.iterdir())) == 2
    assert (second.summary, first.uncovered, second.uncovered) == (first.summary, (), ())
