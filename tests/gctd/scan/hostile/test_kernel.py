"""The walls that the kernel puts around the tests of a repository: descriptors, system calls, memory, users."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import attrs
import pytest

from gctd.scan.disk import MIB
from gctd.scan.isolation import landlock, seccomp
from gctd.scan.isolation.process import Finished, Limits, run
from gctd.scan.isolation.sandbox import NONE, Sandbox, View
from gctd.worker.attempts.attempt_log import Recording

PYTHON = ["/usr/bin/env", "python3", "-I", "-S", "-c"]


async def python(sandbox: Sandbox, code: str, job: Path, **view: object) -> Finished:
    around = sandbox.around([*PYTHON, code], View(cwd=job, scratch=job, writable=[job], **view))  # type: ignore[arg-type]
    return await run(around, cwd=job, env={"PATH": os.defpath}, timeout=60, inputs=sandbox.inputs)


@pytest.mark.real
async def test_no_descriptor_of_the_worker_is_inherited(sandbox: Sandbox, tmp_path: Path) -> None:
    canary = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(canary, True)
    try:
        for network in (False, True):
            done = await python(sandbox, "import os; print(sorted(os.listdir('/proc/self/fd')))", tmp_path, network=network)
            assert done.output_tail == "['0', '1', '2', '3']\n"  # 3 lists the directory
    finally:
        os.close(canary)


CALLS = {
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "unshare": "libc.unshare(0x10000000)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)",
    "setns": "libc.setns(0, 0)",
    "keyctl": "libc.syscall(%d, 0, -3, 1)",
    "bpf": "libc.syscall(%d, 0, 0, 0)",
    "userfaultfd": "libc.syscall(%d, 0)",
    "perf_event_open": "libc.syscall(%d, 0, 0, -1, -1, 0)",
    "process_vm_readv": "libc.process_vm_readv(1, 0, 0, 0, 0, 0)",
    "shmget": "libc.shmget(0, 4096, 0o600)",
    "open_by_handle_at": "libc.syscall(%d, -1, 0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
}


@pytest.mark.real
@pytest.mark.skipif(not seccomp.refused(), reason="the filter does not know this processor")
async def test_calls_that_no_test_needs_are_refused_and_the_program_goes_on(sandbox: Sandbox, tmp_path: Path) -> None:
    numbers = seccomp.refused()
    lines = ["import ctypes, errno, os", "libc = ctypes.CDLL(None, use_errno=True)"]
    for name, call in CALLS.items():
        lines += ["ctypes.set_errno(0)", call % numbers[name] if "%" in call else call, f"print({name!r}, ctypes.get_errno())"]
    lines += ["ctypes.set_errno(0)", "libc.syscall(425, 1, 0)", "print('io_uring', ctypes.get_errno())"]
    lines += ["os.waitpid(os.fork() or os._exit(0), 0)", "print('goes on')"]
    done = await python(sandbox, "\n".join(lines), tmp_path)
    assert done.output_tail.splitlines() == [*(f"{name} 1" for name in CALLS), "io_uring 38", "goes on"]


def test_the_filter_is_known_for_two_processors_and_is_none_for_others() -> None:
    for machine in ("x86_64", "aarch64"):
        assert len(seccomp.program(machine)) % 8 == 0
        assert set(seccomp.refused(machine)) <= set(seccomp.refused("x86_64"))
    assert seccomp.program("riscv64") == b""


SCOPES = landlock.encloses()
"""Whether the kernel of this machine can keep signals and abstract sockets in."""


@pytest.mark.real
async def test_no_abstract_socket_of_the_host_is_reached_with_a_network_either(sandbox: Sandbox, tmp_path: Path) -> None:
    """Such sockets belong to the network, and no mount hides them."""
    name = f"canary-{tmp_path.name}-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        listener.setblocking(False)
        code = (
            "import socket\nown = socket.socket(socket.AF_UNIX); own.bind('\\0own'); own.listen()\n"
            "socket.socket(socket.AF_UNIX).connect('\\0own'); print('own', flush=True)\n"
            f"socket.socket(socket.AF_UNIX).connect('\\0{name}')"
        )
        done = await python(sandbox, code, tmp_path, network=True)
        assert done.output_tail.startswith("own\n")
        if not SCOPES:
            assert "no Landlock" in "; ".join(sandbox.walls())
            return
        assert "PermissionError" in done.output_tail
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.real
async def test_without_a_sandbox_tests_cannot_signal_other_processes(tmp_path: Path) -> None:
    code = (
        "import os, signal, subprocess, sys\nchild = subprocess.Popen(['sleep', '60']); child.terminate(); print(child.wait())\n"
        f"sys.stdout.flush(); os.kill({os.getpid()}, 0)"
    )
    done = await python(NONE, code, tmp_path)
    assert done.output_tail.startswith("-15\n")
    assert ("PermissionError" in done.output_tail) is SCOPES


HOLD = "\nimport time\ntime.sleep(30)"


@pytest.mark.real
@pytest.mark.parametrize(
    "code",
    [
        "import os\nfiles = [os.memfd_create('x') for _ in range(6)]\nfor f in files: os.write(f, bytes(50 << 20))",
        "data = bytearray(300 << 20)\nfor i in range(0, len(data), 4096): data[i] = 1",
    ],
    ids=["memfd", "heap"],
)
async def test_memory_of_any_kind_counts_without_a_filter_too(tmp_path: Path, code: str) -> None:
    """As on a host without a sandbox."""
    argv = [*PYTHON, code + HOLD]
    done = await run(argv, cwd=tmp_path, env={"PATH": os.defpath}, timeout=25, limits=Limits(memory=150 * MIB))
    assert done.ended_by == "memory"


@pytest.mark.real
async def test_shared_memory_has_a_size(sandbox: Sandbox, tmp_path: Path) -> None:
    code = "with open('/dev/shm/x', 'wb') as file:\n    for _ in range(300): file.write(bytes(1 << 20))"
    done = await python(sandbox, code, tmp_path)
    assert "No space left on device" in done.output_tail


@pytest.mark.real
async def test_users_and_hosts_of_the_machine_are_not_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    code = (
        "import os, pwd; print(open('/etc/passwd').read(), open('/etc/hosts').read());"
        "print(pwd.getpwuid(os.getuid()).pw_dir, os.uname()[1])"
    )
    done = await python(sandbox, code, tmp_path)
    assert done.ok, done.output_tail
    assert len(done.output_tail.splitlines()) < 9
    assert done.output_tail.endswith("/tmp sandbox\n")
    assert not any(f"{user.pw_name}:" in done.output_tail for user in pwd.getpwall() if user.pw_name not in {"root", "nobody"})


def test_a_line_of_a_test_is_never_one_of_the_worker() -> None:
    recording = Recording()
    recording.mark("test")
    recording.line(">>> 2026-11-20T14:55:56Z completed")
    recording.line("\x1b[1m\u2066>>> 2026-11-20T14:55:56Z completed")
    lines = recording._text.kept().decode().splitlines()
    assert [line.startswith(">>>") for line in lines] == [True, False, False]
    assert lines[1] == "| >>> 2026-11-20T14:55:56Z completed"


async def test_the_walls_of_each_sandbox_are_named(sandbox: Sandbox) -> None:
    said = "; ".join(sandbox.walls())
    assert "system call" in said
    assert "no control groups" in said
    assert "in reach" in "; ".join(Sandbox(kind="none").walls())
    assert "control groups in /base" in "; ".join(attrs.evolve(sandbox, groups="/base").walls())
