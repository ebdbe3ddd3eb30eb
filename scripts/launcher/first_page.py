"""The system from its start to its first page, for releases and measurements."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen


class NotStarted(Exception):
    """The system did not start or did not end in order. The text is what it printed."""


class FirstPage(NamedTuple):
    """The dashboard, and the moment of its answer by the monotonic clock."""

    page: bytes
    answered: float


def first_page(command: Sequence[str], folder: Path, environment: Mapping[str, str], patience: float) -> FirstPage:
    """Run a form of `gctd up` in the home of an environment until its dashboard answers, and end it. Raises NotStarted.

    `folder` gets its files. `patience`: the most seconds for the start, and again for the end.
    """
    ready, console = folder / "ready.json", folder / "console.txt"
    line = [*command, "--port-base", "0", "--ready-file", str(ready)]
    deadline = time.monotonic() + patience
    with (
        console.open("wb") as output,
        subprocess.Popen(line, cwd=environment["HOME"], env=environment, stdout=output, stderr=output) as up,
    ):
        try:
            while not ready.exists():
                if up.poll() is not None or time.monotonic() > deadline:
                    raise NotStarted(console.read_text(encoding="utf-8"))
                time.sleep(0.02)
            with urlopen(json.loads(ready.read_bytes())["gctd"]) as answer:  # noqa: S310 - an address of the program
                found = FirstPage(answer.read(), time.monotonic())
        except OSError as error:
            raise NotStarted(f"its dashboard does not answer: {error}") from error
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(patience)
    if up.returncode != 128 + signal.SIGINT:
        raise NotStarted(f"it ended with {up.returncode}: {console.read_text(encoding='utf-8')}")
    return found
