"""The sandbox of a repository's code: a private file system, process namespace and network.

It is made by bubblewrap (bwrap(1)) if that works, else by `gctd.scan.isolation.namespaces`. It contains the system's programs and
libraries, read-only, the files that a run names as readable or writable, empty `/tmp`, `/proc` and `/dev`, and only the user
`nobody`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs
import structlog

from gctd.scan.errors import NoSandbox, ProcessError
from gctd.scan.isolation import landlock, namespaces, seccomp
from gctd.scan.isolation.process import MIB, Limits, run

Kind = Literal["bubblewrap", "namespaces", "none"]
Wanted = Literal["auto", "require", "off"]

_log = structlog.get_logger(__name__)

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/sys/fs/cgroup")
_ETC = (
    *("alternatives", "host.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "os-release", "protocols", "services", "timezone"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust/extracted"),
)
_ETC_OF_NETWORK = ("hosts", "resolv.conf")
_NOBODY = 65534
_FILTER, _PASSWD, _GROUP, _HOSTS = 3, 4, 5, 6
"""Descriptors of a sandbox's inputs."""
_SHARED_MEMORY = 256 * MIB
_BUBBLEWRAP = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
    *("--disable-userns", "--hostname", "sandbox"),
)
_SECONDS = 30.0
_LIMITS = Limits(free_space=None)

_PROBE = """
import os, socket, sys
inside, outside = sys.argv[1:]
open(os.path.join(inside, "written"), "w").close()
problems = []
if os.path.exists(outside):
    problems.append("other files can be seen")
if os.getuid() == 0:
    problems.append("it is root")
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 5:
    problems.append("other processes can be seen")
for place in ("/", "/usr", "/dev", "/proc/sys/kernel/core_pattern"):
    if os.access(place, os.W_OK):
        problems.append(place + " can be written to")
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
if [name for _, name in socket.if_nameindex() if name != "lo"]:
    problems.append("there is a network")
print("; ".join(problems) or "good")
"""


@attrs.frozen(kw_only=True)
class View:
    """View of a program in the sandbox.

    `cwd`: its working directory. `readable`, `writable`: files and directories in addition to the system's. `network`: the host's
    network instead of a private loopback interface. `scratch` is a directory in which the run's `/tmp` is made.
    `writable_as` and `readable_as` show files or directories at other places: the place in the sandbox to the place outside.
    """

    cwd: Path
    scratch: Path
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    network: bool = False
    readable_as: Mapping[Path, Path] = attrs.field(factory=dict)
    writable_as: Mapping[Path, Path] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Sandbox:
    """The sandbox of this host. If `kind` is `none`, `reason` is the cause."""

    kind: Kind
    program: tuple[str, ...] = ()
    reason: str = ""

    def around(self, argv: Sequence[str], view: View) -> list[str]:
        """Return the command line that runs `argv` in the sandbox; `argv` itself if `kind` is `none`."""
        if self.kind == "none":
            return list(argv)
        options = [*self.program, *_system()]
        hosts = "hosts.sandbox" if view.network else "hosts"  # every descriptor is read, so that none is left for the program
        for number, name in ((_PASSWD, "passwd"), (_GROUP, "group"), (_HOSTS, hosts)):
            options += ["--ro-bind-data", str(number), f"/etc/{name}"]
        if view.network:
            options += _mounts([Path("/etc", name) for name in _ETC_OF_NETWORK], "--ro-bind")
        if self.kind == "bubblewrap":
            options += ["--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
        if seccomp.refused():
            options += ["--seccomp", str(_FILTER)]
        options += ["--bind", tempfile.mkdtemp(prefix="tmp-", dir=view.scratch), "/tmp"]  # noqa: S108 - inside
        options += [*_mounts(view.readable, "--ro-bind"), *_mounts(view.writable, "--bind")]
        options += [*_mounts_as(view.readable_as, "--ro-bind"), *_mounts_as(view.writable_as, "--bind")]
        for place in ("/dev", "/proc", "/"):  # root outside owns what is in /proc/sys, whatever it is called inside
            options += ["--remount-ro", place]
        if not view.network:
            options.append("--unshare-net")
        return [*options, "--chdir", str(view.cwd), "--", *argv]

    def walls(self) -> list[str]:
        """Describe the confinement in words, including measures that are weaker than the best."""
        if self.kind == "none":
            return []
        calls = seccomp.refused()
        return [
            f"{len(calls)} system calls are refused" if calls else "no system call is refused: the processor is not known",
            "memory and processes are looked at every half second (no control groups)",
            f"shared memory has {_SHARED_MEMORY // MIB} MiB",
            "signals and abstract sockets stay in (Landlock)"
            if landlock.encloses()
            else "abstract sockets of the host are in reach of tests that have its network (no Landlock of Linux 6.12)",
        ]

    @property
    def inputs(self) -> Mapping[int, bytes]:
        """Return the contents of the descriptors that the command line reads: a filter of system calls, users, groups, hosts."""
        if self.kind == "none":
            return {}
        uid, gid = os.getuid() or _NOBODY, os.getgid() or _NOBODY
        users = {0: "root", _NOBODY: "nobody", uid: "nobody" if uid == _NOBODY else "user"}
        groups = {0: "root", _NOBODY: "nogroup", gid: "nogroup" if gid == _NOBODY else "user"}
        own = {0: 0, _NOBODY: _NOBODY, uid: gid}
        passwd = "".join(f"{name}:x:{number}:{own[number]}::/tmp:/bin/sh\n" for number, name in users.items())
        return {
            **({_FILTER: seccomp.program()} if seccomp.refused() else {}),
            _PASSWD: passwd.encode(),
            _GROUP: "".join(f"{name}:x:{number}:\n" for number, name in groups.items()).encode(),
            _HOSTS: b"127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
        }


NONE = Sandbox(kind="none", reason="it is switched off")


async def find_sandbox(wanted: Wanted, directory: Path) -> Sandbox:
    """Return the sandbox of this host, after a test by a program that tries to leave it.

    The test may write to `directory`, which exists. Raises NoSandbox if a sandbox is required and none works.
    """
    if wanted == "off":
        return NONE
    problems = []
    for sandbox in candidates():
        problem = await _problem(sandbox, directory)
        if problem is None:
            _log.info("sandbox", kind=sandbox.kind, walls=sandbox.walls())
            return sandbox
        problems.append(f"{sandbox.kind}: {problem}")
    reason = "; ".join(problems)
    if wanted == "require":
        raise NoSandbox(f"a sandbox is required, and this host has none ({reason})")
    _log.warning("no sandbox: code of repositories sees this host's network, files and processes", reason=reason)
    return Sandbox(kind="none", reason=reason)


def python_files() -> list[Path]:
    """Return the files that a Python program of this project has to read.

    They do not include all of sys.path, which may begin with any directory.
    """
    links: list[Path] = []
    program = sys.executable
    while os.path.islink(program):  # noqa: PTH114 - link by link
        program = os.path.normpath(Path(program).parent / Path(program).readlink())
        links.append(Path(program).parent.parent)
    root = Path(__file__).parents[3]  # not itself: in a checkout it has data and secrets
    ours = [root / name for name in ("gctd", "eventlog")]
    libraries = [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [*links, Path(sys.prefix), Path(sys.base_prefix), *ours, *libraries]


def candidates() -> Iterable[Sandbox]:
    """Return the available kinds, the better one first. They may not work."""
    found = shutil.which("bwrap")
    if found:
        uid, gid = os.getuid() or _NOBODY, os.getgid() or _NOBODY
        yield Sandbox(kind="bubblewrap", program=(found, *_BUBBLEWRAP, "--uid", str(uid), "--gid", str(gid)))
    yield Sandbox(kind="namespaces", program=(sys.executable, "-I", "-S", namespaces.__file__))


async def _problem(sandbox: Sandbox, directory: Path) -> str | None:
    """Return the problem of a sandbox, or None."""
    if sys.platform != "linux":
        return "this is not Linux"
    with tempfile.TemporaryDirectory(prefix="sandbox-", dir=_absolute(directory)) as place:
        inside, outside = tempfile.mkdtemp(dir=place), tempfile.mkdtemp(dir=place)
        view = View(cwd=Path(inside), scratch=Path(place), readable=python_files(), writable=[Path(inside)])
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, inside, outside]
        try:
            done = await run(
                sandbox.around(argv, view),
                cwd=view.cwd,
                env={"PATH": os.defpath},
                timeout=_SECONDS,
                limits=_LIMITS,
                inputs=sandbox.inputs,
            )
        except ProcessError as error:
            return str(error)
        said = done.output_tail.strip().rpartition("\n")[2]
        if done.ok and said == "good" and os.listdir(inside):  # noqa: PTH208 - of a local directory, once
            return None
        return said if done.ok else f"it {done.how()}: {said}"


def _absolute(path: Path) -> Path:
    return path.absolute()


def _system() -> list[str]:
    """Return the options for the system's files: programs, libraries, and the necessary part of its configuration."""
    options = ["--proc", "/proc", "--dev", "/dev"]
    for name in filter(os.path.exists, _SYSTEM):
        place = Path(name)
        options += ["--symlink", str(place.readlink()), name] if place.is_symlink() else ["--ro-bind", name, name]
    options += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 - inside
    return options + _mounts([Path("/etc", name) for name in _ETC], "--ro-bind")


def _mounts(paths: Iterable[Path], how: str) -> list[str]:
    """Return options for each path, and for its resolved path, higher paths first. Missing and system paths are left out."""
    places = {place for path in paths if path.exists() for place in (path.absolute(), path.resolve())}
    wanted = [place for place in sorted(places, key=lambda place: (len(place.parts), place)) if not _is_system(place)]
    return [word for place in wanted for word in (how, str(place.resolve()), str(place))]


def _mounts_as(places: Mapping[Path, Path], how: str) -> list[str]:
    """Return options for files or directories at other places, and at the resolved places: a program may use either path."""
    words = []
    for shown, source in places.items():
        for place in dict.fromkeys((shown.absolute(), shown.resolve())):
            words += [how, str(source.resolve()), str(place)]
    return words


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)
