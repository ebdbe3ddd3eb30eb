"""Sets the checkout up: virtual environment, pinned packages, the project itself, its pages and, if it is missing, Go.

Standard library only, since it runs before anything is installed. Each step is skipped while what it was made from is unchanged.
By itself it sets up and starts nothing, for an image say: `python3 scripts/bootstrap.py runtime`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pages import Node, PagesFailed, build, digest_of, install, is_built, machine_node, wheel_node

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
OLDEST_GO = (1, 21)
"""The first Go that fetches a newer one by itself if a go.mod asks for it."""


class SetUpFailed(Exception):
    """A step of the set-up failed; the text has the step, the reason, and the remedy."""


class SetUp:
    """The set-up of one checkout: `SetUp(root).run("runtime")`, then `python` is its interpreter."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"

    def run(self, *locks: str) -> None:
        """Make `.venv` ready with the named lock files, the project and Go. A second one at the same time waits.

        Raises SetUpFailed.
        """
        with self._alone():
            self._environment()
            for lock in locks:
                self._packages(lock)
            self._project()
            self._go()
            self._pages()

    def pages(self) -> None:
        """Build the pages alone, in an environment that is ready."""
        (self.venv / "stamps").mkdir(exist_ok=True)
        with self._alone():
            self._pages()

    def environment(self) -> dict[str, str]:
        """The environment for programs that use the set-up: this one's, with `.venv/bin` first on the PATH."""
        path = os.environ.get("PATH", os.defpath)
        return {**os.environ, "VIRTUAL_ENV": str(self.venv), "PATH": f"{self.venv / 'bin'}{os.pathsep}{path}"}

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.root / ".venv.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another set-up of this checkout")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _environment(self) -> None:
        if self._is_usable():
            return
        version = ".".join(map(str, sys.version_info[:3]))
        with step(f"making .venv with Python {version}"):
            shutil.rmtree(self.venv, ignore_errors=True)
            pip = [] if _can_import("ensurepip") else ["--without-pip"]  # Debian keeps it in a separate package
            _run([sys.executable, "-m", "venv", *pip, str(self.venv)])
            (self.venv / "stamps").mkdir()
            (self.venv / "stamps" / "place").write_text(str(self.venv), encoding="utf-8")

    def _is_usable(self) -> bool:
        try:
            place = (self.venv / "stamps" / "place").read_text(encoding="utf-8")
            probe = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
            works = subprocess.run([self.python, "-I", "-S", "-c", probe], capture_output=True, check=False).returncode == 0
        except OSError:
            return False
        return works and place == str(self.venv)  # scripts in a moved environment have its old path

    def _packages(self, name: str) -> None:
        lock = self.root / "requirements" / f"{name}.lock"
        text = lock.read_bytes()
        count = len(re.findall(rb"^[A-Za-z0-9].*==", text, re.MULTILINE))
        self._once(
            name,
            f"installing {count} packages of {lock.relative_to(self.root)}",
            lambda: self._pip("--require-hashes", "--no-deps", "--requirement", str(lock)),
            text,
        )

    def _project(self) -> None:
        packages = sorted(file.parent.name for file in self.root.glob("*/__init__.py"))
        self._once(
            "project",
            "installing the project itself",
            lambda: self._pip("--no-deps", "--no-build-isolation", "--editable", str(self.root)),
            *((self.root / name).read_bytes() for name in ("setup.cfg", "pyproject.toml")),
            *map(str.encode, packages),
        )

    def _go(self) -> None:
        if not (self.venv / "stamps" / "go").exists() and _go_version() >= OLDEST_GO:
            return
        lock = self.root / "requirements" / "go.lock"

        def install() -> None:
            self._pip("--require-hashes", "--no-deps", "--requirement", str(lock))
            self._link_go()

        doing = f"installing Go of {lock.relative_to(self.root)} (75 MB), since no new one was found"
        self._once("go", doing, install, lock.read_bytes())

    def _link_go(self) -> None:
        """Put the program itself where the wheel has a Python script that starts it: it is called often, and killed."""
        [package] = self.venv.glob("lib/python3.*/site-packages/go")
        for name in ("go", "gofmt"):
            link = self.venv / "bin" / name
            link.unlink(missing_ok=True)
            link.symlink_to(package / "bin" / name)

    def _pages(self) -> None:
        """Build the pages; without a registry of npm packages the services have plain ones."""
        ui = self.root / "ui"
        if not ui.exists():
            return
        if not is_built(self.root):
            (self.venv / "stamps" / "pages").unlink(missing_ok=True)
        if not (ui / "node_modules").exists():
            (self.venv / "stamps" / "npm").unlink(missing_ok=True)
        try:
            lock = (ui / "package-lock.json").read_bytes()
            self._once("npm", "installing the packages of ui/package-lock.json", lambda: install(self._node(), ui), lock)
            self._once("pages", "building the pages of ui/", lambda: build(self._node(), self.root), digest_of(ui))
        except (PagesFailed, SetUpFailed) as error:
            say(f"the pages were not built, so the services show plain ones; the next start tries again\n{error}")

    def _node(self) -> Node:
        lock = self.root / "requirements" / "node.lock"
        found = machine_node() or wheel_node(self.venv)
        if found is None:
            self._pip("--require-hashes", "--no-deps", "--requirement", str(lock))
            found = wheel_node(self.venv)
        if found is None:
            raise PagesFailed(f"{lock} has no Node for this machine\nhint: install Node 22 or newer, with npm")
        return found

    def _once(self, name: str, doing: str, action: Callable[[], None], *sources: bytes) -> None:
        """Do it, unless it has been done with the same sources."""
        stamp = self.venv / "stamps" / name
        digest = hashlib.sha256(b"\0".join(sources)).hexdigest()
        if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
            with step(doing):
                action()
            stamp.write_text(digest, encoding="ascii")

    def _pip(self, *arguments: str) -> None:
        if next(self.venv.glob("lib/python3.*/site-packages/pip"), None):
            pip = [str(self.python), "-m", "pip"]
        elif _can_import("pip"):
            pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        else:
            raise SetUpFailed(
                "this Python has neither ensurepip nor pip\nhint: apt install python3-venv (or your system's name for it)"
            )
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"]
        _run([*pip, "install", *quiet, *arguments])


def say(text: str) -> None:
    """A line about the set-up, for the user, on standard error."""
    print(f"set-up: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Print the present step, and its duration."""
    print(f"set-up: {text} ...", end="", file=sys.stderr, flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", file=sys.stderr, flush=True)
        raise
    print(f" {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


def has_postgres() -> bool:
    """Whether this machine has a Postgres, or the environment names one: then none has to be installed."""
    installed = next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None)
    return "PROJECTIONS_POSTGRES" in os.environ or installed is not None or shutil.which("postgres") is not None


def _can_import(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def _go_version() -> tuple[int, ...]:
    """The version of the `go` on the PATH, () if there is none that runs."""
    try:
        done = subprocess.run(["go", "version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        hint = "hint: pip reads PIP_INDEX_URL, PIP_CERT, HTTPS_PROXY and its configuration files"
        raise SetUpFailed(f"{' '.join(command)} ended with status {done.returncode}\n{done.stdout.strip()}\n{hint}")


if __name__ == "__main__":
    try:
        SetUp().run(*sys.argv[1:])
    except SetUpFailed as error:
        sys.exit(f"error: {error}")
