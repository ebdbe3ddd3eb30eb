"""The sandbox that the code of a repository runs in: a file system, processes and a network of its own.

Made by bubblewrap (bwrap(1)) where that works, else by `gctd.scan.isolation.namespaces`. What is in it: the system's programs and
libraries, read-only; what a run names as readable or writable; empty `/tmp`, `/proc` and `/dev`; no user but nobody.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import attrs
import structlog

from gctd.scan.errors import NoSandbox, ProcessError
from gctd.scan.isolation import namespaces
from gctd.scan.isolation.process import Limits, run

Kind = Literal["bubblewrap", "namespaces", "none"]
Wanted = Literal["auto", "require", "off"]

_log = structlog.get_logger(__name__)

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/sys/fs/cgroup")
_ETC = (
    *("alternatives", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "os-release", "passwd", "protocols", "resolv.conf", "services", "timezone"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust/extracted"),
)
_NOBODY = 65534
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
    """What a program in the sandbox has.

    `cwd`: its working directory; `readable`, `writable`: files and directories beside the system's. `network`: the host's, where
    it otherwise has a loopback interface of its own. `scratch` is a directory in which the run's `/tmp` is made.
    """

    cwd: Path
    scratch: Path
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    network: bool = False


@attrs.frozen(kw_only=True)
class Sandbox:
    """How programs are put into a sandbox on this host; `reason` says why where they are not (`kind` is `none`)."""

    kind: Kind
    program: tuple[str, ...] = ()
    reason: str = ""

    def around(self, argv: Sequence[str], view: View) -> list[str]:
        """The command line that runs a command line in the sandbox; the same one where there is none."""
        if self.kind == "none":
            return list(argv)
        options = [*self.program, *_system()]
        options += ["--bind", tempfile.mkdtemp(prefix="tmp-", dir=view.scratch), "/tmp"]  # noqa: S108 - inside
        options += [*_mounts(view.readable, "--ro-bind"), *_mounts(view.writable, "--bind")]
        for place in ("/dev", "/proc", "/"):  # root outside owns what is in /proc/sys, whatever it is called inside
            options += ["--remount-ro", place]
        if not view.network:
            options.append("--unshare-net")
        return [*options, "--chdir", str(view.cwd), "--", *argv]


NONE = Sandbox(kind="none", reason="it is switched off")


async def find_sandbox(wanted: Wanted, directory: Path) -> Sandbox:
    """The sandbox of this host, tried out by a program that looks for a way out of it.

    `directory`, which exists, is where that may write. Raises NoSandbox where one is required and there is none.
    """
    if wanted == "off":
        return NONE
    problems = []
    for sandbox in candidates():
        problem = await _problem(sandbox, directory)
        if problem is None:
            _log.info("sandbox", kind=sandbox.kind)
            return sandbox
        problems.append(f"{sandbox.kind}: {problem}")
    reason = "; ".join(problems)
    if wanted == "require":
        raise NoSandbox(f"a sandbox is required, and this host has none ({reason})")
    _log.warning("no sandbox: what repositories run sees this host's network, files and processes", reason=reason)
    return Sandbox(kind="none", reason=reason)


def python_files() -> list[Path]:
    """What a program of ours in Python needs to be able to read: not all of sys.path, which may begin with any directory."""
    links: list[Path] = []
    program = sys.executable
    while os.path.islink(program):  # noqa: PTH114 - link by link
        program = os.path.normpath(Path(program).parent / Path(program).readlink())
        links.append(Path(program).parent.parent)
    ours = Path(__file__).parents[2]
    libraries = [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [*links, Path(sys.prefix), Path(sys.base_prefix), ours, *libraries]


def candidates() -> Iterable[Sandbox]:
    """The kinds that there are, the better one first; whether they work is not known yet."""
    found = shutil.which("bwrap")
    if found:
        uid, gid = os.getuid() or _NOBODY, os.getgid() or _NOBODY
        yield Sandbox(kind="bubblewrap", program=(found, *_BUBBLEWRAP, "--uid", str(uid), "--gid", str(gid)))
    yield Sandbox(kind="namespaces", program=(sys.executable, "-I", "-S", namespaces.__file__))


async def _problem(sandbox: Sandbox, directory: Path) -> str | None:
    """What is wrong with a sandbox, if anything."""
    if sys.platform != "linux":
        return "this is not Linux"
    with tempfile.TemporaryDirectory(prefix="sandbox-", dir=_absolute(directory)) as place:
        inside, outside = tempfile.mkdtemp(dir=place), tempfile.mkdtemp(dir=place)
        view = View(cwd=Path(inside), scratch=Path(place), readable=python_files(), writable=[Path(inside)])
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, inside, outside]
        try:
            done = await run(sandbox.around(argv, view), cwd=view.cwd, env={"PATH": os.defpath}, timeout=_SECONDS, limits=_LIMITS)
        except ProcessError as error:
            return str(error)
        said = done.output_tail.strip().rpartition("\n")[2]
        if done.ok and said == "good" and os.listdir(inside):  # noqa: PTH208 - of a local directory, once
            return None
        return said if done.ok else f"it {done.how()}: {said}"


def _absolute(path: Path) -> Path:
    return path.absolute()


def _system() -> list[str]:
    """The system's own files: programs, libraries, and what is needed of its configuration."""
    options = ["--proc", "/proc", "--dev", "/dev"]
    for name in filter(os.path.exists, _SYSTEM):
        place = Path(name)
        options += ["--symlink", str(place.readlink()), name] if place.is_symlink() else ["--ro-bind", name, name]
    options += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 - inside
    return options + _mounts([Path("/etc", name) for name in _ETC], "--ro-bind")


def _mounts(paths: Iterable[Path], how: str) -> list[str]:
    """Each path where it is, and where it really is, those higher up first; what is not there, or in the system, is left out."""
    places = {place for path in paths if path.exists() for place in (path.absolute(), path.resolve())}
    wanted = [place for place in sorted(places, key=lambda place: (len(place.parts), place)) if not _is_system(place)]
    return [word for place in wanted for word in (how, str(place.resolve()), str(place))]


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)
