"""The installer of packages into the virtual environment of a checkout: uv, or pip if there is no uv for this machine.

uv is the one on the PATH if it is new enough, else a wheel of `requirements/uv.lock`, which pip installs. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

OLDEST_UV = (0, 5)
_PIP = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-warn-script-location")
_INSTEAD = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
}
"""Variables of pip, and of uv with the same meaning."""
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS")
"""Variables with which a user chooses the authorities that uv trusts."""
_SYSTEM_CERTIFICATES = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
"""The authorities of the system: since uv 0.11, and before."""
_NO_SYSTEM_CERTIFICATES = "No CA certificates were loaded"


class SetUpFailed(Exception):
    """A step of the set-up failed; the text has the step, the reason, and the remedy."""


class Installer:
    """Installs into the environment `venv` of the checkout `root`. `say` gets a line for the user."""

    def __init__(self, root: Path, venv: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self._root = root
        self._venv = venv
        self._python = venv / "bin" / "python"
        self._uv: Path | None = None
        self._has_looked = False

    def locked(self, lock: Path) -> None:
        """Install the packages of a lock file, each with a digest of the file. Raises SetUpFailed."""
        self._install("--require-hashes", "--no-deps", "--requirement", str(lock), compiled=True)

    def editable(self, root: Path) -> None:
        """Link the project itself. Raises SetUpFailed."""
        self._install("--no-deps", "--no-build-isolation", "--editable", str(root))

    def file(self, wheel: Path) -> None:
        """Install a wheel without its requirements. Raises SetUpFailed."""
        self._install("--no-deps", "--no-index", str(wheel))

    def _install(self, *wanted: str, compiled: bool = False) -> None:
        """Install by uv. If it fails, report its reason, and install by pip."""
        uv = self._find_uv()
        if uv is not None:
            bytecode = ["--compile-bytecode"] if compiled else []  # without it the first start is slow
            command = [str(uv), "pip", "install", "--quiet", "--python", str(self._python), *bytecode, *wanted]
            reason = _run_uv(command)
            if reason is None:
                return
            self._say(f"uv failed, so pip installs, which takes longer; the reason: {reason}")
        self._pip(*wanted)

    def _find_uv(self) -> Path | None:
        if not self._has_looked:
            self._has_looked = True
            self._uv = _machine_uv() or self._own_uv()
        return self._uv

    def _own_uv(self) -> Path | None:
        """Return the uv of the environment, installed by pip if it is missing; None if pip cannot."""
        program, lock = self._venv / "bin" / "uv", self._root / "requirements" / "uv.lock"
        if not program.exists() and lock.exists():
            try:
                self._pip("--require-hashes", "--no-deps", "--no-compile", "--only-binary", ":all:", "--requirement", str(lock))
            except SetUpFailed:
                return None
        return program if _version(program) >= OLDEST_UV else None

    def _pip(self, *arguments: str) -> None:
        if next(self._venv.glob("lib/python3.*/site-packages/pip"), None):
            pip = [str(self._python), "-m", "pip"]
        elif can_import("pip"):
            pip = [sys.executable, "-m", "pip", "--python", str(self._python)]
        else:
            raise SetUpFailed(
                "this Python has neither ensurepip nor pip\nhint: apt install python3-venv (or your system's name for it)"
            )
        run([*pip, "install", *_PIP, *arguments])


def _machine_uv() -> Path | None:
    found = shutil.which("uv")
    return Path(found) if found is not None and _version(Path(found)) >= OLDEST_UV else None


def _version(program: Path) -> tuple[int, ...]:
    """The version of a uv, () if it does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    found = re.match(r"uv (\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _run_uv(command: Sequence[str]) -> str | None:
    """Run uv, and return the reason if it fails: the last cause that it names.

    It trusts the authorities that the user chooses, else the authorities of the system, and its own list if the system has
    none.
    """
    environment = _for_uv(os.environ)
    is_chosen = any(name in environment for name in _CERTIFICATES)
    said, status = "", 0
    for certificates in ({},) if is_chosen else (_SYSTEM_CERTIFICATES, {}):
        done = subprocess.run(
            command,
            env={**environment, **certificates},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        said, status = done.stderr, done.returncode
        if not status:
            return None
        if _NO_SYSTEM_CERTIFICATES not in said:
            break
    causes = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("hint:")]
    return (causes[-1] if causes else f"status {status}").removeprefix("cause: ").removeprefix("error: ")[:300]


def _for_uv(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: as for pip, by its own names, and no Python is downloaded."""
    translated = {theirs: environment[ours] for ours, theirs in _INSTEAD.items() if ours in environment}
    return {**translated, **environment, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}


def can_import(module: str) -> bool:
    """Whether this Python has a module."""
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def run(command: Sequence[str]) -> None:
    """Run a command. Raises SetUpFailed with its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        hint = "hint: pip reads PIP_INDEX_URL, PIP_CERT, HTTPS_PROXY and its configuration files"
        raise SetUpFailed(f"{' '.join(command)} ended with status {done.returncode}\n{done.stdout.strip()}\n{hint}")
