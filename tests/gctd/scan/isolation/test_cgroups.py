"""Control groups: the group of a job holds all its processes and ends them. Without a delegated group the reason is named."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gctd.scan.isolation import cgroups, landlock
from gctd.scan.isolation.process import Finished, Limits, run
from gctd.scan.isolation.sandbox import NONE, Sandbox, View, find_sandbox
from tests.support.programs.processes import sleeping, unused_sleep

ENVIRONMENT = {"PATH": os.environ["PATH"]}
MOUNT = next(
    (Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line),
    Path("/no"),
)


@pytest.fixture
def base() -> Iterator[str]:
    """A group of the host for a worker and its jobs."""
    place = MOUNT / f"gctd-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        pytest.skip("no cgroup v2 of this machine can be written")
    (place / cgroups.OWN).mkdir()
    yield str(place)
    for group in (*place.glob("*/"), place):
        cgroups.remove(str(group))  # a supervisor that has answered may need a moment to end


def groups_of(base: str) -> list[str]:
    return [path.name for path in Path(base).glob("*/")]


async def shell(script: str, base: str, directory: Path, **options: object) -> Finished:
    argv = ["sh", "-c", script]
    return await run(argv, cwd=directory, env=ENVIRONMENT, groups=base, **{"timeout": 20.0, **options})  # type: ignore[arg-type]


@pytest.mark.real
async def test_a_program_and_its_children_are_in_a_group_which_ends_with_them(base: str, tmp_path: Path) -> None:
    marker = unused_sleep()
    script = (
        f"cat /proc/self/cgroup; setsid sleep {marker} & (setsid sh -c 'sleep {marker} & sleep {marker}' &); sleep 0.2; exit 3"
    )
    done = await shell(script, base, tmp_path)
    assert (done.exit_code, done.ended_by, done.left) == (3, "exit", 0)
    assert f"/{Path(base).name}/job-" in done.output_tail
    assert sleeping(marker) == []
    assert groups_of(base) == [cgroups.OWN], "the job's group is removed"


@pytest.mark.real
@pytest.mark.skipif(not landlock.restricts_files(), reason="the kernel has no Landlock of Linux 6.2")
async def test_with_rules_for_files_the_group_is_left_and_ended_all_the_same(base: str, tmp_path: Path) -> None:
    marker = unused_sleep()
    view = View(cwd=tmp_path, scratch=tmp_path, writable=[tmp_path])
    files = Sandbox(kind="landlock").files(view)
    done = await shell(f"trap '' TERM; sleep {marker} & sleep {marker}", base, tmp_path, files=files, timeout=0.5, grace=0.2)
    assert (done.ended_by, done.left, done.signal) == ("timeout", 0, signal.SIGKILL)
    assert sleeping(marker) == []
    assert groups_of(base) == [cgroups.OWN]


def test_limits_are_written_to_the_controllers_that_the_group_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel makes these files with the directory. Here a double does."""
    mkdir = os.mkdir

    def with_files(place: str) -> None:
        mkdir(place)
        for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.procs", "cgroup.kill"):
            Path(place, name).touch()

    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    monkeypatch.setattr(os, "mkdir", with_files)
    group = Path(cgroups.make(str(tmp_path), "x", memory=Limits(memory=1 << 30).memory, processes=77))
    assert group == tmp_path / "job-x"
    wanted = {"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "77"}
    assert {name: (group / name).read_text() for name in wanted} == wanted
    (tmp_path / "cgroup.subtree_control").write_text("\n")
    group = Path(cgroups.make(str(tmp_path), "y", memory=1, processes=1))
    assert [(group / name).read_text() for name in wanted] == [""] * 4


def test_the_kernel_s_end_of_a_job_without_memory_is_told(tmp_path: Path) -> None:
    for name in ("job-x", cgroups.OWN):
        (tmp_path / name).mkdir()
        for file in ("cgroup.procs", "cgroup.kill"):
            (tmp_path / name / file).touch()
    held = cgroups.GroupMembership(str(tmp_path / "job-x"))
    assert held.out_of_memory() is False
    (tmp_path / "job-x" / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n")
    assert held.out_of_memory() is True


@pytest.mark.parametrize(
    ("mounts", "own", "files", "reason"),
    [
        ("", "0::/unit\n", {}, "no cgroup v2 is mounted"),
        ("30 1 0:1 / {base} rw - cgroup2 cgroup2 rw\n", "1:memory:/\n", {}, "no cgroup v2 is mounted"),
        (
            "30 1 0:1 / {base} rw - cgroup2 cgroup2 rw\n",
            "0::/unit\n",
            {"cgroup.controllers": "cpu io pids"},
            "no controller memory in",
        ),
        (
            "30 1 0:1 / {base} rw - cgroup2 cgroup2 rw\n",
            "0::/unit\n",
            {"cgroup.controllers": "memory pids", "cgroup.subtree_control": "", "cgroup.procs": "1\n"},
            "other processes",
        ),
    ],
)
def test_a_group_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, mounts: str, own: str, files: dict[str, str], reason: str
) -> None:
    base = tmp_path / "mount"
    (base / "unit").mkdir(parents=True)
    for name, text in files.items():
        (base / "unit" / name).write_text(text)
    (tmp_path / "mountinfo").write_text(mounts.format(base=base))
    (tmp_path / "cgroup").write_text(own)
    found, why = cgroups.delegated(str(tmp_path))
    assert found == ""
    assert reason in why


@pytest.mark.parametrize("own", ["unit", f"unit/{cgroups.OWN}"])
def test_a_delegated_group_is_found_also_from_the_worker_s_own(tmp_path: Path, own: str) -> None:
    unit = tmp_path / "mount" / "unit"
    (unit / cgroups.OWN).mkdir(parents=True)
    for name, text in {
        "cgroup.controllers": "cpu io memory pids\n",
        "cgroup.subtree_control": "",
        "cgroup.procs": f"{os.getpid()}\n",
    }.items():
        (unit / name).write_text(text)
    (tmp_path / "mountinfo").write_text(f"30 1 0:1 / {tmp_path / 'mount'} rw - cgroup2 cgroup2 rw\n")
    (tmp_path / "cgroup").write_text(f"0::/{own}\n")
    assert cgroups.delegated(str(tmp_path)) == (str(unit), "")


async def test_a_group_that_is_not_taken_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a worker moves itself. Without that no program can get a group."""
    monkeypatch.setattr(cgroups, "delegated", lambda: (str(tmp_path / "no"), ""))
    for takes, reason in ((False, "only a worker uses it"), (True, "No such file")):
        found = await find_sandbox("off", tmp_path, takes_group=takes)
        assert found.groups == ""
        assert reason in found.no_groups
        assert str(tmp_path / "no") in "; ".join(found.walls())


def test_without_groups_the_reason_is_among_the_walls() -> None:
    assert "no control groups: not looked for" in "; ".join(NONE.walls())
