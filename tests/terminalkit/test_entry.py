"""An interrupt in the first moments of a program, while its modules are imported, is quiet."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.real

INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, {handler})
sys.meta_path.insert(0, Finder())
sys.argv = {arguments!r}
from {package}.__main__ import main
sys.exit(main())
"""


def run(package: str, module: str, *arguments: str, handler: str = "signal.default_int_handler") -> tuple[int, str]:
    """Run a program that is interrupted as it imports a module. Return its exit code and its standard error."""
    text = INTERRUPTED_AT.format(package=package, module=module, arguments=[package, *arguments], handler=handler)
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("package", ["gctd", "pantry", "graphql_fn", "projections"])
def test_an_interrupt_during_imports_ends_the_program_without_a_word(package: str) -> None:
    assert run(package, "click", "--help") == (-signal.SIGINT, "")


def test_an_interrupt_of_a_command_is_reported() -> None:
    code, err = run("gctd", "gctd.cli.processes.service", "config", "show")
    assert (code, err) == (130, "error: gctd: interrupted\n")


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    assert run("gctd", "click", "--version", handler="signal.SIG_IGN") == (0, "")
