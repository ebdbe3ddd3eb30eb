"""The sandbox of a repository's code: a private file system, process namespace and network.

It is made by bubblewrap (bwrap(1)) if that works, else by `gctd.scan.isolation.namespaces`. It contains the system's programs and
libraries, read-only, the files that a run names as readable or writable, empty `/tmp`, `/proc` and `/dev`, and only the user
`nobody`.

If the host allows neither, Landlock lets a program read and write the same files at their own places. That hides neither the
network nor the names of other files and processes, so a worker that requires a sandbox does not start with it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs
import structlog

from gctd.scan.disk import MIB
from gctd.scan.errors import NoSandbox, ProcessError
from gctd.scan.isolation import cgroups, landlock, namespaces, probes, seccomp
from gctd.scan.isolation.fork_server import FORK_SERVER
from gctd.scan.isolation.messages import FileRules
from gctd.scan.isolation.process import Limits, absolute, run

Kind = Literal["bubblewrap", "namespaces", "landlock", "none"]
Wanted = Literal["auto", "require", "off"]

_log = structlog.get_logger(__name__)

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/sys/fs/cgroup")
_ETC = (
    *("alternatives", "host.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "os-release", "protocols", "services", "timezone"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust/extracted"),
)
_ETC_OF_NETWORK = ("hosts", "resolv.conf")
_ETC_OF_USERS = ("passwd", "group")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_NOBODY = 65534
_FILTER, _PASSWD, _GROUP, _HOSTS = 3, 4, 5, 6
"""Descriptors of a sandbox's inputs."""
_SHARED_MEMORY = 256 * MIB
_BUBBLEWRAP = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
    *("--disable-userns", "--hostname", "sandbox"),
)
_LIMIT_REACHED = re.compile(r"ENOSPC|No space left on device")
_SECONDS = 30.0
_LIMITS = Limits(free_space=None)


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
    """The sandbox of this host. If `kind` is `none` or `landlock`, `reason` is the cause.

    `groups` is the control group in which programs get their own; if it is empty, `no_groups` is the reason.
    """

    kind: Kind
    program: tuple[str, ...] = ()
    reason: str = ""
    groups: str = ""
    no_groups: str = "not looked for"

    @property
    def has_mounts(self) -> bool:
        """Whether programs in it have their own file system, processes and network."""
        return self.kind in ("bubblewrap", "namespaces")

    def files(self, view: View) -> FileRules | None:
        """Return the files of a program, if Landlock restricts them: the files of the view at their own places."""
        if self.kind != "landlock":
            return None
        etc = [f"/etc/{name}" for name in (*_ETC, *_ETC_OF_NETWORK, *_ETC_OF_USERS)]
        readable = [*map(Path, (*_SYSTEM, *etc, "/proc")), *view.readable, *view.readable_as]
        writable = [*(Path("/dev", name) for name in _DEVICES), *view.writable, *view.writable_as]
        return {"read": [*map(str, readable)], "write": [*map(str, writable)]}

    def around(self, argv: Sequence[str], view: View) -> list[str]:
        """Return the command line that runs `argv` in the sandbox; `argv` itself if it has no mounts."""
        if not self.has_mounts:
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
            return ["the network, files and processes of the host are in reach", self._limits()]
        if self.kind == "landlock":
            return [
                "files of the job can be read and written, of the host only programs and libraries can be read (Landlock)",
                "the network, the names of files and the command lines of processes are in reach",
                "no system call is refused",
                "signals and abstract sockets stay in (Landlock)"
                if landlock.encloses()
                else "other processes can be signalled (no Landlock of Linux 6.12)",
                self._limits(),
            ]
        calls = seccomp.refused()
        return [
            f"{len(calls)} system calls are refused" if calls else "no system call is refused: the processor is not known",
            self._limits(),
            f"shared memory has {_SHARED_MEMORY // MIB} MiB",
            "signals and abstract sockets stay in (Landlock)"
            if landlock.encloses()
            else "abstract sockets of the host are in reach of tests that have its network (no Landlock of Linux 6.12)",
        ]

    def _limits(self) -> str:
        if self.groups:
            return f"memory and processes are limited by control groups in {self.groups}"
        return f"memory and processes are looked at every half second (no control groups: {self.no_groups})"

    @property
    def inputs(self) -> Mapping[int, bytes]:
        """Return the contents of the descriptors that the command line reads: a filter of system calls, users, groups, hosts."""
        if not self.has_mounts:
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


async def find_sandbox(wanted: Wanted, directory: Path, *, takes_group: bool = False) -> Sandbox:
    """Return the sandbox of this host, after a test by a program that tries to leave it.

    The test may write to `directory`, which exists. `takes_group`: this process moves into the group of the worker, if its
    control group is delegated. Raises NoSandbox if a sandbox is required and none works.
    """
    if takes_group:
        FORK_SERVER.end()  # the next one is in the group of the worker, and none is in the delegated group
    groups, no_groups = cgroups.delegated()
    if groups:
        groups, no_groups = _taken(groups) if takes_group else ("", f"{groups} is delegated, and only a worker uses it")
    found = attrs.evolve(await _tried(wanted, directory), groups=groups, no_groups=no_groups)
    if found.has_mounts or wanted == "off":
        _log.info("sandbox", kind=found.kind, walls=found.walls())
    else:
        _log.info("walls without a sandbox", kind=found.kind, walls=found.walls())
        open_ = "the network and processes" if found.kind == "landlock" else "the network, files and processes"
        _log.warning(
            "no sandbox for the code of repositories", reach=f"{open_} of this host", reason=found.reason, remedy=NoSandbox.hint
        )
    return found


def _taken(groups: str) -> tuple[str, str]:
    try:
        cgroups.take(groups)
    except OSError as error:
        return "", f"{groups}: {error}"
    return groups, ""


async def _tried(wanted: Wanted, directory: Path) -> Sandbox:
    if wanted == "off":
        return NONE
    problems: dict[str, list[str]] = {}
    for sandbox in candidates():
        problem = await _problem(sandbox, directory)
        if problem is None:
            return sandbox
        problems.setdefault(_cause(problem), []).append(sandbox.kind)
    reason = "; ".join(f"{' and '.join(kinds)}: {cause}" for cause, kinds in problems.items())
    if wanted == "require":
        raise NoSandbox(f"a sandbox is required, and this host has none ({reason})")
    files = Sandbox(kind="landlock", reason=reason)
    problem = await _problem(files, directory)
    return files if problem is None else Sandbox(kind="none", reason=f"{reason}; landlock: {problem}")


def _cause(problem: str) -> str:
    """Return a problem in words for a user. The kernel's word for the limit of namespaces is the one for a full disk."""
    return "the limit of namespaces is reached (user.max_user_namespaces)" if _LIMIT_REACHED.search(problem) else problem


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
    """Return the problem of a sandbox, as a probe in it prints it, or None."""
    if sandbox.has_mounts and sys.platform != "linux":
        return "this is not Linux"
    if not sandbox.has_mounts and not landlock.restricts_files():
        return f"the kernel has version {landlock.version()} of it, and files need version {landlock.FILES_SINCE} (Linux 6.2)"
    with tempfile.TemporaryDirectory(prefix="sandbox-", dir=absolute(directory)) as place:
        inside, outside = tempfile.mkdtemp(dir=place), tempfile.mkdtemp(dir=place)
        (secret := Path(outside, "secret")).write_text("secret", encoding="utf-8")
        probe = [probes.OF_MOUNTS, inside, outside] if sandbox.has_mounts else [probes.OF_FILES, inside, outside, str(secret)]
        view = View(cwd=Path(inside), scratch=Path(place), readable=python_files(), writable=[Path(inside)])
        try:
            done = await run(
                sandbox.around([sys.executable, "-I", "-S", "-c", *probe], view),
                cwd=view.cwd,
                env={"PATH": os.defpath},
                timeout=_SECONDS,
                limits=_LIMITS,
                inputs=sandbox.inputs,
                files=sandbox.files(view),
            )
        except ProcessError as error:
            return str(error)
        said = done.output_tail.strip().rpartition("\n")[2]
        if done.ok and said == "good" and os.listdir(inside):  # noqa: PTH208 - of a local directory, once
            return None
        return said if done.ok else f"it {done.how()}: {said}"


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
