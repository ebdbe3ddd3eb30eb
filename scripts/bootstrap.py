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
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from launcher.installer import Installer, SetUpFailed, can_import, run
from pages import Node, PagesFailed, build, digest_of, install, is_built, machine_node, wheel_node

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
OLDEST_GO = (1, 21)
"""The first Go that fetches a newer one by itself if a go.mod asks for it."""


class SetUp:
    """The set-up of one checkout: `SetUp(root).run("runtime")`, then `python` is its interpreter."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self._installer = Installer(root, self.venv, say)

    def run(self, *locks: str, whole: bool = True) -> None:
        """Make `.venv` ready with the named lock files and the project, and if it is to be `whole` with Go and the built pages.

        A second one at the same time waits. The pages are built while the packages of Python are installed. Raises SetUpFailed.
        """
        with self._alone():
            self._environment()
            building = self._pages_beside(developer="test" in locks) if whole else None
            for lock in locks:
                self._packages(lock)
            self._project()
            if whole:
                self._go()
                self._pages(developer="test" in locks, building=building)

    def pages(self) -> None:
        """Build the pages alone, in an environment that is ready."""
        (self.venv / "stamps").mkdir(exist_ok=True)
        with self._alone():
            self._pages(developer=True)

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
            # Without pip it is made faster, and the pip of this Python serves. Debian keeps ensurepip in a separate package.
            pip = ["--without-pip"] if can_import("pip") or not can_import("ensurepip") else []
            run([sys.executable, "-m", "venv", *pip, str(self.venv)])
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
            lambda: self._installer.locked(lock),
            text,
        )

    def _project(self) -> None:
        packages = sorted(file.parent.name for file in self.root.glob("*/__init__.py"))
        self._once(
            "project",
            "installing the project itself",
            lambda: self._installer.editable(self.root),
            *((self.root / name).read_bytes() for name in ("setup.cfg", "pyproject.toml")),
            *map(str.encode, packages),
        )

    def _go(self) -> None:
        if not (self.venv / "stamps" / "go").exists() and _go_version() >= OLDEST_GO:
            return
        lock = self.root / "requirements" / "go.lock"

        def install() -> None:
            self._installer.locked(lock)
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

    def _pages_beside(self, *, developer: bool) -> threading.Thread | None:
        """Begin to build the pages, if the machine has a Node; an error is left to the next attempt, in `_pages`."""
        ui = self.root / "ui"
        if not ui.exists() or (self._has_packages(ui, developer=developer) and self._has_pages(ui)):
            return None
        node = machine_node()
        if node is None:
            return None

        def work() -> None:
            with contextlib.suppress(PagesFailed):
                if not self._has_packages(ui, developer=developer):
                    install(node, ui, developer=developer)
                    self._stamp("npm" if developer else "npm-build").write_text(self._lock_of(ui), encoding="ascii")
                if not self._has_pages(ui):
                    sources = digest_of(ui)
                    build(node, self.root)
                    self._stamp("pages").write_text(_digest(sources), encoding="ascii")

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def _has_packages(self, ui: Path, *, developer: bool) -> bool:
        """Whether the packages of npm are installed, for a developer also the packages for tests and types."""
        if not (ui / "node_modules").exists():
            return False
        names = ["npm"] if developer else ["npm", "npm-build"]
        return any(stamp.exists() and stamp.read_text(encoding="ascii") == self._lock_of(ui) for stamp in map(self._stamp, names))

    def _has_pages(self, ui: Path) -> bool:
        """Whether the pages are built from these sources."""
        stamp = self._stamp("pages")
        return is_built(self.root) and stamp.exists() and stamp.read_text(encoding="ascii") == _digest(digest_of(ui))

    @staticmethod
    def _lock_of(ui: Path) -> str:
        return hashlib.sha256((ui / "package-lock.json").read_bytes()).hexdigest()

    def _stamp(self, name: str) -> Path:
        return self.venv / "stamps" / name

    def _pages(self, *, developer: bool, building: threading.Thread | None = None) -> None:
        """Build the pages; without a registry of npm packages the services have none."""
        ui = self.root / "ui"
        if not ui.exists():
            return
        try:
            if building is not None:
                with step("waiting for npm and the build of the pages, which began with the set-up"):
                    building.join()
            if not is_built(self.root):
                self._stamp("pages").unlink(missing_ok=True)
            if not self._has_packages(ui, developer=developer):
                with step("installing the packages of ui/package-lock.json"):
                    install(self._node(), ui, developer=developer)
                self._stamp("npm" if developer else "npm-build").write_text(self._lock_of(ui), encoding="ascii")
            self._once("pages", "building the pages of ui/", lambda: build(self._node(), self.root), digest_of(ui))
        except (PagesFailed, SetUpFailed) as error:
            say(f"the pages were not built, so the services have none; the next start tries again\n{error}")

    def _node(self) -> Node:
        lock = self.root / "requirements" / "node.lock"
        found = machine_node() or wheel_node(self.venv)
        if found is None:
            self._installer.locked(lock)
            found = wheel_node(self.venv)
        if found is None:
            raise PagesFailed(f"{lock} has no Node for this machine\nhint: install Node 22 or newer, with npm")
        return found

    def _once(self, name: str, doing: str, action: Callable[[], None], *sources: bytes) -> None:
        """Do it, unless it has been done with the same sources."""
        stamp = self.venv / "stamps" / name
        digest = _digest(*sources)
        if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
            with step(doing):
                action()
            stamp.write_text(digest, encoding="ascii")


def _digest(*sources: bytes) -> str:
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


_open_steps: list[str] = []
"""The step whose line has no end yet."""


def say(text: str) -> None:
    """A line about the set-up, for the user, on standard error. It ends the line of a step, whose end then gets a new line."""
    end = "\n" if _open_steps else ""
    _open_steps.clear()
    print(f"{end}set-up: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Print the present step, its seconds so far if a terminal shows them, and its duration."""
    print(f"set-up: {text} ...", end="", file=sys.stderr, flush=True)
    _open_steps.append(text)
    start, ended = time.monotonic(), threading.Event()

    def count() -> None:
        while not ended.wait(1.0):
            print(f"\rset-up: {text} ... {time.monotonic() - start:.0f} s", end="", file=sys.stderr, flush=True)

    counting = threading.Thread(target=count, daemon=True)
    if sys.stderr.isatty():
        counting.start()
    outcome = "failed"
    try:
        yield
        outcome = f"{time.monotonic() - start:.1f} s"
    finally:
        ended.set()
        if counting.ident is not None:
            counting.join()
        again = f"\rset-up: {text} ..." if sys.stderr.isatty() else "" if _open_steps else f"set-up: {text} ..."
        _open_steps.clear()
        print(f"{again} {outcome}", file=sys.stderr, flush=True)


def has_postgres() -> bool:
    """Whether this machine has a Postgres, or the environment names one: then none has to be installed."""
    installed = next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None)
    return "PROJECTIONS_POSTGRES" in os.environ or installed is not None or shutil.which("postgres") is not None


def _go_version() -> tuple[int, ...]:
    """The version of the `go` on the PATH, () if there is none that runs."""
    try:
        done = subprocess.run(["go", "version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else ()


if __name__ == "__main__":
    try:
        SetUp().run(*sys.argv[1:])
    except SetUpFailed as error:
        sys.exit(f"error: {error}")
