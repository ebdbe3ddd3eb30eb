"""Only files of a job that the worker opened before are read back, through their descriptors."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from gctd.worker.work import WorkFailed
from tests.gctd.scan.hostile.conftest import Host, attacking
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real

CANARY = "mode: set\nexample.com/hostile/canary.go:1.1,2.2 1 1\n"


@pytest.fixture(params=["namespaces", pytest.param("bubblewrap", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of sandbox: programs of test_kernel.py and test_sandbox.py have each one."""
    kind: str = request.param
    return kind


async def test_a_folder_of_the_job_that_becomes_a_link_leads_to_no_other_job(place: Path, host: Host) -> None:
    """The test replaces every folder that it can by a link to the folder of a victim, whose profile has the same name."""
    victim = host.cache / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    victim.mkdir()
    try:
        (victim / "profile").write_text(CANARY)
        body = f"""here, _ := os.Getwd()
for _, place := range []string{{here, os.Getenv("HOME"), os.TempDir()}} {{
\tfor place != "/" {{
\t\tif os.Rename(place, place+".moved") == nil {{
\t\t\tos.Symlink("{victim}", place)
\t\t}}
\t\tplace = filepath.Dir(place)
\t}}
}}"""
        repo = attacking(place, body, "os", "path/filepath")
        try:
            analysis = await host.scan(repo)
        except WorkFailed:
            assert not any("canary" in line for line in host.log)
        else:
            assert analysis.profile is None or "canary" not in await host.profile(analysis)
        assert {path.name: path.read_text() for path in victim.iterdir()} == {"profile": CANARY}
    finally:
        shutil.rmtree(victim)


async def test_the_sources_that_are_scored_are_those_of_the_commit(places: Sequence[Path], host: Host) -> None:
    """A test that rewrites its repository does not change the scored sources: functions, go.mod, an added function."""
    body = """os.WriteFile("hostile.go", []byte("package hostile\\n"), 0o644)
os.WriteFile("more.go", []byte("package hostile\\n\\nfunc A() {}\\n\\nfunc B() {}\\n"), 0o644)
os.WriteFile("go.mod", []byte("module example.com/other\\n"), 0o644)"""
    hostile, quiet = attacking(places[0], body, "os"), attacking(places[1], "os.Getwd()", "os")
    assert (await host.scan(hostile)).summary.total_funcs == (await host.scan(quiet)).summary.total_funcs == 1


@pytest.mark.parametrize(
    "put",
    [
        "syscall.Mkfifo(profile, 0o600)",
        "os.Mkdir(profile, 0o700)",
        'os.Symlink("/proc/self/environ", profile)',
        'os.WriteFile(profile, []byte("mode: set\\nexample.com/hostile/canary.go:1.1,2.2 1 1\\n"), 0o600)',
        "file, _ := os.Create(profile)\nfile.Truncate(2 << 30)",
    ],
    ids=["fifo", "directory", "link", "forged", "sparse"],
)
async def test_whatever_is_put_in_the_place_of_the_profile_ends_the_scan_in_time(place: Path, host: Host, put: str) -> None:
    """The scan ends with the profile of the run or with an error about the profile."""
    body = f"""defer func() {{ _ = syscall.Getpid() }}()
here, _ := os.Getwd()
for _, profile := range []string{{here + "/../profile", os.Getenv("HOME") + "/../../profile"}} {{
\tos.RemoveAll(profile)
\t{put.replace(chr(10), chr(10) + chr(9))}
}}"""
    repo = attacking(place, body, "os", "syscall")
    if put.startswith("file"):
        with pytest.raises(WorkFailed, match="profile"):
            await host.scan(repo)
    else:
        assert "environ" not in await host.profile(await host.scan(repo))


async def test_names_of_any_bytes_and_trees_without_permissions_are_removed(place: Path, host: Host) -> None:
    body = """os.MkdirAll("deep/a\\nb/"+strings.Repeat("x", 255), 0o700)
os.WriteFile("deep/\\xff\\xfe", nil, 0)
os.WriteFile("deep/-rf", nil, 0)
os.Chmod("deep", 0)"""
    await host.scan(attacking(place, body, "os", "strings"))
    assert [path for path in (host.cache / "jobs").iterdir() if path.suffix != ".lock"] == []


async def test_two_jobs_at_once_keep_their_own_results(places: Sequence[Path], host: Host) -> None:
    """The hostile one fills every place that it can write to. The result of the other equals a run without it."""
    files = {"go.mod": gorepo.module("example.com/one"), **gorepo.tested("one")}
    good = gorepo.make(places[1], files=files)
    alone = await host.scan(good, test_args="-count=1")
    body = """filepath.WalkDir("/", func(path string, entry fs.DirEntry, err error) error {
\tif err == nil && !entry.IsDir() && !strings.HasPrefix(path, "/proc") && !strings.HasPrefix(path, "/dev") {
\t\tif file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
\t\t\tfile.WriteAt([]byte("canary"), 0)
\t\t\tfile.Close()
\t\t}
\t}
\treturn nil
})"""
    hostile = attacking(places[0], body, "io/fs", "os", "path/filepath", "strings")
    with suppress(WorkFailed):
        await host.scan(hostile)
    beside = await host.scan(good, test_args="-count=1")
    assert await host.profile(beside) == await host.profile(alone)
    assert beside.summary == alone.summary
